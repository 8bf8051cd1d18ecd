"""Whole runs on real digits: against plain PyTorch, against closed forms, and against themselves."""

import math
from itertools import cycle, permutations

import numpy as np
import pandas as pd
import pytest
import torch

from dlion_sim.learning import BatchSampler, Evaluator, build, load, partition
from dlion_sim.protocol.compose import compose
from dlion_sim.protocol.events import ProfileReady
from dlion_sim.protocol.systems import SYSTEMS
from dlion_sim.protocol.worker import Worker
from dlion_sim.results import WALL_CLOCK_COLUMNS, Run
from dlion_sim.scenario import load as load_scenario
from dlion_sim.scenario import shipped
from dlion_sim.simulation import simulate
from dlion_sim.simulation.tcp import TCP
from dlion_sim.streams import stream, stream_seed
from tests.simulation.scenarios import CLOUDS, digits

LOCKSTEP = {
    "name": "dlion",
    "batching": {"growth": "none", "profile_batch_sizes": [8]},
    "exchange": {"n_min": 100},
    "synchronization": "synchronous",
    "knowledge_transfer": "none",
}
EQUAL = {"clouds": [{"name": "a", "workers": [{"count": 3, "compute": "8 cores", "nic": "100 Mbps"}]}]}


def plain_loop(seed: int, iterations: int, workers: int, batch_size: int, learning_rate: float):
    """One model, SGD on the union of all workers' batches: losses by iteration and worker, and the test accuracy."""
    data = load("digits")
    model = build("mlp", data.input_shape, data.task.outputs, stream_seed(seed, "model"))
    shards = partition("iid", data.train_targets.numpy(), workers, stream(seed, "partition"))
    samplers = [BatchSampler(shard, stream(seed, "batches", worker)) for worker, shard in enumerate(shards)]
    optimizer = torch.optim.SGD(model.parameters(), lr=learning_rate)
    mean, std = (torch.tensor(values).view(1, -1, 1, 1) for values in (data.transform.mean, data.transform.std))

    def logits(images):
        return model((images.float() / data.transform.scale - mean) / std)

    losses = []
    for _ in range(iterations):
        batches = [torch.from_numpy(sampler.take(batch_size)) for sampler in samplers]
        union = torch.cat(batches)
        each = torch.nn.functional.cross_entropy(
            logits(data.train_inputs[union]), data.train_targets[union], reduction="none"
        )
        optimizer.zero_grad()
        each.mean().backward()
        optimizer.step()
        losses.append(each.detach().view(workers, batch_size).mean(dim=1).tolist())
    with torch.no_grad():
        right = logits(data.test_inputs).argmax(dim=1) == data.test_targets
    return np.array(losses), float(right.float().mean())


@pytest.mark.parametrize("system", ["baseline", LOCKSTEP], ids=["baseline", "dlion with N=100 in lockstep"])
def test_synchronous_whole_gradients_are_large_batch_sgd(tmp_path, system):
    """Oracle 1: to float tolerance, a run's losses and accuracy are those of one model on the union of the batches."""
    run = simulate(digits("iterations=60", system=system, cluster=EQUAL, duration=None), tmp_path / "run")
    losses = run.iterations().pivot(index="iteration", columns="worker", values="loss").to_numpy()
    expected, accuracy = plain_loop(seed=1, iterations=60, workers=3, batch_size=16, learning_rate=0.1)
    np.testing.assert_allclose(losses, expected, rtol=2e-4, atol=1e-6)
    assert run.summary["accuracy"]["per_worker"] == pytest.approx([accuracy] * 3, abs=0.003)


