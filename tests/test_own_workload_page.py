"""The page on own workloads: simulated, live and emulated."""

import json
import re
import sys
from pathlib import Path

import matplotlib
import pytest
import torch
import yaml

from dlion_sim.assembly import Setting
from dlion_sim.errors import InputError
from dlion_sim.learning import BatchSampler, partition
from dlion_sim.results import Run
from dlion_sim.scenario import dump, from_data, to_data
from dlion_sim.simulation import resume, simulate
from dlion_sim.streams import stream, stream_seed
from tests.command import dlion
from tests.simulation.checkpointing.test_checkpoint import WALL_CLOCK_FACTS, After, check_same
from tests.simulation.scenarios import digits

PAGE = (Path(__file__).parents[1] / "docs" / "own-workload.md").read_text()
WORKLOAD = yaml.safe_load(re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)[0])["workload"]
FAST = "workload.compute_time={alpha: 5 ms, beta: 1 ms}"
ONE = {"clouds": [{"name": "a", "workers": [{"count": 1, "compute": "8 cores"}]}]}
TWO = {"clouds": [{"name": "a", "workers": [{"count": 2, "compute": "100 cores", "nic": "100 Mbps"}]}]}


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """The page's files, in the current folder."""
    (tmp_path / "waves.py").write_text("\n".join(re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path.copy())
    yield tmp_path
    sys.modules.pop("waves", None)


def waves(*overrides, **keys):
    return digits(*overrides, workload=WORKLOAD, **keys)


def test_the_workload_is_learned(here):
    run = simulate(waves("duration=6 s", FAST), here / "run")
    assert run.manifest["metric"] == {"name": "rmse", "higher_is_better": False}
    assert run.manifest["own_code"]["workload.model"]["name"] == "waves:network"
    assert len(run.manifest["own_code"]["workload.dataset"]["source"]) == 16
    assert run.manifest["partition"] == [[534], [533], [533]]
    evaluations = run.evaluations()
    assert evaluations["accuracy"].isna().all()
    first, last = (evaluations[evaluations["virtual_time"] == time]["metric"].mean() for time in (0.0, 6.0))
    assert last < 0.6 * first
    assert run.summary["metric"]["mean"] == pytest.approx(last)
    assert not {"accuracy", "final_accuracy", "time_to_accuracy"} & set(run.summary)
    by_loss = evaluations["loss"] ** 0.5
    assert evaluations["metric"].tolist() == pytest.approx(by_loss.tolist())


def test_a_single_worker_equals_a_plain_loop_to_the_bit(here):
    overrides = ("iterations=40", FAST)
    run = simulate(waves(*overrides, cluster=ONE, system="baseline", duration=None), here / "run")

    import waves as own

    points, heights, test_points, test_heights = own.waves()
    with torch.random.fork_rng():
        torch.manual_seed(stream_seed(1, "model"))
        model = torch.nn.Sequential(
            torch.nn.Linear(1, 32), torch.nn.Tanh(), torch.nn.Linear(32, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1)
        )
    (shard,) = partition("iid", torch.zeros(1600).numpy(), 1, stream(1, "partition"))
    sampler = BatchSampler(shard, stream(1, "batches", 0))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for _ in range(40):
        batch = torch.from_numpy(sampler.take(32))
        loss = (model(points[batch]) - heights[batch]).square().sum() / 32
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert run.iterations()["loss"].tolist() == losses
    with torch.no_grad():
        rmse = (model(test_points) - test_heights).square().mean().sqrt().item()
    assert run.summary["metric"]["mean"] == pytest.approx(rmse, rel=1e-5)


def test_a_target_is_reached_from_above(here):
    run = simulate(waves("duration=60 s", "target=0.5", "workload.evaluate_every=0.2 s", FAST), here / "run")
    assert run.summary["stopped_by"] == "target"
    means = run.evaluations().groupby("virtual_time")["metric"].mean()
    assert (means.iloc[:-1] > 0.5).all()
    assert means.iloc[-1] <= 0.5
    assert run.summary["time_to_metric"] == {"0.5": means.index[-1]}


def test_a_target_of_accuracy_is_the_target_accuracy(here):
    one, other = (simulate(digits(f"{key}=0.5"), here / key) for key in ("target", "target_accuracy"))
    assert one.summary == other.summary | {key: one.summary[key] for key in WALL_CLOCK_FACTS}
    assert one.summary["stopped_by"] == "target_accuracy"
    with pytest.raises(InputError, match="target: no accuracy is 50; allowed: more than 0, up to 1, e"):
        simulate(digits("target=50"), here / "none")


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (["target=0.5", "target_accuracy=0.5"], "target and target_accuracy exclude each other"),
        (["target=0.5", "duration=null"], "target may never be reached"),
        (["target=low"], "target: must be a number"),
    ],
)
def test_invalid_targets_are_refused(overrides, words):
    with pytest.raises(InputError, match=words):
        digits(*overrides)


