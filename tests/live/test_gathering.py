"""What nodes wrote becomes one run folder."""

import json
import os
import shutil

import pytest

from dlion_sim.assembly import Recorder
from dlion_sim.errors import InputError
from dlion_sim.live.gathering import gather, part_folder
from dlion_sim.results import (
    ClassesRow,
    Ending,
    MembershipRow,
    MetricsRow,
    PartsRow,
    RunWriter,
    TransfersRow,
    summarize,
)

ABOUT = {"scenario": "made-up", "system": "dlion", "seed": 0}


def part_of(folder, rank, began, **told):
    """Of a worker that sent one message in packets, of two parts."""
    manifest = {**ABOUT, **told, "rank": rank, "run": "one", "workers": ["a/0", "a/1"], "versions": {}}
    writer = RunWriter.create(folder / f"rank-{rank}", scenario_yaml="name: made-up\n", manifest=manifest)
    writer.append(MetricsRow(5.0, 5.0, rank, "iteration", 1, 1.0, batch_size=8, compute_seconds=1.0, wait_seconds=0.0))
    lost = {"lost_bytes": 100, "resent_bytes": 0, "saved_bytes": 50, "delivered": began + 0.5}
    writer.append(TransfersRow(began, began + 1.0, rank, 1 - rank, "data", "contribution", 950, **lost))
    for large in (False, True):
        writer.append(PartsRow(began, rank, 1 - rank, "contribution", "push", 0, large, 500, 50, None))
    writer.append(MetricsRow(4.0, 4.0, rank, "arrivals", 0, 1.0, 0.25 + 0.5 * rank, batch_size=20))
    for time, accuracy in ((0.0, 0.75), (5.0, 0.5 + 0.25 * rank)):
        writer.append(ClassesRow(time, rank, 1, 0.5, 10, accuracy))
    known = {"iterations": {rank: 1}, "exchanges": {rank: 1}, "losses": {rank: (1.0, 1.0)}, "evaluations": []}
    seconds = {"wall_seconds": 5.0, "evaluation_seconds": 0.0}
    ending = Ending("completed", "duration", 5.0)
    writer.finish(
        summarize(
            **ABOUT, system_label="dlion", ending=ending, samples=8, wan_bytes=0, bytes_sent=950, **seconds, **known
        )
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


@pytest.mark.parametrize(
    ("devices", "of_all"),
    [(("cpu", "cpu"), "cpu"), (("cuda:1", "cuda:0"), "cuda:0, cuda:1"), (("cuda:0", "cpu"), "cpu, cuda:0")],
)
def test_it_is_told_what_each_node_computed_on(tmp_path, devices, of_all):
    for rank, device in enumerate(devices):
        name = "CPU" if device == "cpu" else "Big GPU"
        part_of(tmp_path / "parts", rank, 1.0, device=device, device_name=name)
    manifest = gather(tmp_path / "parts", tmp_path / "run").manifest
    assert [(node["device"], node["device_name"]) for node in manifest["nodes"]] == [
        (device, "CPU" if device == "cpu" else "Big GPU") for device in devices
    ]
    assert manifest["device"] == of_all


def test_what_came_of_a_stream_is_gathered_and_summed_up(tmp_path):
    for rank in (0, 1):
        part_of(tmp_path / "parts", rank, 1.0)
    run = gather(tmp_path / "parts", tmp_path / "run")
    assert run.classes()[["virtual_time", "worker"]].values.tolist() == [[0, 0], [0, 1], [5, 0], [5, 1]]
    assert run.arrivals()["accuracy"].tolist() == [0.25, 0.75]
    assert run.summary["stream"] == {"scored": 40, "online_accuracy": 0.5, "forgetting": 0.125, "adaptation": {}}


def written(folder, rank, incarnation, iterations, membership, stopped_by=None, cut=()):
    """The part of a worker that has done `iterations`, (time, number) each, and was killed if nothing stopped it.

    At the times `cut` it expected a kill.
    """
    about = {"rank": rank, "incarnation": incarnation, "run": "one", "workers": ["a/0", "a/1"], "versions": {}}
    writer = RunWriter.create(
        part_folder(folder, rank, incarnation), scenario_yaml="name: made-up\n", manifest={**ABOUT, **about}
    )
    spent = {"batch_size": 8, "compute_seconds": 1.0, "wait_seconds": 0.0}
    rows = [(time, "iteration", number, 1.0) for time, number in iterations] + [(time, "cut", 9, None) for time in cut]
    for time, *columns in sorted(rows):
        writer.append(MetricsRow(time, time, rank, *columns, **spent))
    for row in membership:
        writer.append(MembershipRow(*row))
    if stopped_by is None:
        writer.flush()
        return
    known = {"iterations": {rank: 1}, "exchanges": {rank: 1}, "losses": {rank: (1.0, 1.0)}, "evaluations": []}
    seconds = {"wall_seconds": 30.0, "evaluation_seconds": 0.0, "samples": 8, "wan_bytes": 0, "bytes_sent": 0}
    ending = Ending("completed", stopped_by, 30.0)
    writer.finish(summarize(**ABOUT, system_label="dlion", ending=ending, **seconds, **known))


def test_the_parts_of_all_incarnations_make_one_run(tmp_path):
    """Node 1 was killed twice, once by whoever ran the nodes and once by hand, and came back each time."""
    parts = tmp_path / "parts"
    noticed = [(10.25, 1, 0, "lost", 0), (15.0, 1, 0, "found", 0), (20.0, 1, 0, "lost", 0), (25.0, 1, 0, "found", 0)]
    written(parts, 0, 0, [(2.0, 1), (29.0, 9)], noticed, "duration")
    written(parts, 1, 0, [(2.0, 1), (9.0, 3)], [])
    written(parts, 1, 1, [(17.0, 5), (19.0, 6)], [(14.0, 1, 0, "up"), (16.0, 1, 0, "joined", 0, 2.0, 400, 4)])
    written(parts, 1, 2, [(28.0, 9)], [(24.0, 1, 0, "up"), (26.0, 1, 0, "joined", 0, 2.0, 400, 8)], "left")
    run = gather(parts, tmp_path / "run", membership=[MembershipRow(10.0, 1, 0, "down")])
    told = run.membership()[["what", "incarnation"]].values.tolist()
    assert told == [
        ["down", 0],
        ["lost", 0],
        ["up", 1],
        ["found", 1],
        ["joined", 1],
        ["lost", 1],
        ["up", 2],
        ["found", 2],
        ["joined", 2],
    ]
    lost = run.membership().query("what == 'lost'")["seconds"].tolist()
    assert lost[0] == pytest.approx(0.25)
    assert lost[1] != lost[1], "nobody told when it was killed by hand"
    assert run.iterations().query("worker == 1")["iteration"].tolist() == [1, 3, 5, 6, 9]
    assert (run.summary["status"], run.summary["stopped_by"]) == ("completed", "duration")
    assert [(each["rank"], each["incarnation"], each["status"]) for each in run.manifest["nodes"]] == [
        (0, 0, "completed"),
        (1, 0, "lost"),
        (1, 1, "lost"),
        (1, 2, "completed"),
    ]


def test_what_a_kill_cuts_counts_if_it_came(tmp_path):
    """Node 0 expected two: the first did not come."""
    written(tmp_path / "parts", 0, 0, [(2.0, 1), (7.0, 2)], [], cut=[5.0, 8.0])
    written(tmp_path / "parts", 1, 0, [(2.0, 1), (29.0, 9)], [], "duration", cut=[5.0])
    run = gather(tmp_path / "parts", tmp_path / "run", membership=[MembershipRow(8.0, 0, 0, "down")])
    assert run.metrics().query("kind == 'cut'")[["virtual_time", "worker"]].values.tolist() == [[8, 0]]
    assert run.outcome["availability"]["lost_seconds"] == 1


def test_where_all_have_left_that_is_how_the_run_has_ended(tmp_path):
    for rank in (0, 1):
        written(tmp_path / "parts", rank, 0, [(2.0, 1)], [(30.0, rank, 0, "left")], "left")
    run = gather(tmp_path / "parts", tmp_path / "run")
    assert (run.summary["status"], run.summary["stopped_by"]) == ("completed", "left")


def test_a_part_that_cannot_be_read_leaves_nothing_behind(tmp_path):
    for rank in (0, 1):
        part_of(tmp_path / "parts", rank, 1.0)
    (tmp_path / "parts" / "rank-1" / "metrics.parquet").unlink()
    with pytest.raises(InputError, match=r"rank-1/metrics.parquet: is missing"):
        gather(tmp_path / "parts", tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_the_manifest_has_the_last_lines_of_logs(tmp_path):
    part_of(tmp_path / "parts", 0, 1.0)
    log = tmp_path / "parts" / "rank-0.log"
    log.write_text("".join(f"{number} {'x' * 10_000}\n" for number in range(300)) + "".join("y\n" * 18) + "the e")
    (node,) = gather(tmp_path / "parts", tmp_path / "run").manifest["nodes"]
    assert [line[:5] for line in node["log"]] == ["299 x", *["y"] * 18, "the e"]


def test_only_a_file_of_the_parts_is_a_log(tmp_path):
    part_of(tmp_path / "parts", 0, 1.0)
    log = tmp_path / "parts" / "rank-0.log"
    (tmp_path / "private").write_text("for nobody else")
    log.symlink_to(tmp_path / "private")
    with pytest.raises(InputError, match=r"rank-0.log: is a link"):
        gather(tmp_path / "parts", tmp_path / "run")
    log.unlink()
    os.mkfifo(log)
    with pytest.raises(InputError, match=r"rank-0.log: cannot be read: it is no regular file"):
        gather(tmp_path / "parts", tmp_path / "run")


@pytest.mark.parametrize("wrong", ["abc", -1, 2**31])
def test_a_part_without_a_proper_incarnation_is_refused(tmp_path, wrong):
    part_of(tmp_path / "parts", 0, 1.0)
    change(tmp_path / "parts" / "rank-0", incarnation=wrong)
    with pytest.raises(InputError, match=r"manifest.json: incarnation: expected"):
        gather(tmp_path / "parts", tmp_path / "run")


def change(part, **told):
    """Alter the manifest of a part."""
    file = part / "manifest.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **told}))


def test_a_copy_of_a_part_is_refused(tmp_path):
    parts = tmp_path / "parts"
    for rank in (0, 1):
        part_of(parts, rank, 1.0)
    shutil.copytree(parts / "rank-1", parts / "rank-1.old")
    with pytest.raises(InputError, match=r"rank-1.old: has the same rank and incarnation as 'rank-1'"):
        gather(parts, tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("told", [{"workers": ["a/0", "a/2"]}, {"workers": ["a/0"]}, {"servers": ["s"]}], ids=str)
def test_parts_of_one_run_have_the_same_participants(tmp_path, told):
    for rank in (0, 1):
        part_of(tmp_path / "parts", rank, 1.0)
    change(tmp_path / "parts" / "rank-1", **told)
    with pytest.raises(InputError, match="parts: holds parts of different runs"):
        gather(tmp_path / "parts", tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_only_what_is_known_of_lateness_is_summed_up(tmp_path):
    late = {"computations": 2, "late": 1, "seconds_late": 0.5, "most_seconds_late": 0.5}
    part_of(tmp_path / "parts", 0, 1.0, late={**late, "reason": "moon"})
    part_of(tmp_path / "parts", 1, 1.0, late=late)
    total = {"computations": 4, "late": 2, "seconds_late": 1.0}
    assert gather(tmp_path / "parts", tmp_path / "run").summary["late"] == {**late, **total}


def test_any_error_leaves_no_half_of_a_run(tmp_path, monkeypatch):
    def fails(*_, **__):
        raise ZeroDivisionError

    monkeypatch.setattr(Recorder, "summary", fails)
    part_of(tmp_path / "parts", 0, 1.0)
    with pytest.raises(ZeroDivisionError):
        gather(tmp_path / "parts", tmp_path / "run")
    assert list((tmp_path / "run").iterdir()) == []
