"""States of runs by their folders, and locks of sweep folders."""

import os
import subprocess
import sys
from contextlib import ExitStack

import pytest

from dlion_sim.errors import InputError
from dlion_sim.results import Run, RunWriter
from dlion_sim.scenario import dump
from dlion_sim.sweep import State, load_sweep, locked, survey
from dlion_sim.sweep.job import Job, work
from dlion_sim.sweep.lock import shared, token_of
from tests.sweep.scenarios import write_sweep

AXES = {"system": ["ako", "dlion"]}
RING = "name: baseline, synchronization: asynchronous"


def begin(point, output):
    job = Job.of(point, output, "cpu")
    about = {"scenario": "small", "system": "ako", "seed": 1}
    return RunWriter.create(output / point.name, scenario_yaml=job.scenario, manifest={**about, **job.manifest})


def state_of(points, output):
    return [found.state.value for found in survey(points, output).values()]


def test_a_folder_has_the_state_of_its_run(tmp_path):
    points = load_sweep(write_sweep(tmp_path, axes={"seed": [1, 2, 3, 4, 5, 6]}))
    out = tmp_path / "out"
    for point, status in zip(points, ["completed", "interrupted", "failed"], strict=False):
        begin(point, out).finish({"status": status})
    begin(points[3], out)  # and killed
    (out / points[4].name).mkdir()
    (out / points[4].name / "manifest.json.tmp").write_text("{")  # killed even earlier
    assert state_of(points, out) == ["done", "interrupted", "failed", "interrupted", "to do", "to do"]
    begin(points[4], out)
    assert survey(points, out)[points[4].name].state is State.INTERRUPTED


def test_changes_without_effect_are_accepted(tmp_path):
    out = tmp_path / "out"
    (point, _) = load_sweep(write_sweep(tmp_path, axes=AXES))
    begin(point, out).finish({"status": "completed"})
    file = write_sweep(tmp_path, "description=Other words", axes={"system": ["ako", "hop", "gaia"]})
    (tmp_path / "base.yaml").write_text("# A comment\n" + (tmp_path / "base.yaml").read_text())
    assert state_of(load_sweep(file), out) == ["done", "to do", "to do"]


def test_a_change_of_all_runs_is_reported_once(tmp_path):
    out = tmp_path / "out"
    for point in load_sweep(write_sweep(tmp_path, axes=AXES)):
        begin(point, out).finish({"status": "completed"})
    with pytest.raises(InputError) as fault:
        survey(load_sweep(write_sweep(tmp_path, "workload.batch_size=24", axes=AXES)), out)
    assert "than ako is now (workload.batch_size was 16, is 24), and 1 more run with it" in str(fault.value)
    assert not fault.value.further


def test_a_scenario_in_other_words_is_the_same(tmp_path):
    write_sweep(tmp_path, axes=AXES)
    (point, _) = load_sweep(tmp_path / "sweep.yaml")
    begin(point, tmp_path / "out").finish({"status": "completed"})
    base = tmp_path / "base.yaml"
    base.write_text(base.read_text().replace("duration: 1 s", "duration: 1000 ms"))
    (again, _) = load_sweep(tmp_path / "sweep.yaml")
    assert again.digest == point.digest
    assert state_of([again], tmp_path / "out") == ["done"]


@pytest.mark.parametrize("kept", ["left_open", "not_by_an_earlier_state"])
def test_a_run_of_an_earlier_digest_continues(tmp_path, kept):
    """A run's scenario has the costs of its model and the parameters of its system, which the point's omits."""
    axes = {"system": ["dlion"], "workload.cost_as": {"large": {"parameters": 1e6}}}
    [point] = load_sweep(write_sweep(tmp_path, axes=axes))
    folder = tmp_path / "out" / point.name
    job = Job.of(point, folder.parent, "cpu")
    left = iter(range(60))
    work(job, lambda: next(left, None) is None, lambda _: None)
    manifest = folder / "manifest.json"
    manifest.write_text(manifest.read_text().replace(point.digest, "0" * 32).replace("left_open", kept))
    assert state_of([point], folder.parent) == ["interrupted"]
    assert work(job, lambda: False, lambda _: None).status == "completed"
    assert "resumed_at" in Run.open(folder).manifest
    assert Run.open(folder).manifest["sweep"]["digest"] == "0" * 32
    axes["workload.cost_as"] = {"large": {"parameters": 2e6}}
    with pytest.raises(InputError, match=r"workload\.cost_as\.parameters was 1 M, is 2 M"):
        survey(load_sweep(write_sweep(tmp_path, axes=axes)), folder.parent)


