"""`dlion report`: a page of a run."""

import sys

import pytest

from dlion_sim.report import page
from dlion_sim.results import RunWriter
from tests.cli.test_bad_input import fails_with_one_line
from tests.command import dlion
from tests.made_up import made_up_run


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with a run in it."""
    monkeypatch.chdir(tmp_path)
    made_up_run(tmp_path / "run")
    return tmp_path


@pytest.fixture
def plotly(monkeypatch):
    """In its place, as it is long."""
    monkeypatch.setattr("dlion_sim.report.page.plotly_script", lambda: "var Plotly = {};")


def test_it_lies_in_the_run_folder_or_where_one_says(capsys, monkeypatch, here, plotly):
    assert dlion(monkeypatch, "report", "run") == 0
    assert capsys.readouterr().out == "report: run/report.html\n"
    assert dlion(monkeypatch, "report", "run", "-o", "page.html", "--quiet") == 0
    assert capsys.readouterr().out == ""
    assert (here / "page.html").read_bytes() == (here / "run/report.html").read_bytes()
    assert dlion(monkeypatch, "report", "run", "-q") == 0


def test_what_is_no_report_is_replaced_only_by_force(capsys, monkeypatch, here, plotly):
    (here / "mine.html").write_text("mine")
    line = fails_with_one_line(capsys, monkeypatch, here, "report", "run", "-o", "mine.html")
    assert line == "dlion: mine.html: exists and is no report; allowed: another file, or --force"
    assert dlion(monkeypatch, "report", "run", "-o", "mine.html", "--force", "-q") == 0
    assert "<title>made-up" in (here / "mine.html").read_text()


def test_a_report_goes_with_the_run_that_it_is_of(monkeypatch, here, plotly):
    assert dlion(monkeypatch, "report", "run", "-q") == 0
    about = {"scenario": "another", "system": "dlion", "seed": 1}
    RunWriter.create(here / "run", scenario_yaml="name: another\n", manifest=about, force=True)
    assert not (here / "run/report.html").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere"], ["nowhere", "is not a run folder"]),
        (["run", "-o", "missing/page.html"], ["missing", "there is no such folder"]),
        (["run", "-o", "run"], ["run", "is a folder", ".html"]),
        (["run", "-o", "run/page.pdf"], ["run/page.pdf", "is no .html file", "dlion plot"]),
    ],
)
def test_bad_input_is_one_line(capsys, monkeypatch, here, plotly, arguments, words):
    line = fails_with_one_line(capsys, monkeypatch, here, "report", *arguments)
    assert all(word in line for word in words)


def test_a_damaged_run_leaves_no_page(capsys, monkeypatch, here, plotly):
    (here / "run/metrics.parquet").write_bytes(b"no table")
    assert "metrics.parquet" in fails_with_one_line(capsys, monkeypatch, here, "report", "run")
    made_up_run(here / "other")
    manifest = here / "other/manifest.json"
    manifest.write_text(manifest.read_text().replace('"status"', '"partition": [[-1]], "status"'))
    assert "partition" in fails_with_one_line(capsys, monkeypatch, here, "report", "other")


def test_without_the_extra_it_is_said_what_to_install(capsys, monkeypatch, here):
    page.plotly_script.cache_clear()
    monkeypatch.setitem(sys.modules, "plotly.offline", None)
    line = fails_with_one_line(capsys, monkeypatch, here, "report", "run")
    assert line == "dlion: reports need the package plotly; allowed: pip install 'dlion-sim[report]'"
