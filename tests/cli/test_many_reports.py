"""`dlion report` of many runs, and what `dlion watch` refuses."""

import re
import sys

import pytest

from dlion_sim.report import page
from tests.cli.test_bad_input import fails_with_one_line
from tests.command import dlion
from tests.made_up import made_up_run
from tests.report.sweeps import made_up_sweep

PLOTLY_SCRIPT = page.plotly_script


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with a sweep of two runs, and without the library, as that is long."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("dlion_sim.report.page.plotly_script", lambda: "var Plotly = {};")
    made_up_sweep(tmp_path / "sweep", bandwidths=["5 Mbps"], seeds=1)
    return tmp_path


def heading(file) -> str:
    return re.search("<title>(.*)</title>", file.read_text())[1]


def test_the_page_of_a_folder_lies_in_it_and_of_several_here(capsys, monkeypatch, here):
    assert dlion(monkeypatch, "report", "sweep") == 0
    assert capsys.readouterr().out == "report: sweep/report.html\n"
    assert heading(here / "sweep/report.html") == "made-up · 2 runs"
    assert dlion(monkeypatch, "report", "sweep/baseline-5-seed0", "sweep/dlion-5-seed0", "-q") == 0
    assert heading(here / "report.html") == "made-up · 2 runs"
    assert capsys.readouterr().out == ""


def test_a_run_folder_is_shown_by_itself_and_a_folder_with_one_run_as_many(monkeypatch, here):
    made_up_run(here / "one/run")
    assert dlion(monkeypatch, "report", "one/run", "-q", "-o", "a.html") == 0
    assert dlion(monkeypatch, "report", "one", "-q", "-o", "b.html") == 0
    assert heading(here / "a.html") == "made-up · dlion · seed 0"
    assert heading(here / "b.html") == "made-up · 1 run"


def test_runs_that_cannot_be_read_are_told_and_the_others_shown(capsys, monkeypatch, here):
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
        (["report", "sweep", "--target", "800"], ["--target: no accuracy is 800", "up to 100 %"]),
        (["report", "sweep", "nowhere"], ["nowhere", "is not a run folder"]),
        (["watch", "nowhere"], ["nowhere: is not a folder; allowed: a run folder, or a folder of runs"]),
        (["watch", "sweep/baseline-5-seed0/manifest.json"], ["manifest.json: is not a folder"]),
    ],
)
def test_bad_input_is_one_line(capsys, monkeypatch, here, arguments, words):
    line = fails_with_one_line(capsys, monkeypatch, here, *arguments)
    assert all(word in line for word in words), line
    assert not (here / "sweep/report.html").exists()


def test_without_the_extra_watching_says_what_to_install(capsys, monkeypatch, here):
    PLOTLY_SCRIPT.cache_clear()
    monkeypatch.setitem(sys.modules, "plotly.offline", None)
    line = fails_with_one_line(capsys, monkeypatch, here, "watch", "sweep")
    assert line == "dlion: reports need the package plotly; allowed: pip install 'dlion-sim[report]'"
