"""Whole runs over emulated networks, with nodes and emulators that are killed. Nothing is left behind."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from dlion_sim.emulation import emulate
from dlion_sim.emulation.leftovers import remove_leftovers
from dlion_sim.results import Run
from dlion_sim.scenario import dump
from emulation import validate
from tests import command
from tests.emulation.traces import control_groups, folder_of, node, traces
from tests.simulation.scenarios import digits

pytestmark = pytest.mark.emulation

DLION = {"name": "dlion", "batching": {"profile_batch_sizes": [4, 8], "profile_repeats": 1}}
ASYNCHRONOUS = {"name": "baseline", "synchronization": "asynchronous"}
TWO, THREE = (
    {"clouds": [{"name": "a", "workers": [{"count": count, "compute": "8 cores", "nic": "20 Mbps"}]}]}
    for count in (2, 3)
)


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path):
    remove_leftovers()
    before = traces()
    yield
    assert traces() == before
    assert not [left for left in tmp_path.iterdir() if left.name.startswith(".")]


@pytest.fixture
def dlion(monkeypatch, tmp_path):
    """Runs a command, and returns how it exits."""
    monkeypatch.chdir(tmp_path)
    return partial(command.dlion, monkeypatch)


@pytest.fixture
def emulator(tmp_path):
    """Begins to emulate a scenario, in a process of its own."""

    @contextmanager
    def run(scenario, *options):
        (tmp_path / "small.yaml").write_text(dump(scenario))
        files = [str(tmp_path / "small.yaml"), "--output", str(tmp_path / "run")]
        command = [sys.executable, "-m", "dlion_sim", "emulate", *files, *options]
        running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            yield running
        finally:
            running.terminate()
            running.communicate()

    return run


def finished(running, code: int = 0) -> str:
    output, errors = running.communicate(timeout=120)
    assert running.returncode == code, errors
    return output + errors


def until(condition, seconds: float = 60.0):
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, "it takes too long"
        time.sleep(0.02)
    return found


def begun(running, workers: int) -> Path:
    """The emulation's folder, once all have learned for a while."""
    folder = until(lambda: folder_of(running.pid))
    until(lambda: len(list(folder.glob("rank-*/links.parts/00001.parquet"))) == workers)
    return folder


def scenario(*overrides, **keys):
    return digits("workload.evaluate_every=0.5 s", *overrides, **{"cluster": TWO, "duration": "600 s", **keys})


def test_four_workers_learn_over_unequal_links(dlion, capsys):
    assert dlion("emulate", "emulation/four_workers", "--set", "duration=5 s", "--output", "run") == 0
    assert "lab/3" in capsys.readouterr().out
    run = Run.open(Path("run"))
    assert (run.summary["status"], run.summary["stopped_by"]) == ("completed", "duration")
    assert (run.manifest["way"], run.manifest["emulation"]["congestion_control"]) == ("emulate", "reno")
    assert not run.is_virtual
    sent = run.links().groupby("sender")["bytes"].sum()
    # No link carries more than it can; the wide ones carry more than the narrowest could.
    for worker, mbps in enumerate((10, 20, 30, 40)):
        assert 8 * sent[worker] < mbps * 1e6 * 5
    assert 8 * sent[3] > 10e6 * 5
    assert run.links()["n_percent"].between(0, 100).any()
    assert all(each["late"]["computations"] > 5 for each in run.manifest["nodes"])
    assert Path("run/accuracy.png").exists()


