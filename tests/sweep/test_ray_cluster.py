"""Jobs on a Ray cluster: equal results, and losses of a process, a machine or the sweep itself."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from uuid import uuid4

import pytest

from dlion_sim.errors import InputError
from dlion_sim.results import Run
from dlion_sim.sweep import Ended, Job, LocalProcesses, Progressed, load_sweep, locked, run_all
from dlion_sim.sweep.ray_task import prepare_ray
from tests.cli.test_sweep import contents
from tests.sweep.scenarios import write_sweep

pytest.importorskip("ray")
prepare_ray(private=False)

from ray.cluster_utils import Cluster  # noqa: E402

from dlion_sim.sweep.ray_cluster import Machine, RayCluster, slots, threads_per_job  # noqa: E402

SMALL = {"object_store_memory": 80_000_000, "include_dashboard": False}


@pytest.fixture(scope="module")
def cluster():
    """A head without CPUs for jobs, and two machines of one CPU each."""
    machines = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, **SMALL})
    for _ in range(2):
        machines.add_node(num_cpus=1, **SMALL)
    yield machines
    machines.shutdown()


@pytest.fixture(scope="module")
def output(tmp_path_factory):
    return tmp_path_factory.mktemp("ray")


@pytest.fixture(scope="module")
def executor(cluster, output):
    former = signal.getsignal(signal.SIGTERM)
    with (
        locked(output),
        RayCluster(3, address=cluster.address, jobs=None, gpus_per_job=0, output=output) as joined,
    ):
        assert signal.getsignal(signal.SIGTERM) is former
        yield joined


def jobs_of(folder, output, *overrides, **keys):
    return [Job.of(point, output, "cpu") for point in load_sweep(write_sweep(folder, *overrides, **keys))]


def ended(jobs, executor):
    return {event.name: event for event in run_all(jobs, executor, lambda: False) if isinstance(event, Ended)}


def working(cluster) -> list[int]:
    """The processes of the cluster that run a job."""
    return [process for machine in cluster.list_all_nodes() for process in tasks(machine)]


def tasks(machine) -> list[int]:
    """Those of a machine."""
    parent = machine.all_processes["raylet"][0].process.pid
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return [int(child) for child in children if Path(f"/proc/{child}/cmdline").read_bytes().startswith(b"ray::do")]


def wait_for(condition, seconds=60.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def started(folder, mark, *arguments) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-m", "dlion_sim", "sweep", "sweep.yaml", "--output", "out", "--executor", "ray", *arguments],
        cwd=folder,
        env={**os.environ, "DLION_TEST": mark},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def marked(mark) -> list[str]:
    """All processes started by the marked one."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if f"DLION_TEST={mark}".encode() in (process / "environ").read_bytes():
                found.append((process / "cmdline").read_text())
        except OSError:
            pass  # It has ended, or is another user's.
    return found


def test_results_equal_those_of_local_processes(tmp_path, executor, output):
    # 1000 samples a batch are more than a worker has.
    keys = {"axes": {"system": ["ako", "dlion"], "workload.batch_size": [16, 1000]}}
    jobs = jobs_of(tmp_path, output / "same", **keys)
    on_cluster = ended(jobs, executor)
    with (tmp_path / "lock").open("w") as lock, LocalProcesses(2, 1, lock=lock.fileno(), log=tmp_path / "log") as here:
        assert on_cluster == ended(jobs_of(tmp_path, tmp_path / "here", **keys), here)
    assert [event.status for event in on_cluster.values()].count("failed") == 2
    for system in ("ako", "dlion"):
        done = f"{system}-batch_size16"
        assert contents(output / "same" / done) == contents(tmp_path / "here" / done)
        assert "allowed: 1 to" in Run.open(output / "same" / f"{system}-batch_size1000").manifest["problem"]


def test_a_process_that_dies_fails_its_run_only(tmp_path, executor, cluster, output):
    folder = output / "killed"
    jobs = jobs_of(tmp_path, folder, "duration=10000 s", axes={"seed": [1]})
    jobs += jobs_of(tmp_path, folder, axes={"seed": [2, 3]})
    outcomes = {}
    for event in run_all(jobs, executor, lambda: False):
        if isinstance(event, Ended):
            outcomes[event.name] = event
        # The first run has had one machine, so the others have had the other one.
        if isinstance(event, Progressed) and set(outcomes) == {"seed2", "seed3"}:
            for process in working(cluster):
                os.kill(process, signal.SIGKILL)
    assert {name: event.status for name, event in outcomes.items()} == {
        "base": "failed",
        "seed2": "completed",
        "seed3": "completed",
    }
    assert "its process died" in outcomes["base"].problem
    assert Run.open(folder / "base").manifest["status"] == "failed"