def test_the_time_of_a_synchronous_iteration_is_computation_then_the_slowest_transfer(tmp_path):
    """Two workers: both compute for alpha + beta * b / cores, then cross-send; the 20 Mbps NIC and the RTT bound it."""
    cluster = {
        "clouds": [
            {"name": "a", "workers": [{"compute": "4 cores", "nic": "20 Mbps"}]},
            {"name": "b", "workers": [{"compute": "8 cores", "nic": "50 Mbps"}]},
        ],
        "wan": {"bandwidth": "unlimited", "rtt": "100 ms"},
    }
    run = simulate(digits("iterations=1", cluster=cluster, system="baseline", duration=None), tmp_path / "run")
    sent = run.links().set_index(["sender", "receiver"])["bytes"]
    slow, fast = 0.01 + 0.04 * 16 / 4, 0.01 + 0.04 * 16 / 8
    times = run.iterations().set_index("worker")["virtual_time"]
    # Each NIC carries one flow in each direction: both directions at 20 Mbps.
    assert times[1] == pytest.approx(slow + sent[0, 1] * TCP.data * 8 / 20e6 + 0.05, abs=1e-9)
    assert times[0] == pytest.approx(max(slow, fast + sent[1, 0] * TCP.data * 8 / 20e6 + 0.05), abs=1e-9)


def test_weights_under_way_do_not_delay_the_exchange_of_gradients(tmp_path):
    """One percent of a gradient an iteration, in step; at times all weights, which take as long as 30 iterations."""
    clouds = [{"name": "a", "workers": [{"count": 3, "compute": "8 cores", "nic": "200 kbps"}]}]
    system = {
        "name": "dlion",
        "batching": {"kind": "fixed"},
        "exchange": {"n": 1},
        "synchronization": "synchronous",
        "knowledge_transfer": {"kind": "weight_exchange", "period": 10},
    }
    scenario = digits("iterations=50", cluster={"clouds": clouds}, duration=None, system=system)
    by_iteration = simulate(scenario, tmp_path / "run").iterations().groupby("iteration")
    waits = by_iteration["wait_seconds"].max()
    assert waits.loc[11:].max() < 3 * waits.loc[:10].max(), "a link that is shared by two is half as fast"
    assert by_iteration["merged"].max().any()


def comparable(run: Run) -> pd.DataFrame:
    return run.metrics().drop(columns=list(WALL_CLOCK_COLUMNS))


@pytest.mark.parametrize("system", ["baseline", "dlion"])
def test_the_same_seed_gives_the_same_run_and_another_one_does_not(tmp_path, system):
    noisy = [
        {**CLOUDS[0], "workers": [{"count": 2, "compute": {"cores": 24, "noise": 0.2}, "nic": "50 Mbps"}]},
        CLOUDS[1],
    ]
    cluster = {"clouds": noisy, "wan": {"bandwidth": "40 Mbps", "rtt": "60 ms"}}

    def run(name, seed):
        return simulate(digits(cluster=cluster, system=system, seed=seed), tmp_path / name)

    first, again, other = run("first", 1), run("again", 1), run("other", 2)
    pd.testing.assert_frame_equal(comparable(first), comparable(again), check_exact=True)
    pd.testing.assert_frame_equal(first.links(), again.links(), check_exact=True)
    assert not comparable(first).equals(comparable(other))


def test_the_resolved_scenario_runs_again_to_the_same_result(tmp_path):
    first = simulate(digits(), tmp_path / "first")
    resolved = load_scenario(tmp_path / "first" / "scenario.yaml")
    assert resolved.system.exchange.parameters["n_min"] == 0.85
    again = simulate(resolved, tmp_path / "again")
    pd.testing.assert_frame_equal(comparable(first), comparable(again), check_exact=True)


def test_dlion_learns_on_unequal_machines_and_shares_the_work_by_their_speed(tmp_path):
    run = simulate(digits("duration=12 s", "system.knowledge_transfer.period=40"), tmp_path / "run")
    assert run.summary["accuracy"]["mean"] > 0.85
    sizes = run.iterations().groupby("worker")["batch_size"].last()
    assert sizes[0] == pytest.approx(6 * sizes[2], rel=0.2)
    late = run.iterations().query("virtual_time > 8")
    times = late.groupby("worker")["compute_seconds"].median()
    assert times.max() / times.min() < 1.2
    assert run.iterations()["merged"].sum() > 0


