"""Whole runs of real processes: against the simulator, and with nodes that die. Nothing is left behind."""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from dlion_sim.assembly import Setting
from dlion_sim.errors import InputError
from dlion_sim.live import node
from dlion_sim.live.coordinate import run_locally
from dlion_sim.live.gathering import gather, part_folder
from dlion_sim.live.node_config import NodeConfig, Timeouts
from dlion_sim.live.nodes import Nodes, on_loopback
from dlion_sim.live.private_file import write_secret
from dlion_sim.live.rendezvous import Rendezvous
from dlion_sim.live.run_nodes import RunNodes
from dlion_sim.results import Run, RunWriter
from dlion_sim.scenario import dump
from dlion_sim.simulation import simulate
from tests import command
from tests.live.mesh import free_addresses, identity_of, listeners
from tests.pages import ROOT, blocks
from tests.simulation.scenarios import digits

CLOUD, TWO = ({"clouds": [{"name": "a", "workers": [{"count": count, "compute": "100 cores"}]}]} for count in (3, 2))
ASYNCHRONOUS = {"name": "baseline", "synchronization": "asynchronous"}


def scenario(*overrides, **keys):
    return digits("workload.evaluate_every=0.5 s", *overrides, **{"cluster": CLOUD, "duration": None, **keys})


@pytest.fixture
def dlion(monkeypatch, folder):
    """Runs a command, and returns how it exits."""
    monkeypatch.chdir(folder)
    return partial(command.dlion, monkeypatch)


def processes(folder: Path) -> list[str]:
    """The commands that run now and name something in the folder."""
    commands = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            commands.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue
    return [command for command in commands if str(folder) in command]


