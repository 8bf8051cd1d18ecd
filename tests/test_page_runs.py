"""Commands of the pages, run one after another as they stand there, but small.

`test_page_commands.py` parses them all. Those that are not run here are listed, with the reason and who does.
"""

import re
import shutil

import pytest

from dlion_sim.interrupts import Interrupts
from dlion_sim.scenario import Scenario, find
from dlion_sim.simulation import simulate
from dlion_sim.sweep.estimating import run_seconds
from tests.calibration.steady import steady
from tests.command import dlion
from tests.pages import PAGES, ROOT, blocks, commands, place, put_measurements
from tests.simulation.scenarios import digits

OWN_TESTS = {
    "docs/commands.md": "usages: cli/test_reference.py",
    "docs/gallery.md": "test_gallery.py; figures/",
    "docs/language-models.md": "test_language_models_page.py",
    "docs/resume.md": "goes on below",
    "docs/worked-example.md": "test_worked_example_page.py",
}
NOT_RUN = {
    r"emulate|validate|calibrate network --emulate": "needs root and Mininet: emulation/",
    r"calibrate network --local": "starts a process a node: cli/test_calibrate.py",
    r"calibrate node|node|gather": "is one of several processes: test_worked_example_page.py, live/",
    r"live": "starts processes, in real time: live/",
    r"sweep(?!.*--dry-run)": "starts a process a run: cli/test_sweep.py, test_examples.py",
    r"reproduce E6": "takes hours: cli/test_reproduce.py",
    r"recommend": "races candidates for minutes: test_worked_example_page.py, recommend/",
    r"watch": "serves until it is ended: report/test_watching.py",
    r"calibrate compute --model cipher": "CIFAR-10 is downloaded; with digits: test_worked_example_page.py",
}
WITH_RUNS = [
    page
    for page in PAGES
    if place(page) not in OWN_TESTS and not page.is_relative_to(ROOT / "examples") and commands(page)
]
RENTED = {"clouds": [{"name": "east", "workers": [{"count": 2, "instance": "p3.2xlarge"}]}]}


def left_out(arguments):
    """Whether a command is not run."""
    return any(re.match(rf"(?:{pattern})\b", " ".join(arguments)) for pattern in NOT_RUN)


def small(arguments):
    """A command that does less, with the fixture's files for what a page leaves open."""
    file = "page.html" if arguments[0] == "report" else "figure.png"
    open_ones = {"RUNS...": "results/my-sweep", "RUN": "results/my-sweep/seed0", "FILE": file, "FOLDER": "tables"}
    given = [open_ones.get(each, each) for each in arguments if each != "..."]
    match given:
        case ["run", *_] if "--resume" not in given:
            return [*given, "--set", "duration=300 ms", "--set", "workload.evaluate_every=300 ms"]
        case ["stalls", *_]:
            return [*given, "--iterations", "10"]
    return given


@pytest.fixture(scope="module")
def rented(tmp_path_factory):
    """A folder with two runs of instances."""
    folder = tmp_path_factory.mktemp("rented")
    for seed in (0, 1):
        scenario = digits("duration=300 ms", f"seed={seed}", cluster=RENTED, prices={"catalog": "aws-2020-p2p3"})
        simulate(scenario, folder / f"seed{seed}")
    return folder


@pytest.fixture
def here(tmp_path, rented, monkeypatch):
    """A reader's folder: a scenario, a sweep and runs of one, prices, and what was measured between places."""
    monkeypatch.chdir(tmp_path)
    steady(monkeypatch)

    def brief(scenario: Scenario, device: str, watch: float) -> float:
        return run_seconds(scenario, device, watch / 100)

    monkeypatch.setattr("dlion_sim.sweep.estimating.run_seconds", brief)
    (tmp_path / "my-scenario.yaml").write_text(find("quickstart").read_text())
    (tmp_path / "my-sweep.yaml").write_text(blocks(ROOT / "docs" / "sweeps.md", "yaml")[0])
    shutil.copy(ROOT / "dlion_sim" / "scenario" / "catalogs" / "aws-2020-p2p3.csv", tmp_path / "prices.csv")
    shutil.copytree(rented, tmp_path / "results" / "my-sweep")
    put_measurements(tmp_path)
    return tmp_path


@pytest.mark.parametrize("page", WITH_RUNS, ids=place)
def test_commands_run(here, page, monkeypatch, capsys):
    for arguments in commands(page):
        for name in {"machine.yaml", "network.yaml"} & set(arguments):
            (here / name).unlink(missing_ok=True)
        if not left_out(arguments):
            assert dlion(monkeypatch, *small(arguments)) == 0, (arguments, capsys.readouterr().err)


def test_every_exception_matches_a_command():
    shown = [" ".join(arguments) for page in WITH_RUNS for arguments in commands(page)]
    assert not [pattern for pattern in NOT_RUN if not any(re.match(pattern, text) for text in shown)]


def test_a_run_resumes_as_on_the_page(here, monkeypatch):
    page = ROOT / "docs" / "resume.md"
    first, then = commands(page)
    with monkeypatch.context() as patch:
        patch.setattr(Interrupts, "asked", lambda self: True)
        assert dlion(patch, *small(first)) == 130
    shutil.copytree("results/mine", "stopped")
    assert dlion(monkeypatch, *then) == 0
    shutil.rmtree("results/mine")
    shutil.move("stopped", "results/mine")
    shown: dict = {}
    exec(blocks(page, "python")[0], shown)
    assert shown["run"].summary["status"] == "completed"
