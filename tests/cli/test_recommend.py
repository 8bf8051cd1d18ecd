"""`dlion recommend`: output, resumption, executors, bad input."""

import json
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from dlion_sim.cli.recommend import CATALOG
from dlion_sim.recommend import SYSTEMS
from dlion_sim.results import Run
from dlion_sim.scenario import CATALOGS
from dlion_sim.sweep import Estimate
from tests.at_once import AtOnce
from tests.cli.test_bad_input import fails_with_one_line
from tests.command import dlion
from tests.recommend.digits import SCENARIO, write_scenario

FEW = ["--catalog", "catalog.csv", "--instances", "middle", "--counts", "2", "--systems", "ring_allreduce"]
WORKLOAD = SCENARIO["workload"]
ASKED = ["recommend", "learn.yaml", "-o", "out", *FEW, "--seeds", "1", "--jobs", "1"]


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    write_scenario(tmp_path)
    return tmp_path


@pytest.mark.parametrize("given", ["0.9", "90", "90 %"])
def test_the_target_may_be_a_fraction_or_in_percent(capsys, monkeypatch, here, given):
    targets = []
    monkeypatch.setattr("dlion_sim.cli.recommended.print_candidates", lambda study: targets.append(study.target))
    assert dlion(monkeypatch, *ASKED, "--deadline", "1 min", "--dry-run", "--target-accuracy", given) == 0, (
        capsys.readouterr().err
    )
    assert targets == [0.9]


@pytest.mark.usefixtures("at_once")
def test_an_interrupted_study_resumes(capsys, monkeypatch, here):
    assert dlion(monkeypatch, *ASKED, "--deadline", "1 min", "--dry-run") == 0
    plan = capsys.readouterr().out
    assert "ring_allreduce" in plan
    assert plan.endswith("2 candidates\n")
    assert re.search(
        r"^all candidates up to the deadline 60 s, with one seed, take about .* 1 in parallel", plan, re.MULTILINE
    )
    assert not (here / "out").exists()

    asked = iter([False] * 4)
    with monkeypatch.context() as stopped:
        stopped.setattr("dlion_sim.interrupts.Interrupts.asked", lambda _: next(asked, True))
        assert dlion(stopped, *ASKED, "--deadline", "1 min") == 130
    ahead, last = capsys.readouterr().out.splitlines()
    assert ahead.startswith("all candidates up to the deadline 60 s, with one seed, take about ")
    assert last == "interrupted; the same command continues"
    runs = {folder.name for folder in (here / "out").iterdir() if folder.is_dir()}
    assert 0 < len(runs) <= 2

    assert dlion(monkeypatch, *ASKED, "--deadline", "1 min") == 0
    said, progress = capsys.readouterr()
    assert "rung" in progress
    assert "completed" not in progress  # runs pause, rung by rung
    assert "with one seed, take about" not in said
    content = json.loads((here / "out/recommendation.json").read_text())
    assert content["winner"]["system"] == "ring_allreduce"
    for words in (
        content["summary"],
        "is the cheapest",
        "(deadline 60 s)",
        "only one seed was tried",
        "next best: ring_allreduce on 2 middle in each of east, west",
        "with one more hour",
        "with one more machine",
        "chosen by 10 % of the training samples, held out for it: not by the test set",
        "samples simulated for 2 candidates",
        "out/winner.yaml",
    ):
        assert words in said
    for file in ("pareto.png", "pareto.svg", "winner.yaml"):
        assert (here / "out" / file).exists()
    assert dlion(monkeypatch, *ASKED, "--deadline", "1 min", "--quiet") == 0
    assert capsys.readouterr() == ("", "")
    assert json.loads((here / "out/recommendation.json").read_text()) == content

    assert dlion(monkeypatch, "run", "out/winner.yaml", "-o", "again", "-q") == 0
    assert Run.open(here / "again").summary["stopped_by"] == "target_accuracy"