@pytest.mark.parametrize(
    "system", ["baseline", "ako", "gaia", "hop", DLION], ids=["baseline", "ako", "gaia", "hop", "dlion"]
)
def test_every_system_ends_cleanly(dlion, capfd, system):
    clouds = [{"name": name, "workers": [{"compute": "8 cores", "nic": "20 Mbps"}]} for name in ("a", "b")]
    cluster = {"clouds": clouds, "wan": {"bandwidth": "10 Mbps", "rtt": "20 ms"}}
    Path("small.yaml").write_text(dump(scenario(duration="3 s", cluster=cluster, system=system)))
    assert dlion("emulate", "small.yaml", "--quiet", "--output", "run") == 0
    assert capfd.readouterr() == ("", "")
    run = Run.open(Path("run"))
    assert run.summary["status"] == "completed"
    assert min(run.summary["iterations"]["per_worker"]) > 5
    assert [each["lost"] for each in run.manifest["nodes"]] == [{}, {}]


@pytest.mark.parametrize("system", [ASYNCHRONOUS, "hop"])
def test_others_continue_without_a_killed_node(emulator, tmp_path, system):
    with emulator(scenario(cluster=THREE, system=system)) as running:
        folder = begun(running, 3)
        os.kill(node(folder, 2), signal.SIGKILL)

        def intervals():
            return min(len([*(folder / f"rank-{rank}" / "links.parts").glob("*")]) for rank in (0, 1))

        before = intervals()
        until(lambda: intervals() >= before + 4)
        running.send_signal(signal.SIGINT)
        finished(running, code=130)
    run = Run.open(tmp_path / "run")
    assert [each["status"] for each in run.manifest["nodes"]] == ["interrupted", "interrupted", "lost"]
    last = run.iterations().groupby("worker")["virtual_time"].max()
    assert last[[0, 1]].min() > last[2]


def test_a_run_that_needs_a_killed_node_fails_with_a_reason(emulator, tmp_path):
    with emulator(scenario(system="baseline")) as running:
        os.kill(node(begun(running, 2), 1), signal.SIGKILL)
        killed = time.monotonic()
        output = finished(running, code=1)
    assert time.monotonic() - killed < 60
    assert "the run failed: synchronous training waits for every peer; lost: node 1" in output
    assert Run.open(tmp_path / "run").summary["status"] == "failed"


def test_an_interrupt_leaves_a_readable_run_and_nothing_else(emulator, tmp_path):
    with emulator(scenario(system="baseline")) as running:
        begun(running, 2)
        assert remove_leftovers() == 0  # It runs.
        running.send_signal(signal.SIGINT)
        finished(running, code=130)
    run = Run.open(tmp_path / "run")
    assert run.manifest["status"] == run.summary["status"] == "interrupted"
    assert len(run.iterations()) > 0


def test_an_interrupt_before_nodes_begin_leaves_nothing(emulator, tmp_path):
    with emulator(scenario(system="baseline")) as running:
        until(lambda: folder_of(running.pid))
        running.send_signal(signal.SIGTERM)
        assert "interrupted before it began" in finished(running, code=2)
    assert Run.open(tmp_path / "run").manifest["status"] == "failed"


def test_what_a_killed_emulator_leaves_is_removed_and_nothing_else(emulator, tmp_path):
    with emulator(scenario(system="baseline")) as running:
        folder = begun(running, 2)
        survivor = node(folder, 1)
        os.kill(survivor, signal.SIGSTOP)  # So that it cannot end by itself.
        running.kill()
        running.wait()
        clean = [sys.executable, "-m", "dlion_sim", "emulate", "--clean"]
        said = subprocess.run(clean, capture_output=True, text=True, check=True).stdout
        assert said == "removed the leftovers of 1 emulation\n"
        assert not folder.exists()
        until(lambda: not Path(f"/proc/{survivor}/environ").exists(), seconds=5)


def test_a_synchronous_system_is_predicted(dlion):
    """Within bounds for a busy machine; docs/fidelity.md has what is measured."""
    Path("small.yaml").write_text(dump(scenario("workload.model=cipher", duration="8 s", system="baseline")))
    assert dlion("validate", "small.yaml", "--output", "both", "--quiet") == 0
    found = json.loads(Path("both/fidelity.json").read_text())
    assert found["verdict"]["iteration_median"] < 0.2
    assert found["verdict"]["bytes"] < 0.2
    assert [row["iterations_simulated"] for row in found["workers"]] == [25, 25]
    assert Run.open(Path("both/emulated")).manifest["way"] == "emulate"


