"""What happens becomes rows, and sums that agree with them."""

import math
from dataclasses import replace

import pytest
import torch

from dlion_sim.assembly import Loss, Part, Recorder, Stall, Transfer
from dlion_sim.learning import Score
from dlion_sim.protocol.events import Report, Unfinished
from dlion_sim.protocol.knowledge.direct import WeightsRequest
from dlion_sim.protocol.messages import Contribution, Message
from dlion_sim.results import Ending, QueuesRow, Run, RunWriter

NAMES = {"scenario": "made-up", "system": "dlion", "seed": 3, "workers": ["a/0", "b/0"], "clouds": ["a", "b"]}


def report(iteration: int, loss: float = 1.0) -> Report:
    return Report(iteration, loss, 8, 16, None, 0, 0, 0.5, 0.25)


def gradient(n_percent: float | None) -> Message:
    return Message(0, Contribution(0, 8, n_percent), (torch.zeros(10),))


@pytest.fixture
def writer(tmp_path):
    return RunWriter.create(tmp_path / "run", scenario_yaml="name: made-up\n", manifest=NAMES)


def test_rows_and_summary_agree(writer):
    recorder = Recorder(writer, [0, 1], wall=lambda now: now / 10)
    assert recorder.score is None
    for worker in (0, 1):
        recorder.evaluation(worker, Score(2.0, 0.1), 0, 0.0)
    recorder.iteration(0, report(1), 1.0)
    recorder.iteration(0, report(2, math.nan), 2.0)
    recorder.iteration(1, report(1), 2.5)
    for worker, accuracy in ((0, 0.5), (1, 0.7)):
        recorder.evaluation(worker, Score(1.0, accuracy), recorder.iterations[worker], 4.0)
    assert recorder.score == pytest.approx(0.6)
    summary = recorder.summary(Ending("completed", "duration", 4.0), evaluation_seconds=0.1, target=0.55)
    assert (summary["scenario"], summary["system"], summary["seed"]) == ("made-up", "dlion", 3)
    assert (summary["virtual_seconds"], summary["wall_seconds"], summary["evaluation_share"]) == (4.0, 0.4, 0.25)
    assert summary["samples"] == 24
    assert summary["iterations"]["per_worker"] == [2, 1]
    assert summary["accuracy"]["per_worker"] == [0.5, 0.7]
    assert summary["time_to_accuracy"]["0.55"] == 4.0
    assert summary["diverged"] == [0]
    assert summary["spent"] == {"compute": [1.0, 0.5], "input": [0, 0], "profile": [0, 0], "wait": [0.5, 0.25]}
    writer.finish(summary)
    run = Run.open(writer.folder)
    assert list(run.iterations()["iteration"]) == [1, 2, 1]
    assert list(run.evaluations()["iteration"]) == [0, 0, 2, 1]
    assert list(run.metrics()["wall_time"]) == [0.0, 0.0, 0.1, 0.2, 0.25, 0.4, 0.4]


def test_waiting_for_samples_has_columns(writer):
    recorder = Recorder(writer, [0, 1])
    recorder.fed(0, Stall(0.125, 0.25))
    recorder.iteration(0, report(1), 1.0)
    recorder.iteration(1, report(1), 1.0)
    recorder.fed(0, Stall(0.25, 1.0))
    recorder.unfinished(0, Unfinished("unfinished", 2, 0.5), 1.5)  # The end cuts it off.
    summary = recorder.summary(Ending("completed", "duration", 1.5))
    assert summary["spent"] == {"compute": [0.125, 0.5], "input": [0.875, 0], "profile": [0, 0], "wait": [0.25, 0.25]}
    writer.finish(summary)
    rows = Run.open(writer.folder).metrics()
    assert rows["prep_seconds"].fillna(-1).tolist() == [0.125, -1, 0.25]
    assert rows["fetch_seconds"].fillna(-1).tolist() == [0.25, -1, 0.25]