def until(condition, seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it takes too long"
        time.sleep(0.02)


def nodes_of(written, parts: Path) -> Nodes:
    setting = Setting.of(written)
    return RunNodes(setting, parts, on_loopback(setting.participants), paced=True, timeouts=Timeouts())


def until_all_have_begun(nodes: Nodes, folder: Path) -> None:
    """Wait for what each node writes first of its links."""
    parts = [part_folder(folder, rank) for rank in range(len(nodes.processes))]

    def begun() -> bool:
        for process, part in zip(nodes.processes.values(), parts, strict=True):
            assert process.poll() is None, part.with_suffix(".log").read_text()
        return all((part / "links.parts" / "00001.parquet").exists() for part in parts)

    until(begun)


@pytest.fixture
def folder(tmp_path):
    yield tmp_path
    assert processes(tmp_path) == []
    assert not [left for left in tmp_path.iterdir() if left.name.startswith(".")]


def test_a_live_run_is_a_normal_run_and_learns_what_a_simulated_one_does(folder, dlion, capsys):
    some = "workload.evaluation_samples=50"
    written = scenario("iterations=20", some, "workload.validation=0.2", system="baseline", cluster=TWO)
    Path("small.yaml").write_text(dump(written))
    assert dlion("live", "small.yaml", "--output", folder / "run") == 0
    output = capsys.readouterr().out
    assert "a/1" in output
    assert "virtual" not in output
    run, simulated = Run.open(folder / "run"), simulate(written, folder / "simulated", device="cpu")
    columns = ["iteration", "worker", "loss", "batch_size", "applied"]
    key = ["worker", "iteration"]
    live, virtual = (each.iterations()[columns].sort_values(key, ignore_index=True) for each in (run, simulated))
    assert live.equals(virtual)
    assert run.summary["accuracy"] == simulated.summary["accuracy"]
    assert list(run.evaluations()["loss"].tail(2)) == list(simulated.evaluations()["loss"].tail(2))
    assert run.summary["bytes_sent"] == simulated.summary["bytes_sent"]
    assert set(run.summary) == set(simulated.summary)
    assert run.summary["full_accuracy"] == simulated.summary["full_accuracy"]
    assert run.manifest["evaluation_samples"]["curve"] == 50 < run.manifest["evaluation_samples"]["full"]
    told = ("partition", "evaluated_on", "evaluation_samples", "validation")
    assert [run.manifest[key] for key in told] == [simulated.manifest[key] for key in told]
    assert run.summary["evaluated_on"] == "validation"
    assert run.manifest["way"] == "live"
    assert [part["late"]["computations"] for part in run.manifest["nodes"]] == [20, 20]
    assert [part["kernels"] for part in run.manifest["nodes"]] == ["torch"] * 2  # small dense layers
    assert run.summary["late"]["computations"] == 40
    assert sorted(file.name for file in run.folder.iterdir()) == sorted(
        ["accuracy.png", *(file.name for file in simulated.folder.iterdir())]
    )


def test_processes_send_what_may_lose_a_part_in_datagrams(folder, dlion, capsys):
    Path("small.yaml").write_text(dump(scenario("iterations=5", cluster=TWO, system="baseline")))
    assert dlion("live", "small.yaml", "--set", "transport=dlcp", "--output", folder / "run") == 0
    run = Run.open(folder / "run")
    for part in run.manifest["nodes"]:
        assert part["datagrams"]["received"] > 5 * 20
        assert part["datagrams"]["refused"] == 0
    transfers = run.transfers().query("channel == 'data'")
    assert len(transfers) == 10
    assert (transfers["lost_bytes"] <= 0.1 * (transfers["bytes"] + transfers["saved_bytes"])).all()
    assert run.parts()["lost_bytes"].sum() == transfers["lost_bytes"].sum()


def test_dlion_runs_live_and_shares_the_work_by_the_machines_speed(folder, dlion, capfd):
    """With pacing, unequal machines are what the scenario says, wherever their nodes run."""
    clouds = [{"name": "a", "workers": [{"compute": "40 cores"}, {"compute": "10 cores"}]}]
    Path("small.yaml").write_text(dump(scenario("duration=2 s", cluster={"clouds": clouds})))
    assert dlion("live", "small.yaml", "--output", folder / "run", "--quiet") == 0
    assert capfd.readouterr() == ("", "")
    run = Run.open(folder / "run")
    assert (run.summary["stopped_by"], run.summary["virtual_seconds"]) == ("duration", 2)
    fast, slow = run.iterations().groupby("worker")["batch_size"].last()
    assert fast > slow
    assert run.links()["n_percent"].notna().any()


TALKATIVE = """
from torch import nn

class Model(nn.Module):
    def __init__(self, dataset):
        super().__init__()
        self.layers = nn.Sequential(nn.Flatten(), nn.Linear(64, 10))

    def forward(self, images):
        print("samples left: 5" * 10_000)
        return self.layers(images)
"""


def test_own_code_may_print_more_than_a_pipe_holds(folder):
    (folder / "talkative.py").write_text(TALKATIVE)
    (folder / "small.yaml").write_text(dump(scenario("iterations=3", system="baseline", cluster=TWO)))
    model = ["--set", "workload.model=talkative:Model"]
    command = [sys.executable, "-m", "dlion_sim", "live", "small.yaml", *model, "--output=run", "--no-pacing"]
    subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, check=True, timeout=300)
    assert Run.open(folder / "run").summary["status"] == "completed"


def test_an_asynchronous_run_continues_without_a_killed_node(folder):
    def intervals():
        return min(len([*(folder / f"rank-{rank}" / "links.parts").glob("*")]) for rank in (0, 1))

    with nodes_of(scenario("duration=600 s", system=ASYNCHRONOUS), folder) as nodes:
        until_all_have_begun(nodes, folder)
        nodes.processes[2].kill()
        nodes.processes[2].wait()
        killed, before = nodes.clock.seconds, intervals()
        until(lambda: intervals() >= before + 6)
        assert nodes.wait(lambda: True)
        run = gather(folder, folder / "run")
    assert run.summary["status"] == "interrupted"
    assert run.manifest["nodes"][2]["status"] == "lost"
    assert [list(part["lost"]) for part in run.manifest["nodes"][:2]] == [["2"], ["2"]]
    *alive, dead = run.summary["accuracy"]["per_worker"]
    assert dead is None
    assert run.summary["accuracy"]["mean"] == pytest.approx(sum(alive) / 2)
    late = run.iterations()
    late = late[late["virtual_time"] > killed + 1]
    assert set(late["worker"]) == {0, 1}
    assert late.groupby("worker")["applied"].sum().min() > 0
    links = run.links()
    links = links[(links["virtual_time"] > killed + 1) & (links["messages"] > 0)]
    assert set(zip(links["sender"], links["receiver"], strict=True)) == {(0, 1), (1, 0)}


