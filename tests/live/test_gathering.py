"""What nodes wrote becomes one run folder."""

from dlion_sim.live.gathering import gather
from dlion_sim.results import ClassesRow, Ending, MetricsRow, PartsRow, RunWriter, TransfersRow, summarize

ABOUT = {"scenario": "made-up", "system": "dlion", "seed": 0}


def part_of(folder, rank, began):
    """Of a worker that sent one message in packets, of two parts."""
    manifest = {**ABOUT, "rank": rank, "run": "one", "workers": ["a/0", "a/1"], "versions": {}}
    writer = RunWriter.create(folder / f"rank-{rank}", scenario_yaml="name: made-up\n", manifest=manifest)
    writer.metrics(MetricsRow(5.0, 5.0, rank, "iteration", 1, 1.0, batch_size=8, compute_seconds=1.0, wait_seconds=0.0))
    lost = {"lost_bytes": 100, "resent_bytes": 0, "saved_bytes": 50, "delivered": began + 0.5}
    writer.transfers(TransfersRow(began, began + 1.0, rank, 1 - rank, "data", "contribution", 950, **lost))
    for large in (False, True):
        writer.parts(PartsRow(began, rank, 1 - rank, "contribution", "push", 0, large, 500, 50, None))
    writer.metrics(MetricsRow(4.0, 4.0, rank, "arrivals", 0, 1.0, 0.25 + 0.5 * rank, batch_size=20))
    for time, accuracy in ((0.0, 0.75), (5.0, 0.5 + 0.25 * rank)):
        writer.classes(ClassesRow(time, rank, 1, 0.5, 10, accuracy))
    known = {"iterations": {rank: 1}, "exchanges": {rank: 1}, "last_losses": {rank: 1.0}, "evaluations": []}
    seconds = {"wall_seconds": 5.0, "evaluation_seconds": 0.0}
    ending = Ending("completed", "duration", 5.0)
    writer.finish(
        summarize(**ABOUT, system_label="dlion", ending=ending, samples=8, bytes_sent=950, **seconds, **known)
    )


def test_what_became_of_packets_is_gathered_and_summed_up(tmp_path):
    for rank, began in enumerate((2.0, 1.0)):
        part_of(tmp_path / "parts", rank, began)
    run = gather(tmp_path / "parts", tmp_path / "run")
    assert run.parts()[["sender", "large", "lost_bytes"]].values.tolist() == [
        [1, False, 50],
        [1, True, 50],
        [0, False, 50],
        [0, True, 50],
    ]
    assert run.summary["transport"] == {
        "lost": 0.1,
        "resent": 0.0,
        "saved": 0.05,
        "messages": 2,
        "completion": {"mean": 0.5, "p50": 0.5, "p99": 0.5},
    }


def test_what_came_of_a_stream_is_gathered_and_summed_up(tmp_path):
    for rank in (0, 1):
        part_of(tmp_path / "parts", rank, 1.0)
    run = gather(tmp_path / "parts", tmp_path / "run")
    assert run.classes()[["virtual_time", "worker"]].values.tolist() == [[0, 0], [0, 1], [5, 0], [5, 1]]
    assert run.arrivals()["accuracy"].tolist() == [0.25, 0.75]
    assert run.summary["stream"] == {"scored": 40, "online_accuracy": 0.5, "forgetting": 0.125, "adaptation": {}}