@pytest.mark.parametrize(
    ("computed", "waited", "end"),
    [
        pytest.param(0.5, -0.25, 2.0, id="a wait that ends before it begins"),
        pytest.param(0.75, 0.5, 2.0, id="more than the time that has passed"),
        pytest.param(0.0, 0.0, 0.5, id="an iteration that ends before the one before"),
    ],
)
def test_impossible_times_are_refused(writer, computed, waited, end):
    recorder = Recorder(writer, [0, 1])
    recorder.iteration(0, report(1), 1.0)
    with pytest.raises(AssertionError, match="worker 0 cannot have"):
        recorder.iteration(0, replace(report(2), compute_seconds=computed, wait_seconds=waited), end)
    recorder.iteration(1, report(1), 0.75)
    recorder.iteration(0, report(2), 1.75)


def test_a_link_has_a_row_for_each_interval_in_which_it_carried_something(writer):
    recorder = Recorder(writer, [0, 1])
    recorder.sent(Transfer(1, gradient(40.0), 0.0), 0.5)
    recorder.sent(Transfer(1, gradient(20.0), 0.5), 1.0)
    recorder.sent(Transfer(0, Message(1, WeightsRequest()), 0.0), 1.0)
    recorder.end_interval(1.0)
    recorder.end_interval(2.0)
    recorder.sent(Transfer(1, gradient(None), 2.0), 3.0)
    recorder.end_interval(3.0)
    summary = recorder.summary(Ending("completed", "duration", 3.0))
    writer.finish(summary)
    links = Run.open(writer.folder).links()
    assert list(zip(links["virtual_time"], links["sender"], links["messages"], links["gradients"], strict=True)) == [
        (1.0, 0, 2, 2),
        (1.0, 1, 1, 0),
        (3.0, 0, 1, 1),
    ]
    assert links["n_percent"].fillna(-1).tolist() == [30.0, -1, -1]
    assert links["bytes"].sum() == summary["bytes_sent"] == summary["wan_bytes"]


def test_a_message_counts_as_it_is_carried_and_its_bytes_just_once(writer):
    recorder, transfer = Recorder(writer, [0, 1]), Transfer(1, gradient(40.0), 0.5)
    size = transfer.message.size
    for end, carried in ((1.0, 0.3 * size), (2.0, 0.3 * size), (3.0, 0.6 * size)):
        recorder.carried(transfer, carried)
        recorder.end_interval(end)
    recorder.sent(transfer, 3.5)
    cut_off = Transfer(0, Message(1, WeightsRequest()), 3.5)
    recorder.carried(cut_off, 2.9)
    recorder.cut_off(cut_off)
    recorder.end_interval(4.0)
    summary = recorder.summary(Ending("completed", "duration", 4.0))
    writer.finish(summary)
    links, transfers = Run.open(writer.folder).links(), Run.open(writer.folder).transfers()
    of_first = links[links["sender"] == 0]
    assert of_first["virtual_time"].tolist() == [1.0, 3.0, 4.0]
    assert of_first["bytes"].tolist() == [int(0.3 * size), int(0.6 * size) - int(0.3 * size), size - int(0.6 * size)]
    assert of_first["messages"].tolist() == [0, 0, 1]
    rows = transfers[["begin", "sender", "receiver", "channel", "kind", "bytes"]].values.tolist()
    assert rows == [[0.5, 0, 1, "data", "contribution", size], [3.5, 1, 0, "control", "weights?", 2]]
    assert transfers["end"].fillna(-1).tolist() == [3.5, -1]
    assert links["bytes"].sum() == transfers["bytes"].sum() == summary["bytes_sent"]


def lossy(began: float, loss: Loss | None) -> Transfer:
    return Transfer(1, gradient(None), began, loss=loss)