def test_an_interrupt_ends_all_nodes_and_leaves_a_run_that_says_so(folder):
    told = []
    run = run_locally(
        scenario("duration=600 s", system="baseline", cluster=TWO),
        folder / "run",
        interrupted=lambda: all(any(folder.glob(f".run-*/rank-{rank}/links.parts/*")) for rank in (0, 1)),
        observe=told.append,
    )
    began = next(index for index, seconds in enumerate(told) if seconds is not None)
    assert began > 0, "it takes a while until nodes train"
    assert sorted(told[began:]) == told[began:]
    assert 0 <= told[began] < 60
    assert run.manifest["status"] == run.summary["status"] == "interrupted"
    assert len(run.iterations()) == sum(run.summary["iterations"]["per_worker"])
    # Whoever hears of the other's end before its own signal fails for that.
    assert {part["status"] for part in run.manifest["nodes"]} <= {"interrupted", "failed"}


@pytest.fixture
def ctrl_c_ignored():
    """As it is in a background job of a script, and in all that starts there."""
    former = signal.signal(signal.SIGINT, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGINT, former)


@pytest.mark.parametrize("waits", [0.0, 1.0])
def test_an_interrupt_while_nodes_start_leaves_nothing(folder, ctrl_c_ignored, waits):
    asked_from = time.monotonic() + waits
    with pytest.raises(InputError, match="interrupted before it began"):
        run_locally(
            scenario("duration=3 s", system="baseline", cluster=TWO),
            folder / "run",
            interrupted=lambda: time.monotonic() >= asked_from,
        )
    assert Run.open(folder / "run").manifest["status"] == "failed"


def test_an_interrupt_reaches_nodes_that_ignore_ctrl_c_at_first(folder, ctrl_c_ignored):
    written = scenario("duration=600 s", system="baseline", cluster=TWO)
    with nodes_of(written, folder) as nodes:
        assert nodes.wait(lambda: nodes.clock.seconds is not None)
        assert gather(folder, folder / "run").summary["status"] == "interrupted"


def test_a_request_to_end_after_the_run_has_ended_loses_nothing(folder, monkeypatch):
    evaluate = node._evaluate

    def asked_meanwhile(*arguments) -> None:
        signal.raise_signal(signal.SIGTERM)
        evaluate(*arguments)

    monkeypatch.setattr(node, "_evaluate", asked_meanwhile)
    (listener,), addresses = listeners(1)
    alone = scenario("iterations=3", system="baseline", cluster={"clouds": [{"name": "a", "workers": [{}]}]})
    part = node.run_node(alone, NodeConfig(0, addresses, identity_of(0), folder, listen=listener, paced=False))
    assert part.summary["status"] == "completed"
    assert len(part.evaluations()) > 0


def test_nodes_end_by_themselves_when_their_coordinator_is_gone(folder):
    written = scenario("duration=600 s", system="baseline", cluster=TWO)
    with nodes_of(written, folder) as nodes:
        until_all_have_begun(nodes, folder)
        for process in nodes.processes.values():
            process.stdin.close()
            process.stdin = None
        until(lambda: all(process.poll() is not None for process in nodes.processes.values()))
        assert gather(folder, folder / "rescued").summary["status"] == "interrupted"