def test_a_folder_is_validated_by_packets_and_emulated_again(tmp_path, capsys):
    """Within bounds for a busy machine, as above."""
    (tmp_path / "small.yaml").write_text(
        dump(scenario("workload.model=cipher", name="small", duration="6 s", system="baseline"))
    )
    assert validate.main([str(tmp_path), "--output", str(tmp_path / "out"), "--also", "again", "packets"]) == 0
    assert "emulated again" in capsys.readouterr().out
    for further in ("again", "packets"):
        found = json.loads((tmp_path / "out" / "small" / f"{further}.json").read_text())
        assert found["bytes"] < 0.2


def test_queues_are_told(tmp_path):
    model = {"kind": "packets", "fair": True, "buffer": "30 packets", "delays": "receivers"}
    run = emulate(scenario(duration="3 s", system="baseline", network={"model": model}), tmp_path / "run")
    told = run.manifest["emulation"]
    assert (told["queues"], told["buffer"], told["delay"]) == ("fair", 30 * 1514, "transport")


UNEQUAL = {"clouds": [{"name": "a", "workers": [{"compute": f"{n} cores", "nic": "100 Mbps"} for n in (1, 3)]}]}


def unpaced(**keys):
    batching = {"growth": "none", "profile_batch_sizes": [32, 64, 128], "profile_repeats": 2}
    system = {"name": "dlion", "batching": batching, "knowledge_transfer": "none"}
    workload = ["workload.model=cipher", "workload.batch_size=400", "workload.evaluate_every=2 s"]
    return scenario(*workload, **{"cluster": UNEQUAL, "system": system, **keys})


def test_without_pacing_machines_have_unequal_parts_of_this_ones_cpu(dlion):
    Path("small.yaml").write_text(dump(unpaced(duration="6 s")))
    assert dlion("emulate", "small.yaml", "--no-pacing", "--quiet", "--output", "run") == 0
    run = Run.open(Path("run"))
    assert not run.manifest["paced"]
    slow, fast = run.manifest["emulation"]["cores"]
    assert fast == pytest.approx(3 * slow)
    assert set(run.iterations()["worker"]) == {0, 1}


def share(group):
    """The cores that the kernel allows a control group."""
    if (group / "cpu.max").exists():
        quota, period = map(int, (group / "cpu.max").read_text().split())
    else:
        quota, period = (int((group / f"cpu.cfs_{what}_us").read_text()) for what in ("quota", "period"))
    return quota / period


def test_what_a_killed_emulator_leaves_without_pacing_is_removed(emulator):
    with emulator(unpaced(), "--no-pacing") as running:
        folder = begun(running, 2)
        groups = [group for group, of_emulation in control_groups() if of_emulation == folder]
        assert len(groups) == 2
        assert all((group / "cgroup.procs").read_text() for group in groups)
        assert max(map(share, groups)) == pytest.approx(3 * min(map(share, groups)), rel=0.01)
        os.kill(node(folder, 1), signal.SIGSTOP)
        running.kill()
        running.wait()
        subprocess.run([sys.executable, "-m", "dlion_sim", "emulate", "--clean"], check=True)
        assert not any(group.exists() for group in groups)


def test_what_the_kernel_refuses_ends_it_before_it_begins(dlion, tmp_path, monkeypatch, capsys):
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "tc").write_text("#!/bin/sh\necho 'Specified qdisc kind is unknown.' >&2\nexit 2\n")
    (tools / "tc").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    assert dlion("emulate", "emulation/four_workers", "--output", "run") == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "qdisc kind is unknown" in line
    assert Run.open(tmp_path / "run").manifest["status"] == "failed"