def test_profiling_takes_the_time_that_it_measures_while_cores_change(tmp_path, monkeypatch):
    """8 cores take 50 ms for 8 samples; of 16 they do half in 50 ms, and 2 cores the rest in 160; then 650 for 32."""
    measured, handle = [], Worker.handle

    def noting(worker, event, now):
        if isinstance(event, ProfileReady):
            measured.append((now, event.measurements))
        return handle(worker, event, now)

    monkeypatch.setattr(Worker, "handle", noting)
    cores = {"steps": {"0 s": "8 cores", "100 ms": "2 cores"}}
    cluster = {"clouds": [{"name": "a", "workers": [{"compute": cores}]}]}
    system = {"name": "dlion", "batching": {"profile_batch_sizes": [8, 16, 32], "profile_repeats": 1}}
    run = simulate(digits("iterations=1", cluster=cluster, system=system, duration=None), tmp_path / "run")
    ((ready, measurements),) = measured
    assert [size for size, _ in measurements] == [8, 16, 32]
    assert [seconds for _, seconds in measurements] == pytest.approx([0.05, 0.21, 0.65])
    assert ready == pytest.approx(0.05 + 0.21 + 0.65)
    (first,) = run.iterations().itertuples()
    assert first.virtual_time - first.compute_seconds == pytest.approx(ready)


def test_max_n_follows_a_link_whose_bandwidth_falls(tmp_path):
    nic = {"steps": {"0 s": "2 Mbps", "6 s": "200 kbps"}}
    cluster = {"clouds": [{"name": "a", "workers": [{"count": 2, "nic": nic}]}]}
    run = simulate(digits("duration=12 s", cluster=cluster), tmp_path / "run")
    links = run.links()
    before = links.query("2 < virtual_time <= 6")["n_percent"].mean()
    after = links.query("virtual_time > 8")["n_percent"].mean()
    assert after < before < 100


def test_true_bandwidths_fill_links_from_the_first_message_on_and_when_they_change(tmp_path):
    nic = {"steps": {"0 s": "2 Mbps", "4 s": "200 kbps"}}
    cluster = {"clouds": [{"name": "a", "workers": [{"count": 3, "nic": nic}]}]}
    system = {
        "name": "dlion",
        "exchange": {"bandwidth": "oracle_share"},
        "batching": "fixed",
        "knowledge_transfer": "none",
    }
    run = simulate(digits(cluster=cluster, system=system, duration="8 s"), tmp_path / "run")
    sent = run.links().groupby("virtual_time")["bytes"].sum()
    for time, rate in ((2, 2e6), (4, 2e6), (8, 2e5)):
        assert sent[time] == pytest.approx(3 * 2 * rate / 8, rel=0.15)


def test_true_bandwidths_follow_workers_that_are_lost_and_join(tmp_path):
    """While one of three is away, the other two have a link for themselves."""
    cluster = {"clouds": [{"name": "a", "workers": [{"count": 3, "nic": "1 Mbps"}]}]}
    system = {
        "name": "dlion",
        "exchange": {"bandwidth": "oracle_share"},
        "batching": "fixed",
        "knowledge_transfer": "none",
    }
    availability = {"workers": {"a/1": {"down": [["4 s", "8 s"]]}}}
    scenario = digits(cluster=cluster, system=system, duration="14 s", availability=availability)
    links = simulate(scenario, tmp_path / "run").links().set_index(["virtual_time", "sender", "receiver"])["bytes"]
    for time, pairs, rate in (
        (4, permutations(range(3), 2), 5e5),
        (8, [(0, 2), (2, 0)], 1e6),
        (14, permutations(range(3), 2), 5e5),
    ):
        for pair in pairs:
            assert links[time, *pair] == pytest.approx(2 * rate / 8, rel=0.2), (time, pair)


def test_an_iteration_rule_stops_every_worker_there(tmp_path):
    run = simulate(digits("iterations=7", duration=None), tmp_path / "run")
    assert run.summary["stopped_by"] == "iterations"
    assert run.summary["iterations"]["per_worker"] == [7, 7, 7]


def test_a_target_stops_the_run_at_the_evaluation_that_reaches_it(tmp_path):
    run = simulate(digits("target_accuracy=0.5", "duration=60 s"), tmp_path / "run")
    assert run.summary["stopped_by"] == "target_accuracy"
    assert run.summary["accuracy"]["mean"] >= 0.5
    assert run.summary["virtual_seconds"] == run.summary["time_to_accuracy"]["0.5"] < 60