def test_a_node_that_cannot_start_ends_the_run_before_it_begins(folder, dlion, capsys):
    Path("small.yaml").write_text(dump(scenario("iterations=10", system="baseline", cluster=TWO)))
    assert dlion("live", "small.yaml", "--output", folder / "run", "--start-within=0") == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "could not start within 0 s" in line
    assert Run.open(folder / "run").manifest["status"] == "failed"


def by_secret(folder):
    """The options of two nodes with a common secret."""
    write_secret(folder / "secret")
    return [["--secret-file=secret"]] * 2


def by_certificates(folder):
    """Those of two nodes with certificates, made as the page says."""
    if not shutil.which("openssl"):
        (pytest.fail if os.environ.get("DLION_REQUIRE_EMULATION") else pytest.skip)("openssl is not installed")
    (commands,) = blocks(ROOT / "docs" / "live.md", "bash")
    subprocess.run(["bash", "-ec", commands], check=True, capture_output=True, cwd=folder)
    return [["--ca=ca.pem", f"--certificate=node-{rank}.pem", f"--key=node-{rank}.key"] for rank in (0, 1)]


@pytest.mark.parametrize("identities", [by_secret, by_certificates])
def test_two_nodes_by_hand(folder, dlion, identities):
    Path("small.yaml").write_text(dump(scenario("iterations=1000", system="baseline", cluster=TWO)))
    addresses = free_addresses(2)
    arguments = ["small.yaml", "--peers", ",".join(map(str, addresses))]
    options = ["--set", "iterations=10", "--no-pacing", "--output", str(folder / "parts")]
    command = [sys.executable, "-m", "dlion_sim", "node", *arguments, *options]
    nodes = [
        subprocess.Popen(
            [*command, f"--rank={rank}", *identity], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for rank, identity in enumerate(identities(folder))
    ]
    for rank, process in enumerate(nodes):
        output, errors = process.communicate(timeout=180)
        assert (process.returncode, errors) == (0, "")
        assert f"node {rank}: completed (iterations), part: {folder}/parts/rank-{rank}" in output
    assert dlion("gather", "parts", "run", "--quiet") == 0
    run = Run.open(folder / "run")
    assert run.summary["iterations"]["per_worker"] == [10, 10]
    assert not run.manifest["paced"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--rank=7"], ["--rank", "there is no participant 7", "0 to 2"]),
        (["--peers=127.0.0.1:7001"], ["--peers", "1 addresses for 3 workers"]),
        (["--peers=nowhere"], ["--peers", "'nowhere' is no address", "10.0.0.1:7000"]),
        (["--secret-file=none"], ["none", "No such file"]),
        (["--secret-file=open"], ["open", "chmod 600"]),
        (["--secret-file=short"], ["short", "5 bytes", "16 or more"]),
        (["--ca=ca.pem"], ["--secret-file", "does not go with --ca"]),
        (["--delays=0,1 s"], ["--delays", "2 delays", "one for each"]),
        (["--delays=0,x,0"], ["--delays", "'x' is not a duration"]),
        (["--start-within=0.3"], ["could not start within 0.3 s", "node 1 at 127.0.0.1:", "was not reached"]),
        (["--set", "system.exchange.bandwidth=oracle_pair"], ["system.exchange.bandwidth", "only a simulation"]),
        (["--set", "target_accuracy=0.9"], ["target_accuracy", "cannot end a live run", "null"]),
        (["--set", "availability={clouds: {a: {down: [[0 s, 1 s]]}}}"], ["availability", "nobody is there"]),
    ],
)
def test_invalid_options_are_one_line(dlion, capsys, arguments, words):
    Path("small.yaml").write_text(dump(scenario("iterations=10")))
    for name, secret, mode in [("secret", "x" * 32, 0o600), ("open", "x" * 32, 0o644), ("short", "x" * 5, 0o600)]:
        Path(name).write_text(secret)
        Path(name).chmod(mode)
    addresses = free_addresses(3)
    peers = ",".join(map(str, addresses))
    usual = ["node", "small.yaml", "--rank=0", f"--peers={peers}", "--secret-file=secret", "--output=parts"]
    assert dlion(*usual, *arguments) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("dlion: ")
    assert all(word in line for word in words), line
    assert not Path("parts/rank-0").exists()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([], ["--secret-file: is missing", "or else --ca, --certificate and --key"]),
        (["--ca=ca.pem", "--key=key"], ["--certificate: is missing"]),
        (["--ca=none", "--certificate=none", "--key=none"], ["none: cannot be read: No such file"]),
    ],
    ids=["nothing", "a part", "no files"],
)
def test_a_node_needs_a_secret_or_certificates(folder, dlion, capsys, given, words):
    Path("small.yaml").write_text(dump(scenario("iterations=10")))
    assert dlion("node", "small.yaml", "--rank=0", "--peers=127.0.0.1:1", "--output=parts", *given) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert all(word in line for word in words), line


