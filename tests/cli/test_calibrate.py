"""`dlion calibrate` writes YAML that a scenario can use, and nothing if the input is bad."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from dlion_sim.calibration import mesh, network_block
from dlion_sim.live.private_file import write_secret
from dlion_sim.scenario import dump, from_data, load
from tests.calibration.steady import steady
from tests.calibration.test_network import BANDWIDTHS, RTTS
from tests.command import dlion
from tests.live.mesh import free_addresses
from tests.simulation.scenarios import digits

NODE = ["node", "--peers", "127.0.0.1:1,127.0.0.1:2", "--secret-file", "key"]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    steady(monkeypatch)
    (tmp_path / "b.csv").write_text(BANDWIDTHS)
    (tmp_path / "r.csv").write_text(RTTS)
    (tmp_path / "small.yaml").write_text(dump(digits()))
    write_secret(tmp_path / "key")
    return tmp_path


@pytest.mark.parametrize(
    "arguments", [["--model", "mlp", "--dataset", "digits"], ["small.yaml"], ["small.yaml", "--set", "seed=5"]]
)
def test_the_measured_machine_loads(
    arguments: list[str], here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert dlion(monkeypatch, "calibrate", "compute", *arguments, "-o", "block.yaml", "--device", "cpu") == 0
    text = (here / "block.yaml").read_text()
    assert text.startswith("# Measured on ")
    assert "mlp on digits; R2 1.0000" in text.splitlines()[0]
    scenario = from_data({"name": "own", "duration": "1 s", "system": "dlion", **yaml.safe_load(text)})
    compute_time = scenario.workload.compute_time
    cores = scenario.cluster.workers[0].compute.cores.value_at(0)
    assert (compute_time.alpha, compute_time.beta) == (0.01, pytest.approx(1e-3 * cores, rel=1e-3))
    assert compute_time.per_message == 2e-3
    output = capsys.readouterr().out
    assert "off by" in output
    assert "written: block.yaml" in output


def test_the_network_of_files_loads(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert dlion(monkeypatch, "calibrate", "network", "b.csv", "--rtt", "r.csv", "-o", "block.yaml") == 0
    block = yaml.safe_load((here / "block.yaml").read_text())
    scenario = from_data(
        {"name": "own", "duration": "1 s", "system": "dlion", "workload": {"dataset": "digits"}, **block}
    )
    assert scenario.cluster.wan_path("west", "east")[1] == 0.08


@pytest.mark.parametrize(
    "arguments",
    [["compute", "small.yaml", "-q"], ["network", "b.csv", "--rtt", "r.csv", "-q"]],
)
def test_quiet_prints_nothing(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert dlion(monkeypatch, "calibrate", *arguments, "-o", "block.yaml") == 0
    assert capsys.readouterr() == ("", "")


def test_measured_matrices_give_the_same_network(
    here: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert dlion(monkeypatch, "calibrate", "network", "--local", "2", "--seconds", "0.1", "-o", "net.yaml") == 0
    output = capfd.readouterr()
    assert output.err == ""
    there, back, written = output.out.splitlines()
    assert there.startswith("node-0 to node-1: ")
    assert " at least, " in back
    assert written == "written: net.yaml, net-bandwidth.csv, net-rtt.csv"
    block = yaml.safe_load((here / "net.yaml").read_text())
    assert network_block(here / "net-bandwidth.csv", here / "net-rtt.csv") == {"cluster": block["cluster"]}
    wan = {"matrix": "net-bandwidth.csv", "rtt_matrix": "net-rtt.csv"}
    whole = {"name": "own", "duration": "1 s", "system": "dlion", "workload": {"dataset": "digits"}}
    (here / "own.yaml").write_text(yaml.safe_dump({**whole, "cluster": {**block["cluster"], "wan": wan}}))
    measured = from_data({**whole, **block})
    assert load(here / "own.yaml").cluster.wan_path("node-0", "node-1") == measured.cluster.wan_path("node-0", "node-1")
    assert 0 < measured.network.model.acknowledgements < 1


def test_a_killed_node_ends_the_others(
    here: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    command = [sys.executable, "-m", "dlion_sim", "calibrate", "node", "--secret-file=key", "--seconds=60"]
    peers = ",".join(map(str, free_addresses(2)))
    with subprocess.Popen([*command, f"--peers={peers}", "--rank=1"], stderr=subprocess.DEVNULL) as killed:
        monkeypatch.setattr(mesh.Prober, "begin", lambda *_: killed.kill() or [])
        options = ["--secret-file", "key", "--seconds", "60", "--peers", peers, "--rank", "0", "--names", "east,west"]
        assert dlion(monkeypatch, "calibrate", "node", *options, "-o", "net.yaml", "-q") == 1
    assert capfd.readouterr() == ("", "dlion: nothing is written: node 1 was lost: it closed the connection\n")
    assert not list(here.glob("net*"))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["compute"], "SCENARIO: is missing; allowed: a scenario, or --model and --dataset"),
        (["compute", "--model", "mlp"], "SCENARIO: is missing"),
        (["compute", "small.yaml", "--model", "mlp"], "--model: does not go with a scenario"),
        (["compute", "--model", "mpl", "--dataset", "digits"], "workload.model: "),
        (["compute", "small.yaml", "--set", "workload.model=mpl"], "small.yaml: workload.model: "),
        (
            ["compute", "small.yaml", "--set", "workload.cost_as={parameters: 1 B}"],
            "small.yaml: workload.cost_as: has an",
        ),
        (["compute", "small.yaml", "-o", "small.yaml"], "small.yaml: exists already; allowed: a new file"),
        (["compute", "small.yaml", "-o", "no/block.yaml"], "no/block.yaml: is in a missing folder"),
        (["network", "b.csv"], "b.csv: tells no round-trip times; allowed: --rtt FILE"),
        (["network", "b.csv", "--rtt", "none.csv"], "none.csv: no such file or folder"),
        (["network"], "BANDWIDTHS: is missing; allowed: one of BANDWIDTHS, --local, --emulate"),
        (["network", "b.csv", "--local", "2"], "--local: does not go with BANDWIDTHS"),
        (["network", "--rtt", "r.csv", "--local", "2"], "--rtt: does not go with --local"),
        (["network", "--set", "seed=1", "--local", "2"], "--set: does not go with --local"),
        (["network", "--local", "2", "-o", "b.csv"], "b.csv: exists already"),
        ([*NODE, "--rank", "2"], "--rank: there is no participant 2; allowed: 0 to 1"),
        ([*NODE, "--rank", "-1"], "--rank: there is no participant -1; allowed: 0 to 1"),
        ([*NODE, "--rank", "1"], "--output: is for node 0, and this is node 1"),
        ([*NODE, "--rank", "0", "--names", "east"], "--names: east; allowed: 2 different ones, in the nodes' order"),
        ([*NODE, "--rank", "0", "--names", "east,east"], "--names: east, east; allowed: 2 different ones"),
        (
            [*NODE, "--rank", "0", "--names", "east,we st"],
            "--names: clouds.1.name: 'we st' may hold only letters",
        ),
        ([*NODE, "--rank", "0", "--delays", "1"], "--delays: '1' is not a duration"),
        ([*NODE, "--rank", "0", "--delays", "1 s"], "--delays: 1 delays; allowed: one for each of --peers"),
        ([*NODE, "--rank", "0", "--peers", "a:1"], "--peers: is a single node's; allowed: those of two or more"),
        ([*NODE, "--rank", "0", "--peers", "a,b:1"], "--peers: 'a' is no address"),
        ([*NODE, "--rank", "0", "--secret-file", "r.csv"], "r.csv: is open to others than its owner"),
        ([*NODE, "--rank", "0", "--start-within", "0"], "could not start within 0 s: node 1 at 127.0.0.1:2 was not"),
    ],
)
def test_bad_input_is_one_line_and_writes_nothing(
    arguments: list[str], words: str, here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {file: file.read_bytes() for file in here.iterdir()}
    arguments = [*arguments] if "-o" in arguments else [*arguments, "-o", "block.yaml"]
    assert dlion(monkeypatch, "calibrate", *arguments) == 2
    told = capsys.readouterr().err
    assert words in told
    assert told.count("\n") == 1
    assert {file: file.read_bytes() for file in here.iterdir()} == before