def test_an_interrupted_run_leaves_a_readable_folder_that_says_so(tmp_path):
    asked = iter(range(10**6))
    run = simulate(digits(), tmp_path / "run", interrupted=lambda: next(asked) > 400)
    assert run.manifest["status"] == run.summary["status"] == "interrupted"
    assert 0 < run.summary["virtual_seconds"] < 4
    assert len(run.iterations()) == sum(run.summary["iterations"]["per_worker"]) > 0


DYING_LINK = {"steps": {"0 s": "10 Mbps", "3 s": "0 bps"}}
DYING_MACHINE = {"steps": {"0 s": "8 cores", "3 s": "0 cores"}}
EVER_CHANGING = {"steps": {"0 s": "10 Mbps", "1 s": "9 Mbps"}, "repeat": "2 s"}


@pytest.mark.parametrize(
    "workers",
    [
        [{"nic": "10 Mbps"}, {"nic": DYING_LINK}],
        [{"nic": "10 Mbps"}, {"nic": "10 Mbps", "compute": DYING_MACHINE}],
        [{"nic": "10 Mbps"}, {"nic": {"steps": {"0 s": "9 kbps", "3 s": "0 bps"}}}],
        [{"nic": EVER_CHANGING}, {"nic": DYING_LINK}],
        [{"nic": EVER_CHANGING}, {"nic": "10 Mbps", "compute": DYING_MACHINE}],
    ],
    ids=["link", "machine", "link under a long message", "link while another changes", "machine while a link changes"],
)
def test_a_stall_ends_a_run_after_its_last_event(tmp_path, workers):
    """An iteration takes about 0.1 s, or a message longer: from about 3 s on all wait for a resource that failed."""
    scenario = digits(
        "workload.evaluate_every=1000 s",
        cluster={"clouds": [{"name": "a", "workers": workers}]},
        system="baseline",
        duration="3000 s",
    )
    run = simulate(scenario, tmp_path / "run")
    assert run.summary["stopped_by"] == "stall"
    assert run.summary["virtual_seconds"] == pytest.approx(3, abs=0.2)
    assert run.evaluations()["virtual_time"].unique().tolist() == [0, run.summary["virtual_seconds"]]


def test_a_restored_link_is_no_stall(tmp_path):
    """Nothing is under way while it is down, for longer than two evaluations take to come."""
    nic = {"steps": {"0 s": "10 Mbps", "1 s": "0 bps", "9 s": "10 Mbps"}}
    cluster = {"clouds": [{"name": "a", "workers": [{"nic": "10 Mbps"}, {"nic": nic}]}]}
    run = simulate(digits(cluster=cluster, system="baseline", duration="10 s"), tmp_path / "run")
    assert run.summary["stopped_by"] == "duration"
    assert (run.iterations()["virtual_time"] > 9).sum() > 10


def test_an_asynchronous_worker_is_no_faster_than_its_links(tmp_path):
    cluster = {"clouds": [{"name": "a", "workers": [{"count": 2, "compute": "1000 cores", "nic": "1 Mbps"}]}]}
    system = {"name": "baseline", "synchronization": "asynchronous"}
    run = simulate(digits(cluster=cluster, system=system), tmp_path / "run")
    sent = run.links().query("sender == 0")["bytes"].sum()
    assert sent == pytest.approx(4 * 1e6 / 8, rel=0.1)
    assert (
        run.iterations().query("worker == 0")["iteration"].max()
        <= run.links().query("sender == 0")["gradients"].sum() + 3
    )


def test_bytes_and_samples_add_up(tmp_path):
    run = simulate(digits(system="baseline"), tmp_path / "run")
    assert run.links()["bytes"].sum() == run.summary["bytes_sent"]
    assert run.iterations()["batch_size"].sum() == run.summary["samples"]
    assert run.summary["virtual_seconds"] == 4
    assert list(run.evaluations()["virtual_time"].unique()) == [0, 2, 4]


def test_a_single_worker_trains_alone(tmp_path):
    cluster = {"clouds": [{"name": "a", "workers": [{}]}]}
    run = simulate(digits(cluster=cluster), tmp_path / "run")
    assert run.summary["bytes_sent"] == 0
    assert run.summary["iterations"]["mean"] > 10