WAN = {"bandwidth": "9 Mbps", "rtt": "9 ms"}
TWO_CLOUDS = [{"name": name, "workers": [{"count": 1}]} for name in ("east", "west")]
RENTED = [{"name": name, "workers": [{"instance": "small", "compute": {"cores": 1}}]} for name in ("east", "west")]
CATALOG = "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,Price,SpotPrice,Region\nsmall,,,2,{},,here\n"
IPERF3 = '{{"start": {{"test_start": {{"protocol": "TCP"}}}}, "end": {{"sum_received": {{"bits_per_second": {}e6}}}}}}'


@pytest.mark.parametrize(
    ("values", "file", "content", "words"),
    [
        ({"cluster.wan": {**WAN, "matrix": "m.csv"}}, "m.csv", "Mbps,west\neast,{}\n", "matrix.east.west was 5 Mbps"),
        ({"cluster.wan": {**WAN, "matrix": "m"}}, "m/east-to-west.json", IPERF3, "matrix.east.west was 5.2"),
        (
            {"cluster.wan": {**WAN, "rtt_matrix": "m.csv"}},
            "m.csv",
            "ms,west\neast,{}\n",
            "rtt_matrix.east.west was 5 ms",
        ),
        ({"cluster.clouds": RENTED, "prices.catalog": "c.csv"}, "c.csv", CATALOG, "workers.0.price was 5.0, is 6.0"),
        ({"workload.model": "own_net_of_a_sweep:net"}, "own_net_of_a_sweep.py", "{}", "own_code.workload.model was"),
        ({"workload.lora.base": "base.pt"}, "base.pt", "{}", "lora_base was"),
    ],
)
def test_a_changed_file_is_a_changed_scenario(tmp_path, values, file, content, words):
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_text(content.format(5))
    axes = {"cluster.clouds": {"two": TWO_CLOUDS}, **{path: {"own": value} for path, value in values.items()}}
    [point] = load_sweep(write_sweep(tmp_path, axes=axes))
    begin(point, tmp_path / "out").finish({"status": "completed"})
    assert state_of(load_sweep(tmp_path / "sweep.yaml"), tmp_path / "out") == ["done"]
    (tmp_path / file).write_text(content.format(6))
    with pytest.raises(InputError) as fault:
        survey(load_sweep(tmp_path / "sweep.yaml"), tmp_path / "out")
    assert words in str(fault.value)


def test_a_changed_trace_is_a_changed_scenario(tmp_path):
    trace = tmp_path / "link.csv"
    trace.write_text("time_s,mbps\n0,5\n1,6\n")
    keys = {"axes": {"cluster.wan.bandwidth": {"measured": {"trace": "link.csv"}}, **AXES}}
    (point, _) = load_sweep(write_sweep(tmp_path, **keys))
    begin(point, tmp_path / "out").finish({"status": "completed"})
    trace.write_text("time_s,mbps\n0,5\n1,7\n")
    with pytest.raises(InputError, match=r"cluster\.wan\.bandwidth\.steps\.1 s was 6 Mbps, is 7 Mbps"):
        survey(load_sweep(tmp_path / "sweep.yaml"), tmp_path / "out")


def test_what_was_added_or_removed_is_told(tmp_path):
    for former, now, words in (("null", "2", "(iterations was not there, is 2)"), ("2", "null", "was 2, is not")):
        out = tmp_path / f"from {former}"
        [point] = load_sweep(write_sweep(tmp_path, f"iterations={former}", axes={"seed": [1]}))
        begin(point, out).finish({"status": "completed"})
        with pytest.raises(InputError) as fault:
            survey(load_sweep(write_sweep(tmp_path, f"iterations={now}", axes={"seed": [1]})), out)
        assert words in str(fault.value)