def test_owners_stay_together(here):
    setting = Setting.of(waves("workload.dataset=waves:buoys", "workload.partition=owners"))
    at = [set((shard % 12).tolist()) for shard in setting.shards]
    assert sorted(owner for own in at for owner in own) == list(range(12))
    assert [len(own) for own in at] == [4, 4, 4]
    assert torch.equal(setting.dataset.sample, setting.dataset.train_inputs[:1] / 2)


def test_runs_of_several_metrics_are_not_compared(here, monkeypatch, capsys):
    simulate(waves("duration=1 s", FAST), here / "runs" / "waves")
    simulate(digits("duration=1 s"), here / "runs" / "digits")
    for command in (["compare", "runs"], ["plot", "accuracy", "runs", "-o", "a.svg"]):
        assert dlion(monkeypatch, *command) == 2
        assert re.search("waves: is evaluated by rmse, and runs/digits by accuracy", capsys.readouterr().err)
    assert dlion(monkeypatch, "export", "--to", "csv", "runs", "-o", "csv") == 0
    assert "metric_name" in (here / "csv" / "evaluations.csv").read_text().splitlines()[0]


def test_a_run_resumes_to_the_bit_with_the_same_source_only(here):
    stopped = simulate(waves(), here / "run", interrupted=After(60)).folder
    (here / "copy").mkdir()
    for file in stopped.iterdir():
        (here / "copy" / file.name).write_bytes(file.read_bytes()) if file.is_file() else None
    check_same(resume(stopped), simulate(waves(), here / "whole"))
    sys.modules.pop("waves")
    with (here / "waves.py").open("a") as file:
        file.write("# changed\n")
    with pytest.raises(InputError, match=r"was saved with waves .*, and here is"):
        resume(here / "copy")


def test_live_nodes_equal_a_simulation_to_the_bit(here, monkeypatch):
    written = to_data(waves("iterations=5", cluster=TWO, system="baseline", duration=None))
    written.pop("modules", None)
    (here / "small.yaml").write_text(yaml.safe_dump(written))
    (here / "other").mkdir()
    monkeypatch.chdir("other")
    assert dlion(monkeypatch, "live", "../small.yaml", "-q", "-o", "live") == 0
    live = Run.open(here / "other" / "live")
    simulated = simulate(from_data(live.scenario), here / "simulated")
    one, other = (run.iterations().sort_values(["worker", "iteration"])["loss"].tolist() for run in (live, simulated))
    assert one == other
    assert live.summary["metric"] == simulated.summary["metric"]


SEARCH = """\
base: small.yaml
search:
  trials: 2
  metric: rmse
  sampler: random
  over: {workload.optimizer.learning_rate: {log_uniform: {from: 0.0001, to: 0.3}}}
"""


def test_searches_and_comparisons_minimize_the_error(here, monkeypatch, capsys):
    scenario = waves("workload.validation=0.1", FAST, duration="2 s")
    (here / "small.yaml").write_text(dump(scenario))
    (here / "search.yaml").write_text(SEARCH)
    assert dlion(monkeypatch, "sweep", "search.yaml", "-o", "found", "--jobs", "1") == 0
    told = capsys.readouterr().out
    found = {trial: Run.open(here / "found" / trial) for trial in ("trial-0000", "trial-0001")}
    least = min(found.values(), key=lambda run: run.summary["metric"]["mean"])
    assert told.endswith(f"workload.optimizer.learning_rate={least.point['workload.optimizer.learning_rate']}\n")
    assert dlion(monkeypatch, "compare", "found") == 0
    table = capsys.readouterr().out
    assert "rmse" in table
    assert "accuracy" not in table
    for kind in ("accuracy", "accuracy-at", "time-to-accuracy", "deviation"):
        with matplotlib.rc_context({"svg.fonttype": "none"}):
            assert dlion(monkeypatch, "plot", kind, "found", "-o", f"{kind}.svg", "-q") == 0
        svg = (here / f"{kind}.svg").read_text()
        assert "rmse" in svg.lower()
        assert "accuracy" not in svg


@pytest.mark.emulation
def test_it_is_emulated(here, monkeypatch):
    (here / "small.yaml").write_text(dump(waves("iterations=5", cluster=TWO, system="baseline", duration=None)))
    assert dlion(monkeypatch, "emulate", "small.yaml", "-q", "-o", "run") == 0
    assert json.loads((here / "run" / "manifest.json").read_text())["metric"]["name"] == "rmse"