@pytest.mark.parametrize(("gpus", "device"), [([], "cpu"), (["--gpus-per-job", "0.5"], "cuda")])
def test_a_cluster_gets_the_jobs(monkeypatch, here, gpus, device):
    opened, started = [], []

    class Cluster(AtOnce):
        def __init__(self, runs, **given) -> None:
            super().__init__()
            opened.append((runs, given))

        def start(self, job) -> None:
            started.append(job)
            super().start(msgspec.structs.replace(job, device="cpu"))

    monkeypatch.setattr("dlion_sim.sweep.ray_task.prepare_ray", lambda private: None)
    monkeypatch.setitem(sys.modules, "dlion_sim.sweep.ray_cluster", SimpleNamespace(RayCluster=Cluster))
    ray = ["--executor", "ray", "--address", "head:6379", *gpus]
    assert dlion(monkeypatch, *ASKED, "--deadline", "1 min", "--quiet", *ray) == 0
    given = {"address": "head:6379", "jobs": 1, "gpus_per_job": 0.5 if gpus else 0.0, "output": Path("out")}
    assert opened == [(2, given)]  # once for all rungs
    assert {job.device for job in started} == {device}
    assert len({job.until for job in started}) > 1
    assert (here / "out/winner.yaml").exists()


@pytest.mark.usefixtures("at_once")
def test_without_a_candidate_in_bounds_it_prints_what_is_needed(capsys, monkeypatch, here):
    write_scenario(here, workload={**WORKLOAD, "validation": 0.2})
    assert dlion(monkeypatch, *ASKED, "--budget", "0.0001") == 1  # which is gone before anything is measured
    assert "none learns enough for an estimate" in capsys.readouterr().out
    assert dlion(monkeypatch, *ASKED, "--budget", "0.005") == 1
    said = capsys.readouterr().out
    assert "no candidate reaches the target (budget 0.005): it takes" in said
    assert "held out for it" not in said
    content = json.loads((here / "out/recommendation.json").read_text())
    assert content["winner"] is None
    assert content["needed"]["money"]["mean"] > 0.005


OWN = ["recommend", "learn.yaml", "-o", "out", "--machines", "own", "--systems", "ring_allreduce", "--seeds", "1"]


@pytest.mark.usefixtures("at_once")
def test_own_machines_need_no_bound_and_no_prices(capsys, monkeypatch, here):
    write_scenario(here, prices=None, duration="1 min")
    assert dlion(monkeypatch, *OWN, "--dry-run") == 0
    plan = capsys.readouterr().out
    assert re.search(r"system +┃ learning rate +┃\n", plan)
    assert plan.endswith("3 candidates\n")
    monkeypatch.setattr("dlion_sim.recommend.study.estimate", lambda *_, **__: Estimate(15.0, 15.0, 30.0))
    assert dlion(monkeypatch, *OWN, "--effort", "10s", "--dry-run") == 0
    plan = capsys.readouterr().out
    assert "effort 10 s: 2 of 3 candidates, 1 of 1 seeds" in plan
    assert plan.endswith("2 candidates\n")
    assert dlion(monkeypatch, *OWN) == 0
    said = capsys.readouterr().out
    headings = next(line for line in said.splitlines() if "learning rate" in line and "WAN bytes" in line)
    assert "cost" not in headings
    for words in (
        "is the fastest",
        "(deadline 60 s)",
        "training samples are placed as in the scenario (workload.partition: iid)",
        "chosen by 10 % of the training samples",
        "the last ones on a page: dlion report out/ring_allreduce-rate",
    ):
        assert words in said


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--instances", "middle"], "--instances: is about rented machines"),
        (["--counts", "2"], "--counts: is about rented machines"),
        (["--effort", "0 s"], "--effort: no time is left"),
        (["--effort", "soon"], "--effort: 'soon' is not a duration"),
        (["--effort", "5min", "--executor", "ray"], "--effort: is estimated on this machine only"),
        (["--budget", "2"], "--budget: the machines have no prices; allowed: --deadline 6h"),
    ],
)
def test_what_own_machines_lack_is_one_line(capsys, monkeypatch, here, arguments, words):
    write_scenario(here, prices=None)
    assert words in fails_with_one_line(capsys, monkeypatch, here, *OWN, *arguments)


