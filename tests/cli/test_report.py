"""`dlion report` of one run and of many, and the bad input of `dlion watch`."""

import re
import sys

import pytest

from dlion_sim.report import page
from dlion_sim.results import RunWriter
from tests.cli.test_bad_input import fails_with_one_line
from tests.command import dlion
from tests.made_up import made_up_run
from tests.report.sweeps import made_up_sweep

PLOTLY_SCRIPT = page.plotly_script


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with a run and a sweep of two runs; pages have no library, as that is long."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("dlion_sim.report.page.plotly_script", lambda: "var Plotly = {};")
    made_up_run(tmp_path / "run")
    made_up_sweep(tmp_path / "sweep", bandwidths=["5 Mbps"], seeds=1)
    return tmp_path


def heading(file) -> str:
    return re.search("<title>(.*)</title>", file.read_text())[1]


def test_the_page_is_in_the_folder_or_at_the_output(capsys, monkeypatch, here):
    assert dlion(monkeypatch, "report", "run") == 0
    assert dlion(monkeypatch, "report", "sweep") == 0
    assert capsys.readouterr().out == "report: run/report.html\nreport: sweep/report.html\n"
    assert heading(here / "sweep/report.html") == "made-up · 2 runs"
    assert dlion(monkeypatch, "report", "run", "-o", "page.html", "-q") == 0
    assert dlion(monkeypatch, "report", "sweep/baseline-5-seed0", "sweep/dlion-5-seed0", "-q") == 0
    assert capsys.readouterr().out == ""
    assert (here / "page.html").read_bytes() == (here / "run/report.html").read_bytes()
    assert heading(here / "report.html") == "made-up · 2 runs"
    assert dlion(monkeypatch, "report", "run", "-q") == 0


def test_a_folder_with_one_run_is_shown_as_many(monkeypatch, here):
    made_up_run(here / "one/run")
    assert dlion(monkeypatch, "report", "one/run", "-q", "-o", "a.html") == 0
    assert dlion(monkeypatch, "report", "one", "-q", "-o", "b.html") == 0
    assert heading(here / "a.html") == "made-up · dlion · seed 0"
    assert heading(here / "b.html") == "made-up · 1 run"


def test_only_reports_are_replaced_without_force(capsys, monkeypatch, here):
    (here / "mine.html").write_text("mine")
    line = fails_with_one_line(capsys, monkeypatch, here, "report", "run", "-o", "mine.html")
    assert line == "dlion: mine.html: exists and is no report; allowed: another file, or --force"
    assert dlion(monkeypatch, "report", "run", "-o", "mine.html", "--force", "-q") == 0
    assert "<title>made-up" in (here / "mine.html").read_text()


def test_a_new_run_in_the_folder_removes_the_report(monkeypatch, here):
    assert dlion(monkeypatch, "report", "run", "-q") == 0
    about = {"scenario": "another", "system": "dlion", "seed": 1}
    RunWriter.create(here / "run", scenario_yaml="name: another\n", manifest=about, force=True)
    assert not (here / "run/report.html").exists()


def test_unreadable_runs_are_named_and_the_others_shown(capsys, monkeypatch, here):
    (here / "sweep/dlion-5-seed0/manifest.json").write_text("{")
    assert dlion(monkeypatch, "report", "sweep") == 1
    captured = capsys.readouterr()
    assert captured.out == "report: sweep/report.html\n"
    (line,) = captured.err.splitlines()
    assert line.startswith("dlion: sweep/dlion-5-seed0/manifest.json: cannot be read")
    assert "1 completed, 1 unreadable" in (here / "sweep/report.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["report", "nowhere"], ["nowhere", "is not a run folder"]),
        (["report", "run", "-o", "missing/page.html"], ["missing", "there is no such folder"]),
        (["report", "run", "-o", "run"], ["run", "is a folder", ".html"]),
        (["report", "run", "-o", "run/page.pdf"], ["run/page.pdf", "is no .html file", "dlion plot"]),
        (["report", "sweep", "--target", "800"], ["--target: no accuracy is 800", "up to 100 %"]),
        (["report", "sweep", "nowhere"], ["nowhere", "is not a run folder"]),
        (["watch", "nowhere"], ["nowhere: is not a folder; allowed: a run folder, or a folder of runs"]),
        (["watch", "run/manifest.json"], ["manifest.json: is not a folder"]),
    ],
)
def test_bad_input_is_one_line(capsys, monkeypatch, here, arguments, words):
    line = fails_with_one_line(capsys, monkeypatch, here, *arguments)
    assert all(word in line for word in words), line


def test_a_damaged_run_leaves_no_page(capsys, monkeypatch, here):
    (here / "run/metrics.parquet").write_bytes(b"no table")
    assert "metrics.parquet" in fails_with_one_line(capsys, monkeypatch, here, "report", "run")
    made_up_run(here / "other")
    manifest = here / "other/manifest.json"
    manifest.write_text(manifest.read_text().replace('"status"', '"partition": [[-1]], "status"'))
    assert "partition" in fails_with_one_line(capsys, monkeypatch, here, "report", "other")


@pytest.mark.parametrize("command", [["report", "run"], ["watch", "sweep"]], ids=" ".join)
def test_without_plotly_the_line_names_the_extra(capsys, monkeypatch, here, command):
    monkeypatch.setattr("dlion_sim.report.page.plotly_script", PLOTLY_SCRIPT)
    PLOTLY_SCRIPT.cache_clear()
    monkeypatch.setitem(sys.modules, "plotly.offline", None)
    line = fails_with_one_line(capsys, monkeypatch, here, *command)
    assert line == "dlion: reports need the package plotly; allowed: pip install 'dlion-sim[report]'"
