"""`dlion calibrate scenario` writes a scenario that runs, with what was measured and what was assumed."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from dlion_sim.scenario import Flows, Network, Scenario, load
from tests.calibration.test_network import BANDWIDTHS, RTTS
from tests.command import dlion

LINKS = "from,to,bandwidth_mbps,rtt_ms\ngpu1,lab,2500,12\nlab,gpu1,100,\n\ngpu1,edge,20,45.5\nedge,lab,12.5,60\n"
SITES = ["--site", "gpu1=a100", "--site", "lab=8cores", "--site", "edge=2*t4", "--site", "edge = 4 cores"]
TASK = ["--dataset", "digits", "--model", "mlp"]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "links.csv").write_text(LINKS)
    return tmp_path


def written(monkeypatch: pytest.MonkeyPatch, *arguments: str, links: str = "links.csv") -> Scenario:
    assert dlion(monkeypatch, "calibrate", "scenario", links, *SITES, *TASK, *arguments, "-o", "mine.yaml", "-q") == 0
    return load("mine.yaml")


def line_of(key: str) -> str:
    """The only line of the written file with that start."""
    (found,) = [line for line in Path("mine.yaml").read_text().splitlines() if line.strip().startswith(key)]
    return found


def test_links_and_machines_are_those_given(monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = written(monkeypatch)
    cluster = scenario.cluster
    paths = {
        (a, b): (rate.value_at(0) / 1e6, rtt)
        for a, b in [("gpu1", "lab"), ("lab", "gpu1"), ("edge", "gpu1"), ("lab", "edge")]
        for rate, rtt in [cluster.wan_path(a, b)]
        if rate
    }
    assert paths == {
        ("gpu1", "lab"): (2500, 0.012),
        ("lab", "gpu1"): (100, 0.012),
        ("edge", "gpu1"): (20, 0.0455),
        ("lab", "edge"): (12.5, 0.06),
    }
    machines = [(each.name, each.compute.cores.value_at(0)) for each in cluster.workers]
    assert machines == [("gpu1/0", 3079), ("lab/0", 8), ("edge/0", 1279), ("edge/1", 1279), ("edge/2", 4)]
    nics = [each.nic.up.value_at(0) for each in cluster.workers]
    assert nics == [2.5e9, 2.5e9, 1e9, 1e9, 1e9]  # no NIC limits a measured path
    assert (scenario.name, scenario.duration) == ("mine", 600)


def test_what_was_assumed_is_on_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    written(monkeypatch)
    training = ("learning_rate", "batch_size", "partition", "evaluate_every", "compute_time")
    for key in ("duration", *training, "clouds", "wan", "system"):
        assert "  # assumed" in line_of(f"{key}:"), key
    text = Path("mine.yaml").read_text()
    assert text.count("lan:  # assumed") == 3
    assert text.count("Gbps  # assumed") == 4
    assert "compute: a100  # assumed: 3079 cores" in text
    assert "no regions and no prices" in line_of("clouds:")
    mirrored = [line.strip() for line in text.splitlines() if "assumed: as from" in line]
    assert mirrored == [
        "edge: 12.5 Mbps  # assumed: as from edge to lab",
        "gpu1: 20 Mbps  # assumed: as from gpu1 to edge",
        "gpu1: 12 ms  # assumed: as from gpu1 to lab",
        "edge: 60 ms  # assumed: as from edge to lab",
        "gpu1: 45.5 ms  # assumed: as from gpu1 to edge",
    ]


def test_it_runs_and_can_be_recommended_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    written(monkeypatch, "--duration", "60 ms")
    assert "assumed" not in line_of("duration:")
    assert line_of("evaluate_every:").startswith("  evaluate_every: 1 ms")
    assert dlion(monkeypatch, "run", "mine.yaml", "-o", "run", "-q") == 0
    options = ["--machines", "own", "--target-accuracy", "80", "--dry-run"]
    assert dlion(monkeypatch, "recommend", "mine.yaml", *options, "-o", "advice") == 0
    assert "ring_allreduce" in capsys.readouterr().out


def test_a_measured_network_is_kept(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "b.csv").write_text(BANDWIDTHS.replace("east", "gpu1").replace("west", "lab").replace("north", "edge"))
    (here / "r.csv").write_text(RTTS.replace("east", "gpu1").replace("west", "lab").replace("north", "edge"))
    assert dlion(monkeypatch, "calibrate", "network", "b.csv", "--rtt", "r.csv", "-o", "network.yaml", "-q") == 0
    scenario = written(monkeypatch, links="network.yaml")
    network = yaml.safe_load((here / "network.yaml").read_text())["cluster"]["wan"]
    assert yaml.safe_load((here / "mine.yaml").read_text())["cluster"]["wan"] == network
    assert scenario.cluster.wan_path("lab", "gpu1")[1] == 0.08
    assert scenario.network == Network()
    with (here / "network.yaml").open("a") as file:
        file.write("network: {model: {kind: flows, acknowledgements: 0.6}}\n")
    (here / "mine.yaml").unlink()
    assert written(monkeypatch, links="network.yaml").network == Network(model=Flows(acknowledgements=0.6))


def test_an_invalid_network_is_one_line(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    written(monkeypatch)
    (here / "mine.yaml").rename(here / "links.yaml")
    with (here / "links.yaml").open("a") as file:
        file.write("network: {model: {kind: flows, acknowledgements: 6}}\n")
    words = "links.yaml: network.model.acknowledgements: must be 1 or less"
    refused(monkeypatch, capsys, words, "links.yaml", *SITES, *TASK)


def test_units_may_be_in_the_cells_and_names_like_numbers(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "links.csv").write_text("to, from ,rtt,Bandwidth\n1e3,true,80 ms,5 MB/s\n")
    sites = ["--site", "1e3=8", "--site", "true=t4"]
    assert dlion(monkeypatch, "calibrate", "scenario", "links.csv", *sites, *TASK, "-o", "mine.yaml") == 0
    rate, rtt = load("mine.yaml").cluster.wan_path("true", "1e3")
    assert (rate and rate.value_at(0), rtt) == (40e6, 0.08)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (LINKS, "", "links.csv: line 1: its columns are missing; allowed: each of from,to,bandwidth,rtt, or with"),
        (
            "rtt_ms",
            "delay",
            "links.csv: line 1: there is no column 'delay'; allowed: from,to,bandwidth,rtt, or with units",
        ),
        ("rtt_ms", "rtt_mins", "links.csv: line 1: there is no column 'rtt_mins'; allowed: from,to,"),
        ("bandwidth_mbps", "rtt", "links.csv: line 1: its columns are from,to,rtt,rtt_ms; allowed: each of from,to,"),
        ("_mbps", "", "allowed: e.g. 40 Mbps; or name the column bandwidth_mbps"),
        ("20,45.5", "fast,45.5", "links.csv: line 5, bandwidth: 'fast Mbps' is not a bandwidth; "),
        ("20,45.5", "0,45.5", "links.csv: line 5: '0' is no bandwidth; allowed: more than 0, e.g. 40 Mbps"),
        ("20,45.5", "20,-1", "links.csv: line 5, rtt: '-1 ms' is negative"),
        ("20,45.5", "20", "links.csv: line 5: has 3 cells; allowed: 4: from,to,bandwidth_mbps,rtt_ms"),
        ("20,45.5", "20,", "links.csv: has no rtt between 'gpu1' and 'edge'; allowed: one for every two sites, e.g. "),
        ("edge,lab", "edge,gpu1", "links.csv: has no bandwidth between 'lab' and 'edge'; allowed: one for every two"),
        ("edge,lab", "gpu1,lab", "links.csv: line 6: is a second one ('gpu1' to 'lab'); allowed: one row for each"),
        ("edge,lab", "lab,lab", "links.csv: line 6: does not lead from one site to another ('lab' to 'lab'); "),
        ("edge", "ed ge", "links.csv: cluster.clouds.2.name: 'ed ge' may hold only letters"),
        (LINKS, LINKS.splitlines()[0], "links.csv: has no paths; allowed: rows such as gpu1,lab,40 Mbps,60 ms"),
    ],
)
def test_bad_links_are_one_line(
    old: str, new: str, words: str, here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "links.csv").write_text(LINKS.replace(old, new))
    refused(monkeypatch, capsys, words, "links.csv", *SITES, *TASK)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["none.csv", *SITES, *TASK], "none.csv: is missing"),
        (
            ["machine.yaml", *SITES, *TASK],
            "machine.yaml: has no cluster; allowed: a scenario or its network",
        ),
        (["links.csv", *SITES[:4], *TASK], "--site: is missing for 'edge' of links.csv; allowed: a machine for each, "),
        (["links.csv", *SITES, "--site", "labs=8", *TASK], "--site: links.csv has no site 'labs'; did you mean 'lab'?"),
        (["links.csv", "--site", "lab", *TASK], "--site: 'lab' is not a site and its machine; allowed: NAME=a device"),
        (["links.csv", "--site", "lab=2*", *TASK], "--site: 'lab=2*' is not a site and its machine"),
        (["links.csv", "--site", "lab=0*t4", *TASK], "--site: 'lab=0*t4': '0' is not a number of machines; allowed: 1"),
        (["links.csv", "--site", "lab=jetson", *TASK], "--site: 'lab=jetson': 'jetson' is neither a number of cores"),
        (["links.csv", "--site", "lab=8GB", *TASK], "--site: 'lab=8GB': '8GB' is not a number of cores"),
        (
            ["links.csv", "--site", "lab=0", *TASK],
            "--site: 'lab=0': a machine has more than 0 cores; allowed: a device",
        ),
        (["links.csv", *SITES, "--site", "lab=100001*t4", *TASK], "--site: cluster.clouds.1.workers.1.count: "),
        (["links.csv", *SITES, *TASK, "--duration", "0 s"], "--duration: duration: "),
        (["links.csv", *SITES, *TASK, "--duration", "6"], "--duration: '6' is not a duration"),
        (["links.csv", *SITES, *TASK, "--model", "mpl"], "--model: 'mpl' is unknown; did you mean 'mlp'?; allowed: "),
        (["links.csv", *SITES, *TASK, "--model", "gpt"], "--model: 'gpt' is not for digits; allowed: cipher, mlp"),
        (["links.csv", *SITES, *TASK, "--dataset", "cifar"], "--dataset: 'cifar' is unknown; did you mean 'cifar10'?"),
        (["links.csv", *SITES, *TASK, "-o", "links.csv"], "links.csv: exists already; allowed: a new file"),
    ],
)
def test_bad_arguments_are_one_line(
    arguments: list[str],
    words: str,
    here: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (here / "machine.yaml").write_text("workload: {dataset: digits}\n")
    refused(monkeypatch, capsys, words, *arguments)


def refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: str, *arguments: str) -> None:
    before = {file: file.read_bytes() for file in Path().iterdir()}
    output = [] if "-o" in arguments else ["-o", "mine.yaml"]
    assert dlion(monkeypatch, "calibrate", "scenario", *arguments, *output) == 2
    told = capsys.readouterr().err
    assert words in told
    assert told.count("\n") == 1
    assert {file: file.read_bytes() for file in Path().iterdir()} == before