def test_nodes_leave_and_return_as_the_scenario_says(folder, dlion, capfd):
    """One is killed and comes back, one leaves, and one was not there at first."""
    clouds = [{"name": "a", "workers": [{"count": 4, "compute": "20 cores"}]}]
    workers = {
        "a/1": {"down": [["2 s", None]], "kind": "leave"},
        "a/2": {"down": [["2 s", "4 s"]]},
        "a/3": {"down": [["0 s", "3 s"]]},
    }
    written = scenario("duration=8 s", system="baseline", cluster={"clouds": clouds}, availability={"workers": workers})
    Path("small.yaml").write_text(dump(written))
    assert dlion("live", "small.yaml", "--output", folder / "run", "--quiet") == 0
    assert capfd.readouterr().out == ""  # a file that states each default is warned of one that nothing reads
    run = Run.open(folder / "run")
    told = run.membership()

    def times(what, participant):
        return told[(told["what"] == what) & (told["participant"] == participant)]["virtual_time"].tolist()

    assert 2 <= times("down", 2)[0] < 4 <= times("up", 2)[0]
    assert times("down", 3)[0] < 3 <= times("up", 3)[0]
    assert times("noticed", 1)[0] >= 2
    assert len(times("left", 1)) == 1
    assert [len(times("joined", rank)) for rank in range(4)] == [0, 0, 1, 1]
    assert (run.summary["status"], run.summary["stopped_by"]) == ("completed", "duration")
    assert [(each["rank"], each["incarnation"], each["status"]) for each in run.manifest["nodes"]] == [
        (0, 0, "completed"),
        (1, 0, "completed"),
        (2, 0, "lost"),
        (2, 1, "completed"),
        (3, 0, "completed"),
    ]
    assert run.manifest["churn"]["crash"] == "SIGKILL"
    assert run.metrics().query("kind == 'cut'")["worker"].tolist() == [2]
    up = run.summary["availability"]["up"]
    assert up[0] == 1
    assert all(0.2 < share < 0.9 for share in up[1:])
    assert run.summary["accuracy"]["per_worker"][1] is not None


def test_a_node_that_was_killed_is_started_again_by_hand(folder, dlion):
    """With the folder of its former part beside it; a request to terminate lets it leave."""
    written = scenario("duration=600 s", system="baseline", cluster=TWO, availability={})
    Path("small.yaml").write_text(dump(written))
    write_secret(folder / "secret")
    addresses = free_addresses(2)
    arguments = ["small.yaml", "--peers", ",".join(map(str, addresses)), "--secret-file", "secret"]
    command = [sys.executable, "-m", "dlion_sim", "node", *arguments, "--output", str(folder / "parts")]

    def start(rank, *options):
        return subprocess.Popen([*command, f"--rank={rank}", *options], stdout=subprocess.PIPE, text=True)

    def has_written(part):
        return lambda: (folder / "parts" / part / "metrics.parts" / "00002.parquet").exists()

    nodes = [start(0), start(1)]
    until(has_written("rank-1"), 180)
    nodes[1].kill()
    nodes.append(start(1, "--join"))
    until(has_written("rank-1.1"), 180)
    nodes[2].send_signal(signal.SIGTERM)
    output, _ = nodes[2].communicate(timeout=180)
    assert "node 1: left" in output
    assert nodes[2].returncode == 0
    nodes[0].send_signal(signal.SIGINT)
    for process in nodes[:2]:
        process.communicate(timeout=180)
    assert dlion("gather", "parts", "run", "--quiet") == 130
    told = Run.open(folder / "run").membership()
    assert [len(told[told["what"] == what]) for what in ("lost", "up", "joined", "left")] == [2, 1, 1, 1]
    assert Run.open(folder / "run").summary["stopped_by"] == "interrupt"