@pytest.mark.parametrize("partition_kind", ["dirichlet", "label_shards"])
def test_other_partitions_run_and_are_in_the_manifest(tmp_path, partition_kind):
    run = simulate(digits(f"workload.partition={partition_kind}", "duration=1 s"), tmp_path / "run")
    histogram = np.array(run.manifest["partition"])
    assert histogram.shape == (3, 10)
    assert histogram.sum() == 1437
    assert math.isfinite(run.summary["accuracy"]["mean"])


@pytest.mark.parametrize(
    ("file", "system"),
    [
        (file, system)
        for files in [[*shipped()] * 2]
        for file, system in zip(files, cycle(sorted(SYSTEMS)), strict=False)
    ],
    ids=lambda each: getattr(each, "stem", each),
)
def test_every_shipped_scenario_runs_with_several_systems_and_every_system_in_several_scenarios(tmp_path, file, system):
    """On digits instead of the full datasets, and briefly."""
    seconds = 0.05 if len(load_scenario(file).cluster.workers) > 32 else 0.5
    overrides = ["workload.dataset=digits", "workload.model=mlp", f"duration={seconds} s", f"system={system}"]
    if "partition: owners" in file.read_text():
        overrides.append("workload.partition=iid")  # Digits have none.
    if "  stream:" in file.read_text():
        overrides.append("workload.stream.initial=50")  # They are few.
    run = simulate(load_scenario(file, overrides), tmp_path / "run")
    assert run.summary["status"] == "completed"
    assert run.summary["virtual_seconds"] == seconds
    assert len(run.summary["accuracy"]["per_worker"]) == len(run.manifest["workers"]) >= 2


@pytest.mark.parametrize(
    "system",
    [
        {"name": "hop", "synchronization": {"max_gap": 8}},
        {"name": "hop", "exchange": {"kind": "parameters", "staleness": 5}, "topology": "ring"},
        {"name": "baseline", "exchange": "dgc"},
        {"name": "dlion", "exchange": {"n": 10}},
        {"name": "dlion", "exchange": {"residual": "accumulate"}},
        {"name": "dlion", "exchange": {"bandwidth": "oracle_share"}},
        {"name": "dlion", "knowledge_transfer": {"kind": "weight_exchange", "period": 30}},
        {"name": "gaia", "exchange": {"barrier": "selective"}, "synchronization": {"staleness": 2}},
        {"name": "hop", "synchronization": {"max_gap": 8, "skip_from": 2}},
    ],
    ids=str,
)
def test_variants_of_systems_learn(tmp_path, system):
    cluster = {"clouds": CLOUDS, "wan": {"bandwidth": "unlimited", "rtt": "60 ms"}}
    run = simulate(digits(cluster=cluster, system=system, duration="15 s"), tmp_path / "run")
    assert run.summary["accuracy"]["mean"] > 0.75
    assert load_scenario(tmp_path / "run" / "scenario.yaml").system == compose(digits(system=system).system).spec


def test_on_a_graph_only_neighbours_exchange(tmp_path):
    cluster = {"clouds": [{"name": "a", "workers": [{"count": 6}]}]}
    run = simulate(digits(cluster=cluster, system="dpsgd", duration="2 s"), tmp_path / "run")
    links = {(sender, receiver) for sender, receiver in run.links()[["sender", "receiver"]].itertuples(index=False)}
    assert links == {(worker, (worker + step) % 6) for worker in range(6) for step in (1, -1)}


def test_dlion_learns_a_full_dataset(tmp_path, published):
    published("fashion-mnist")
    run = simulate(digits("workload.dataset=fashion_mnist", "duration=16 s"), tmp_path / "run")
    assert run.summary["accuracy"]["mean"] > 0.75


def evaluated_on(monkeypatch):
    """The test samples of each evaluation, as they happen; None is all."""
    samples = []
    evaluate = Evaluator.evaluate

    def observed(evaluator, replicas, number=None, moment=None):
        samples.append(number)
        return evaluate(evaluator, replicas, number, moment)

    monkeypatch.setattr(Evaluator, "evaluate", observed)
    return samples