@pytest.mark.parametrize("recorded", [True, False])
def test_losses_of_packets_by_message_and_in_sums(writer, recorded):
    recorder = Recorder(writer, [0, 1], each_transfer=recorded)
    size = gradient(None).size
    parts = (Part(0, True, 30, 0, 0.75), Part(2, False, 10, 10, None))
    recorder.sent(lossy(1.0, Loss(lost=10, resent=5, saved=4, parts=parts, seconds=0.75)), 2.0)
    recorder.sent(lossy(2.0, Loss(lost=0, resent=0, saved=0)), 2.25)
    recorder.sent(lossy(2.0, None), 9.0)
    recorder.cut_off(lossy(8.0, None))
    recorder.append(QueuesRow(9.0, "east lan", 100, 0.5, 3, 1, 0))
    recorder.end_interval(9.0)
    summary = recorder.summary(Ending("completed", "duration", 9.0))
    writer.finish(summary)
    run = Run.open(writer.folder)
    transfers, rows = run.transfers(), run.parts()
    assert run.links()["bytes"].sum() == 3 * size - 4
    assert (len(transfers), len(rows), len(run.queues())) == ((4, 2, 1) if recorded else (0, 0, 1))
    if recorded:
        assert transfers["bytes"].tolist() == [size - 4, size, size, 0]
        assert transfers["lost_bytes"].fillna(-1).tolist() == [10, 0, -1, -1]
        assert transfers["resent_bytes"].fillna(-1).tolist() == [5, 0, -1, -1]
        assert transfers["saved_bytes"].fillna(-1).tolist() == [4, 0, -1, -1]
        assert transfers["delivered"].fillna(-1).tolist() == [1.75, -1, -1, -1]
        assert rows[["begin", "sender", "receiver", "variable"]].values.tolist() == [[1, 0, 1, 0], [1, 0, 1, 2]]
        assert rows["large"].tolist() == [True, False]
        assert rows["stage"].tolist() == ["push", "push"]
        assert rows["seconds"].fillna(-1).tolist() == [0.75, -1]
    told = summary["transport"]
    shares = [told[name] * 2 * size for name in ("lost", "resent", "saved")]
    assert shares == pytest.approx([10, 5, 4])
    assert told["messages"] == 2
    assert told["completion"] == {"mean": 0.5, "p50": 0.5, "p99": pytest.approx(0.745)}


def test_flows_have_no_totals_of_packets(writer):
    recorder = Recorder(writer, [0, 1])
    recorder.sent(lossy(0.0, None), 1.0)
    assert "transport" not in recorder.summary(Ending("completed", "duration", 9.0))


def test_a_worker_that_was_not_evaluated_has_no_accuracy_and_the_mean_is_of_the_others(writer):
    recorder = Recorder(writer, [0, 1, 2])
    for worker, accuracy in ((0, 0.5), (2, 0.75)):
        recorder.evaluation(worker, Score(1.0, accuracy), 5, 1.0)
    accuracy = recorder.summary(Ending("failed", "a loss", 1.0))["accuracy"]
    assert accuracy["per_worker"] == [0.5, None, 0.75]
    assert accuracy["mean"] == 0.625


def test_iterations_that_apply_contributions_are_exchanges(writer):
    recorder = Recorder(writer, [0, 1, 2])
    for iteration in range(1, 5):
        recorder.iteration(0, replace(report(iteration), applied=2 * (iteration == 3)), iteration)
        recorder.iteration(1, replace(report(iteration), merged=1), iteration)
        recorder.iteration(2, report(iteration), iteration)
    summary = recorder.summary(Ending("completed", "duration", 4.0))
    assert summary["exchanges"] == {"mean": pytest.approx(5 / 3), "per_worker": [1, 4, 0]}
    writer.finish(summary, manifest={"workers": ["a", "b", "c"]})
    assert Run.open(writer.folder).without_exchange == ["c"]


def test_a_summary_has_the_systems_label(tmp_path):
    manifest = {**NAMES, "replaced": {"exchange": "gossip:Gossip", "exchange.fanout": "2"}}
    writer = RunWriter.create(tmp_path / "run", scenario_yaml="", manifest=manifest)
    summary = Recorder(writer, [0]).summary(Ending("completed", "duration", 1.0))
    assert (summary["system"], summary["system_label"]) == ("dlion", "dlion, exchange gossip:Gossip, fanout 2")


def test_flushed_rows_outlive_the_process(writer):
    recorder = Recorder(writer, [0])
    recorder.iteration(0, report(1), 1.0)
    recorder.flush()
    assert len(Run.open(writer.folder).iterations()) == 1