@pytest.mark.parametrize("earlier", ["part", "folder", None])
def test_whoever_was_there_may_find_the_run_over(folder, dlion, capsys, monkeypatch, earlier):
    async def in_vain(rendezvous):
        raise TimeoutError  # Once all were tried, however long that takes.

    monkeypatch.setattr(Rendezvous, "beginning", in_vain)
    Path("small.yaml").write_text(dump(scenario("iterations=10", cluster=TWO, availability={})))
    write_secret(folder / "secret")
    if earlier == "part":
        RunWriter.create(folder / "parts" / "rank-0", scenario_yaml="", manifest={"rank": 0, "begun": True}).close()
    elif earlier:
        (folder / "parts" / "rank-0").mkdir(parents=True)
    peers = f"--peers={','.join(map(str, free_addresses(2)))}"
    options = ["--secret-file=secret", "--output=parts", "--join"]
    assert dlion("node", "small.yaml", "--rank=0", peers, *options) == (0 if earlier == "part" else 2)
    said = capsys.readouterr()
    assert "no node of the run was reached" in (said.out if earlier == "part" else said.err)
    assert not (folder / "parts" / "rank-0.1").exists()


def test_a_node_that_never_begins_leaves_no_part_and_may_start_again(folder, monkeypatch):
    two, sockets = scenario("iterations=10", cluster=TWO, availability={}), listeners(2)
    RunWriter.create(folder / "rank-0", scenario_yaml="", manifest={"rank": 0, "begun": False}).close()  # killed then

    def interrupted(end, interrupts, **_):
        asyncio.get_running_loop().call_later(0.1, end)

    monkeypatch.setattr(node, "watch", interrupted)
    (listener, other), addresses = sockets
    with other:
        assert node.run_node(two, NodeConfig(0, addresses, identity_of(0), folder, listen=listener)) is None
    assert not (folder / "rank-0").exists()


def test_a_node_that_has_begun_keeps_its_part_even_without_rows(folder):
    (listener,), addresses = listeners(1)
    alone = scenario("iterations=3", system="baseline", cluster={"clouds": [{"name": "a", "workers": [{}]}]})

    def fails():
        raise InputError("it cannot go on")

    def begun():
        asyncio.get_running_loop().call_soon(fails)

    config = NodeConfig(0, addresses, identity_of(0), folder, listen=listener, begun=begun)
    with pytest.raises(InputError, match="it cannot go on"):
        node.run_node(alone, config)
    assert Run.open(folder / "rank-0").manifest["begun"]
    assert not any(folder.rglob("*.parquet"))
    with pytest.raises(InputError, match="already holds a run"):
        node.run_node(alone, replace(config, listen=None))


def test_joining_needs_a_scenario_with_availability(dlion, capsys):
    Path("small.yaml").write_text(dump(scenario("iterations=10", cluster=TWO)))
    Path("secret").write_text("x" * 32)
    Path("secret").chmod(0o600)
    peers = "--peers=127.0.0.1:7001,127.0.0.1:7002"
    assert dlion("node", "small.yaml", "--rank=0", peers, "--secret-file=secret", "--output=parts", "--join") == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "availability" in line
    assert "nobody can join" in line