def test_a_run_whose_machine_dies_restarts_elsewhere(tmp_path, executor, cluster, output):
    (job,) = jobs_of(tmp_path, output / "moved", "duration=10 s", axes={"seed": [1]})
    _, *workers = cluster.list_all_nodes()
    events = []
    dead = None
    for event in run_all([job], executor, lambda: False):
        events.append(event)
        if isinstance(event, Progressed) and not dead:
            (dead,) = (machine for machine in workers if tasks(machine))
            cluster.remove_node(dead, allow_graceful=False)
    cluster.add_node(num_cpus=1, **SMALL)
    assert events[-1] == Ended("base", "completed")
    assert Run.open(output / "moved/base").manifest["status"] == "completed"


def test_a_machine_without_the_folder_fails_the_run(tmp_path, executor, output):
    (job,) = jobs_of(tmp_path, output / "unseen", axes={"seed": [1]})
    token = (output / ".lock").read_text()
    (output / ".lock").write_text("of another folder")
    (end,) = ended([job], executor).values()
    (output / ".lock").write_text(token)
    assert end.status == "failed"
    assert f"{output}: is not the sweep's folder on {socket.gethostname()}" in end.problem
    assert Run.open(output / "unseen/base").manifest["problem"] == end.problem


def test_jobs_end_if_the_sweep_is_killed(tmp_path, cluster):
    write_sweep(tmp_path, "duration=10000 s", axes={"seed": [1, 2]}, names="s{seed}")
    sweep = started(tmp_path, uuid4().hex, "--address", cluster.address, "--jobs", "1")
    wait_for((tmp_path / "out/s1/manifest.json").exists)
    assert len(working(cluster)) == 1
    with pytest.raises(InputError, match="another sweep uses this folder"), locked(tmp_path / "out"):
        pass
    sweep.kill()
    sweep.communicate()
    wait_for(lambda: not working(cluster))
    with locked(tmp_path / "out"):
        pass


def test_ctrl_c_ends_a_local_ray_with_all_its_processes(tmp_path):
    write_sweep(tmp_path, "duration=10000 s", axes={"seed": [1, 2]}, names="s{seed}")
    mark = uuid4().hex
    sweep = started(tmp_path, mark, "--jobs", "1")
    wait_for((tmp_path / "out/s1/manifest.json").exists)
    assert any("raylet" in process for process in marked(mark))
    os.killpg(sweep.pid, signal.SIGINT)  # as the terminal does
    output, errors = sweep.communicate(timeout=180)
    assert sweep.returncode == 130, errors
    assert output == "2 runs: 2 to do\ninterrupted; the same command continues\n"
    assert "Traceback" not in errors
    assert Run.open(tmp_path / "out/s1").manifest["status"] == "interrupted"
    assert not (tmp_path / "out/s2").exists()
    wait_for(lambda: not marked(mark))


def test_missing_resources_are_reported(tmp_path, cluster):
    write_sweep(tmp_path, axes={"seed": [1]})
    sweep = started(tmp_path, "", "--address", cluster.address, "--gpus-per-job", "0.25")
    _, errors = sweep.communicate(timeout=180)
    assert sweep.returncode == 2
    (line,) = errors.splitlines()
    assert "no machine of the cluster has a CPU and 0.25 GPU for a job" in line


@pytest.mark.parametrize(
    ("address", "words"), [("127.0.0.1:1", "refused"), ("nowhere", r"no host:port\); allowed: the host:port of")]
)
def test_a_missing_cluster_is_reported(tmp_path, address, words):
    executor = RayCluster(1, address=address, jobs=1, gpus_per_job=0, output=tmp_path)
    with pytest.raises(InputError, match=words), executor:
        pass


def test_gpus_are_shared_by_fractions():
    assert slots([Machine(16, 2), Machine(4, 1), Machine(8, 0)], 1, 0) == 28
    assert slots([Machine(16, 2), Machine(4, 1), Machine(8, 0)], 1, 0.25) == 12
    assert slots([Machine(16, 2), Machine(4, 1), Machine(8, 0)], 2, 0.25) == 10
    assert slots([Machine(16, 2)], 1, 0.7) == 2  # none is split over two
    assert slots([Machine(16, 5)], 1, 2) == 2


def test_cpus_are_shared_while_all_jobs_fit():
    assert threads_per_job([Machine(4, 0), Machine(4, 0)], 8, 0) == 1
    assert threads_per_job([Machine(4, 0), Machine(4, 0)], 4, 0) == 2
    assert threads_per_job([Machine(3, 0), Machine(3, 0)], 3, 0) == 1  # 2 would leave a job waiting
    assert threads_per_job([Machine(16, 1)], 4, 0.25) == 4
    assert threads_per_job([Machine(1, 0)], 10, 0) == 1