@pytest.mark.parametrize("setting", ["workload.batch_size=x", "prices.egress=x", "workload.optimizer.bogus=1"])
def test_a_fault_in_an_override_names_it(capsys, monkeypatch, here, setting):
    assert dlion(monkeypatch, *ASKED, "--deadline", "1 min", "--dry-run", "--set", setting) == 2
    assert capsys.readouterr().err.splitlines()[-1].startswith(f"dlion: --set {setting}: ")


@pytest.mark.usefixtures("at_once")
def test_an_error_in_all_candidates_is_one_of_the_input(capsys, monkeypatch, here):
    write_scenario(here, workload={**WORKLOAD, "batch_size": 5000})
    assert dlion(monkeypatch, *ASKED, "--budget", "1") == 2
    line = capsys.readouterr().err.splitlines()[-1]
    assert line.startswith("dlion: learn.yaml: no candidate can be run; the first fails: workload.batch_size")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], ["has no bound", "--deadline 6h, or --budget 40"]),
        (["--deadline", "6h", "--budget", "4"], ["exclude each other"]),
        (["--deadline", "soon"], ["--deadline", "'soon' is not a duration"]),
        (["--deadline", "0 s"], ["--deadline", "no time is left"]),
        (["--budget", "-1"], ["--budget", "more than 0"]),
        (["--budget", "nan"], ["--budget", "more than 0"]),
        (["--budget", "1", "--counts", "1,x"], ["--counts", "e.g. 1,2,4"]),
        (["--budget", "1", "--counts", "0"], ["--counts", "e.g. 1,2,4"]),
        (["--budget", "1", "--catalog", "aws"], ["--catalog", "no catalog 'aws'", "aws-skypilot"]),
        (["--budget", "1", "--instances", "midle"], ["--instances", "did you mean 'middle'"]),
        (["--budget", "1", "--systems", "dlionn"], ["--systems: unknown system 'dlionn'", "did you mean 'dlion'"]),
        (["--budget", "1", "--target-accuracy", "900"], ["--target-accuracy", "no accuracy is 900", "e.g. 90, 90 %"]),
        (["--budget", "1", "--target-accuracy", "1"], ["--target-accuracy", "1 % or 100 %"]),
        (["--budget", "1", "--target-accuracy", "much"], ["--target-accuracy", "'much' is no number"]),
        (
            ["--budget", "1", "--target-accuracy", "best"],
            ["--target-accuracy", "is about own machines", "--machines own"],
        ),
        (
            ["--budget", "1", "--set", "target_accuracy=null"],
            ["target_accuracy", "--target-accuracy, e.g. 80, or one in"],
        ),
        (["--budget", "1", "--set", "workload.modle=x"], ["--set workload.modle=x: workload", "unknown key 'modle'"]),
        (["--budget", "1", "-o", "learn.yaml"], ["learn.yaml"]),
        (["--machines", "own"], ["--catalog: is about rented machines; allowed: --machines catalog"]),
        (["--budget", "1", "--gpus-per-job", "1"], ["--gpus-per-job", "needs --executor ray"]),
    ],
)
def test_bad_input_is_one_line(capsys, monkeypatch, here, arguments, words):
    line = fails_with_one_line(capsys, monkeypatch, here, *ASKED, *arguments)
    for word in words:
        assert word in line


def test_the_default_catalog_ships_and_the_help_names_the_systems(capsys, monkeypatch):
    assert CATALOG in CATALOGS
    monkeypatch.setenv("COLUMNS", "200")
    assert dlion(monkeypatch, "recommend", "--help") == 0
    said = " ".join(capsys.readouterr().out.split())
    assert all(system in said for system in SYSTEMS)