def test_all_evaluations_of_a_run_are_on_the_same_samples_and_one_at_its_end_on_all(tmp_path, monkeypatch):
    """A curve whose last point is on other samples jumps there, by chance and not by learning."""
    samples = evaluated_on(monkeypatch)
    partly = simulate(digits("workload.evaluation_samples=100"), tmp_path / "partly")
    assert samples == [100, 100, 100, 360]
    wholly = simulate(digits(), tmp_path / "wholly")
    curve = partly.evaluations()
    assert curve["virtual_time"].tolist() == wholly.evaluations()["virtual_time"].tolist()
    assert (curve["accuracy"] * 100).round(6).mod(1).eq(0).all()
    assert partly.summary["full_accuracy"] == wholly.summary["full_accuracy"] == wholly.summary["accuracy"]
    assert partly.summary["accuracy"]["per_worker"] == curve["accuracy"][curve["virtual_time"] == 4.0].tolist()
    assert partly.manifest["evaluation_samples"] == {"curve": 100, "full": 360}
    (full,) = [rows for kind, rows in partly.metrics().groupby("kind", observed=True) if kind == "full_evaluation"]
    assert full["accuracy"].tolist() == wholly.summary["accuracy"]["per_worker"]
    assert set(wholly.metrics()["kind"]) == {"profile", "iteration", "evaluation", "unfinished"}


def test_no_evaluation_or_sample_of_queues_is_just_before_the_end(tmp_path):
    """A sum of ten floats of 0.1 is less than 1."""
    scenario = digits("workload.evaluate_every=0.1 s", "network.model=packets", duration="1 s")
    run = simulate(scenario, tmp_path / "run")
    for rows, first in ((run.evaluations(), 0), (run.queues(), 1)):
        times = rows["virtual_time"].unique().tolist()
        assert times == pytest.approx([count / 10 for count in range(first, 11)])
        assert times[-1] == 1


def test_a_longer_run_has_the_same_curve_at_first(tmp_path):
    def curve(duration):
        scenario = digits("workload.evaluation_samples=100", f"duration={duration} s", "workload.evaluate_every=2 s")
        return simulate(scenario, tmp_path / str(duration)).evaluations().drop(columns="wall_time")

    shorter, longer = curve(4), curve(6)
    pd.testing.assert_frame_equal(shorter, longer[longer["virtual_time"] <= 4.0])


def test_the_share_of_evaluation_is_that_of_the_evaluators_own_calls(tmp_path, monkeypatch):
    """By a clock that advances by 2 s with each of these calls, and by 1/8 s with each event."""
    wall, evaluations, events = 0.0, 0, 0
    evaluate = Evaluator.evaluate

    def slow(evaluator, replicas, number=None, moment=None):
        nonlocal wall, evaluations
        wall, evaluations = wall + 2, evaluations + 1
        return evaluate(evaluator, replicas, number, moment)

    def tick():
        nonlocal wall, events
        wall, events = wall + 1 / 8, events + 1
        return False

    monkeypatch.setattr(Evaluator, "evaluate", slow)
    monkeypatch.setattr("time.perf_counter", lambda: wall)
    scenario = digits("workload.evaluation_samples=100", "target_accuracy=0.5", "duration=60 s")
    summary = simulate(scenario, tmp_path / "run", interrupted=tick, checkpoint_every=None).summary
    assert evaluations >= 3, "at the start, and twice at the end: on the curve's samples, and on all"
    assert summary["wall_seconds"] == 2 * evaluations + events / 8
    assert summary["evaluation_share"] == 2 * evaluations / summary["wall_seconds"]


def test_a_target_is_reached_on_the_samples_of_the_curve(tmp_path, monkeypatch):
    samples = evaluated_on(monkeypatch)
    scenario = digits("target_accuracy=0.5", "duration=60 s", "workload.evaluation_samples=100")
    run = simulate(scenario, tmp_path / "run")
    assert run.summary["stopped_by"] == "target_accuracy"
    assert samples[-2:] == [100, 360]
    assert run.summary["time_to_accuracy"]["0.5"] == run.summary["virtual_seconds"]
    curve = run.evaluations().groupby("virtual_time")["accuracy"].mean()
    assert (curve.iloc[:-1] < 0.5).all()
    assert curve.iloc[-1] >= 0.5
