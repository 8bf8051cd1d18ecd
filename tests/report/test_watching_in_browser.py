"""Runs in progress, as a browser shows them."""

import os
import subprocess
import sys
from contextlib import contextmanager

import pytest

from dlion_sim.report import Collected, Watched, many_page, run_page
from dlion_sim.results import Run, find_runs
from tests.browser import complaints, show, wait
from tests.made_up import made_up_run
from tests.report.pages import CHOSEN, axis_titles, choose, drag
from tests.report.sweeps import begun_run, go_on

pytestmark = pytest.mark.browser

RANGE = "return document.querySelector('#curves .plot')._fullLayout.xaxis.range"
WIDTHS = """const plots = [...document.querySelectorAll("section:not([hidden]) .plot")];
return plots.map((plot) => [plot._fullLayout.width, plot.offsetWidth]).filter(([drawn, own]) => drawn !== own);"""
DRAWN = """
const views = {};
for (const plot of document.querySelectorAll(".plot")) {
  const traces = (plot.data ?? []).map(({ x, y, text, name }) => ({ x, y, text, name }));
  views[plot.closest("section").id] = traces;
}
const cells = [...document.querySelectorAll("#outcomes-table tbody tr, #unfinished tr")].map((row) => row.innerText);
return JSON.stringify([views, cells, document.querySelector(".counts").textContent, document.title]);
"""


@contextmanager
def watching(folder, port=0):
    """The command, as a process, and what to open."""
    command = [sys.executable, "-m", "dlion_sim", "watch", str(folder), "--port", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ})
    try:
        yield process, process.stdout.readline().removeprefix("watch: ").strip()
    finally:
        process.kill()
        process.communicate()


def test_a_watched_sweep_equals_its_report(driver, tmp_path):
    wholes = [
        made_up_run(tmp_path / f"whole/{seed}", system=system, seed=seed)
        for seed, system in enumerate(("ako", "dlion"))
    ]
    folder = tmp_path / "sweep"
    folder.mkdir()
    counts = "document.querySelector('.counts').textContent"
    with watching(folder) as (_, address):
        show(driver, address)
        wait(driver, f"return {counts} === 'no run yet'")
        first = begun_run(wholes[0], folder / "0", until=10.0)
        wait(driver, f"return {counts} === '1 running'")
        second = begun_run(wholes[1], folder / "1", until=0.0)
        wait(driver, f"return {counts} === '2 running'")
        assert driver.execute_script(WIDTHS) == [], "what was hidden as there was nothing to draw has not its width"
        choose(driver, "curves", "Sent over the LAN by all workers")
        driver.execute_script("document.querySelectorAll('#outcomes-table tbody tr')[1].click()")
        drag(driver, "curves", (0.5, 1.5), (20, 40))
        zoomed = driver.execute_script(RANGE)
        assert zoomed == [pytest.approx(0.5, abs=0.05), pytest.approx(1.5, abs=0.05)]
    port = address.rstrip("/").rpartition(":")[2]
    wait(driver, "return document.getElementById('watching').textContent.startsWith('Server not reachable')")
    go_on(first, wholes[0], 10.0, 20.0)
    first.finish(wholes[0].outcome)
    with watching(folder, port):
        wait(driver, f"return {counts}.startsWith('1 completed, 1 running')")
        go_on(second, wholes[1], 0.0, 20.0)
        second.finish(wholes[1].outcome)
        wait(driver, f"return {counts}.startsWith('2 completed')")
        assert axis_titles(driver, "curves")[0] == "Sent over the LAN by all workers (MB)", "a switch has not been kept"
        assert driver.execute_script(CHOSEN) == ["dlion"]
        assert driver.execute_script(RANGE) == zoomed, "what was zoomed is not any more"
        driver.execute_script("document.getElementById('clear').click()")
        watched = driver.execute_script(DRAWN)
        driver.get_log("browser")  # of the time when nobody answered
    page = tmp_path / "report.html"
    page.write_text(many_page(Collected.of(find_runs([folder]))))
    show(driver, page)
    choose(driver, "curves", "Sent over the LAN by all workers")
    assert driver.execute_script(DRAWN) == watched
    assert complaints(driver) == []


RUN_DRAWN = """
const of = ({ x, y, z, text }) => ({ x, y, z, text });
const plots = [...document.querySelectorAll(".plot")].map((plot) => (plot.data ?? []).map(of));
const words = [...document.querySelectorAll("main section")].map((section) => section.innerText);
return JSON.stringify([plots, words]);
"""


def test_a_watched_run_equals_its_report(driver, tmp_path):
    whole = made_up_run(tmp_path / "whole")
    writer = begun_run(whole, tmp_path / "run", until=10.0)
    with watching(tmp_path / "run") as (_, address):
        show(driver, address)
        begun = driver.execute_script(RUN_DRAWN)
        go_on(writer, whole, 10.0, 20.0)
        writer.finish(whole.outcome)
        version = Watched(tmp_path / "run").version()
        wait(driver, f"return document.documentElement.dataset.version === '{version}'")
        watched = driver.execute_script(RUN_DRAWN)
        assert watched != begun
    (tmp_path / "run.html").write_text(run_page(Run.open(tmp_path / "run")))
    show(driver, tmp_path / "run.html")
    assert driver.execute_script(RUN_DRAWN) == watched
    assert complaints(driver) == []
