"""The commands and claims of the page on language models."""

import re
import shlex
from pathlib import Path

import pytest

from dlion_sim.results import Run
from dlion_sim.scenario import find, load
from dlion_sim.simulation import simulate
from dlion_sim.simulation.evaluations import Evaluations
from tests.command import dlion

PAGE = (Path(__file__).parents[1] / "docs" / "language-models.md").read_text()
COMMANDS = [shlex.split(line) for line in re.findall(r"^\$ dlion (.*)$", PAGE, re.MULTILINE)]
UNEVALUATED = Evaluations, "evaluate_fully", lambda *_: None
"""Evaluating each worker on all test samples at the end takes most of a run's time; one run here does it."""


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """The run of each command, by what the page calls its folder."""
    folder = tmp_path_factory.mktemp("page")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        (text,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
        Path("small.yaml").write_text(text)
        for command in COMMANDS:
            named = command if "--output" in command else [*command, "--output", "small"]
            assert dlion(patch, *named, "--quiet") == 0
            patch.setattr(*UNEVALUATED)
    return {each.name: Run.open(each) for each in folder.iterdir() if each.is_dir()}


def payload(run):
    """Bytes of the largest message."""
    return int(run.transfers()["bytes"].max())


def test_its_commands_run(runs):
    assert sorted(runs) == ["adapters", "charged", "ring", "small", "whole"]
    for run in runs.values():
        assert run.summary["status"] == "completed"
        assert run.manifest["metric"]["name"] == "perplexity"


def test_it_learns(runs):
    metric = runs["small"].evaluations().groupby("virtual_time")["metric"].mean()
    assert metric.iloc[0] == pytest.approx(84, rel=0.1)
    assert metric.iloc[-1] < 60


def test_workers_exchange_once_a_period(runs):
    assert len(runs["small"].transfers()) == 4 * 3 * 20 / 5
    assert len(runs["whole"].transfers()) == 4 * 3 * 20
    assert len(runs["ring"].transfers()) == 4 * 2 * 3 * 20 / 5


def test_only_adapters_are_sent(runs):
    adapters = 2 * 4 * (16 + 48)
    assert runs["adapters"].manifest["parameters"] == adapters
    assert 0 < payload(runs["adapters"]) - 4 * adapters < 64
    assert payload(runs["small"]) > 10 * payload(runs["adapters"])


def test_costs_are_those_of_a_larger_model(runs):
    assert payload(runs["charged"]) == pytest.approx(4 * 1.3e9, rel=1e-6)
    assert runs["charged"].summary["cost_as"] == {"parameters": "1.3 B", "flops": "16 TFLOP"}


@pytest.mark.parametrize("workers", [4, 16])
def test_the_table_of_routes_and_precisions_is_current(tmp_path, monkeypatch, workers):
    """Megabytes of an exchange: sent, and of these between the clouds."""
    monkeypatch.setattr(*UNEVALUATED)
    (text,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "small.yaml").write_text(text)
    cells = []
    for route in ("all_to_all", "ring"):
        for precision in ("fp32", "fp16"):
            half = workers // 2
            settings = [f"cluster.clouds.{cloud}.workers.0.count={half}" for cloud in range(2)]
            settings += [f"system.exchange={{route: {route}, precision: {precision}, period: 2}}", "iterations=2"]
            run = simulate(load(tmp_path / "small.yaml", settings), tmp_path / route / precision)
            links = run.links()
            wan = links[(links["sender"] < half) != (links["receiver"] < half)]
            cells += [f"{links['bytes'].sum() / 1e6:.2f}, {wan['bytes'].sum() / 1e6:.2f}"]
    assert f"| {workers} | {' | '.join(cells)} |" in PAGE


def test_the_times_with_and_without_a_ring_are_current(runs, tmp_path, monkeypatch):
    monkeypatch.setattr(*UNEVALUATED)
    monkeypatch.chdir(tmp_path)
    (text,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    Path("small.yaml").write_text(text)
    ring = simulate(load(Path("small.yaml"), ["system.exchange.route=ring"]), Path("ring"))
    seconds = [run.summary["virtual_seconds"] for run in (ring, runs["small"])]
    assert "20 iterations take {:.2f} s with a ring and {:.2f} s without (4 workers)".format(*seconds) in PAGE


def test_the_shipped_scenario_is_valid():
    assert load(find("shakespeare_diloco")).workload.cost_as.parameters == 124e6