@pytest.mark.parametrize(
    ("former", "now", "words"),
    [
        ("workload.compute_time.beta=50 ms", "workload.compute_time.beta=null", "compute_time.beta was 50 ms, is not"),
        (
            "workload.cost_as={parameters: 1e6, flops: 3480 MFLOP}",
            "workload.cost_as={parameters: 1e6}",
            "(workload.cost_as.flops was 3.48 GFLOP, is not there)",
        ),
        ("workload.cost_as={parameters: 1e6}", "workload.cost_as=null", "(workload.cost_as.parameters was 1 M, is not"),
        ("system.exchange.n_min=2", "system=dlion", "(system.exchange.n_min was 2.0, is 0.85)"),
        (
            f"system={{{RING}, exchange: {{kind: ring_allreduce, bucket_bytes: 25000 kB}}}}",
            f"system={{{RING}, exchange: ring_allreduce}}",
            "(system.exchange.bucket_bytes was 23.84185791015625 MiB, is not there)",
        ),
    ],
)
def test_what_is_stated_no_more_is_a_change(tmp_path, former, now, words):
    [point] = load_sweep(write_sweep(tmp_path, former))
    begin(point, tmp_path / "out").finish({"status": "completed"})
    with pytest.raises(InputError) as fault:
        survey(load_sweep(write_sweep(tmp_path, now)), tmp_path / "out")
    assert words in str(fault.value)


def test_only_changes_are_told(tmp_path):
    """Neither the parameters that the run's system has by default, nor a size in another unit."""
    system = f"system={{{RING}, exchange: {{kind: ring_allreduce, bucket_bytes: 25000 kB}}}}"
    [point] = load_sweep(write_sweep(tmp_path, system))
    begin(point, tmp_path / "out").finish({"status": "completed"})
    with pytest.raises(InputError, match=r"than base is now \(seed was 1, is 2\)"):
        survey(load_sweep(write_sweep(tmp_path, system, "seed=2")), tmp_path / "out")


def test_a_run_without_a_sweep_is_refused(tmp_path):
    (point, _) = load_sweep(write_sweep(tmp_path, axes=AXES))
    RunWriter.create(tmp_path / "out/ako", scenario_yaml=dump(point.scenario()), manifest={}).finish(
        {"status": "completed"}
    )
    with pytest.raises(InputError, match="holds a run of another scenario"):
        survey([point], tmp_path / "out")


def test_all_corrupt_folders_are_reported(tmp_path):
    points = load_sweep(write_sweep(tmp_path, axes={"seed": list(range(12))}))
    for point in points:
        begin(point, tmp_path / "out")
        (tmp_path / "out" / point.name / "manifest.json").write_text("")
    with pytest.raises(InputError, match=r"cannot be read.* \(and 2 more\)") as fault:
        survey(points, tmp_path / "out")
    assert len(fault.value.further) == 9


def test_a_lock_is_held_until_its_last_process_ends(tmp_path):
    with locked(tmp_path / "out") as descriptor:
        holder = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, pass_fds=[descriptor])
    with pytest.raises(InputError, match="another sweep uses this folder"), locked(tmp_path / "out"):
        pass
    holder.kill()
    holder.communicate()
    with locked(tmp_path / "out"):
        pass


def test_a_task_in_a_folder_blocks_other_sweeps(tmp_path):
    with locked(tmp_path):
        token = token_of(tmp_path)
        work = ExitStack()
        work.enter_context(shared(tmp_path, token))
    with pytest.raises(InputError, match="another sweep uses this folder"), locked(tmp_path):
        pass
    work.close()
    with locked(tmp_path), pytest.raises(InputError, match="is not the sweep's folder on "), shared(tmp_path, token):
        pass
    with pytest.raises(InputError, match="is not the sweep's folder on "), shared(tmp_path / "else", token):
        pass


def test_unusable_folders_are_refused(tmp_path):
    RunWriter.create(tmp_path / "run", scenario_yaml="{}", manifest={})
    (tmp_path / "file").write_text("")
    for folder, words in (("run", "is a run folder"), ("file", "cannot be written"), ("file/below", "cannot be")):
        with pytest.raises(InputError, match=words), locked(tmp_path / folder):
            pass
    assert "out" not in os.listdir(tmp_path)
