"""What a user reads who gave something that cannot be used: one line with the file, the place and what is allowed."""

from __future__ import annotations

from pathlib import Path

import pytest

from dlion_sim.errors import InputError
from dlion_sim.scenario import from_data, load
from dlion_sim.yaml_text import read_yaml
from tests.scenario.conftest import written

BOMB = b"a0: &a0 [1, 1]\n" + b"".join(b"a%d: &a%d [*a%d, *a%d]\n" % (n, n, n - 1, n - 1) for n in range(1, 60))
MERGING = b"a0: &a0 {x: 1, y: 2}\n" + b"".join(
    b"a%d: &a%d {<<: [*a%d, *a%d]}\n" % (level, level, level - 1, level - 1) for level in range(1, 60)
)
MERGING_WIDE = (
    b"a: &a {"
    + b", ".join(b"k%d: 1" % key for key in range(2000))
    + b"}\nb: {<<: ["
    + b", ".join([b"*a"] * 2000)
    + b"]}\n"
)

GROUP = "cluster.clouds.0.workers.0"
LAN = "cluster.clouds.0.lan"

INVALID = [
    ("durration=3 s", None, ["unknown key 'durration'; did you mean 'duration'?", "allowed: name, description"]),
    ("duration=null", None, ["give duration or iterations"]),
    ("duration=-3 s", "duration", ["negative"]),
    ("duration=0 s", "duration", ["more than 0"]),
    ("duration=.nan", "duration", ["not a finite"]),
    ("duration=[1]", "duration", ["not a duration", "80 ms"]),
    ("name=my run!", "name", ["'my run!'", "letters, digits"]),
    ("name=null", "name", ["must be text, not null"]),
    ("seed=-1", "seed", ["0 or more, not -1"]),
    ("seed=1000000000000001", "seed", ["1e+15 or less"]),
    ("workload.lora.rank=10001", "workload.lora.rank", ["10000 or less"]),
    ("seed=1.5", "seed", ["whole number, not 1.5"]),
    ("seed=true", "seed", ["whole number, not true"]),
    ("target_accuracy=70", "target_accuracy", ["1 or less, not 70"]),
    ("workload={}", "workload.dataset", ["is required"]),
    ("workload=null", "workload", ["must be a mapping", "not null"]),
    ("workload.batch_size=0", "workload.batch_size", ["1 or more"]),
    (
        "workload.optimizer.kind=sdg",
        "workload.optimizer.kind",
        ["'sdg' is unknown; did you mean 'sgd'?", "'sgd', 'adam', 'adamw' or"],
    ),
    ("workload.optimizer.learning_rate=fast", "workload.optimizer.learning_rate", ["a number, not 'fast'"]),
    ("workload.optimizer={kind: adam, momentum: 0.9}", "workload.optimizer.momentum", ["momentum is for sgd"]),
    ("workload.optimizer.momentum=1", "workload.optimizer.momentum", ["less than 1"]),
    ("workload.partition=dirichle", "workload.partition", ["'dirichle' is unknown; did you mean 'dirichlet'?"]),
    ("workload.partition={alpha: 1}", "workload.partition", ["'kind' is required"]),
    ("workload.partition={kind: dirichlet, alpha: 0}", "workload.partition.alpha", ["more than 0"]),
    ("workload.partition={kind: iid, alpha: 1}", "workload.partition", ["unknown key 'alpha'", "allowed: kind"]),
    ("workload.evaluate_every=1e-9 s", "workload.evaluate_every", ["0.001 or more, not '1e-9 s'"]),
    ("workload.optimizer.learning_rate=1e308", "workload.optimizer.learning_rate", ["1000 or less"]),
    ("workload.compute_time={alpha: 0 s, beta: 0 s}", "workload.compute_time", ["at least", "1 us"]),
    (f"{GROUP}.compute={{noise: 1e308}}", f"{GROUP}.compute.noise", ["3 or less"]),
    (f"{GROUP}.count=1000000000000", f"{GROUP}.count", ["100000 or less"]),
    (f"{GROUP}.nic={{steps: {{0 s: 5 Mbps, 1 us: 6 Mbps}}, repeat: 2 us}}", f"{GROUP}.nic", ["less than 2 ms"]),
    (f"{GROUP}.compute=1e300 cores", f"{GROUP}.compute", ["at most 1000000000 cores"]),
    (f"{GROUP}.compute=Raspberry_Pi_4", f"{GROUP}.compute", ["did you mean 'raspberry-pi-4'?"]),
    (
        f"{GROUP}.compute={{steps: {{0 s: raspberry_pi_4}}}}",
        f"{GROUP}.compute.steps.0 s",
        ["did you mean 'raspberry-pi-4'?"],
    ),
    ("network=window", "network", ["must be a mapping", "not 'window'"]),
    ("network.tcp=cubic", "network.tcp", ["'cubic' is unknown", "'none', 'lv08', 'window'"]),
    ("network={tpc: none}", "network", ["unknown key 'tpc'; did you mean 'tcp'?"]),
    ("network.tcp={kind: none, loss: 0.1}", "network.tcp", ["unknown key 'loss'", "allowed: kind"]),
    ("network.tcp={kind: window, initial_window: 0}", "network.tcp.initial_window", ["1 or more"]),
    ("network.tcp={kind: window, receive_window: 65536}", "network.tcp.receive_window", ["'3 MiB'", "units: B, kB"]),
    ("network.tcp={kind: window, receive_window: 1 kB}", "network.tcp.receive_window", ["1448 or more, not '1 kB'"]),
    ("network.tcp={kind: lv08, bandwidth_factor: 0}", "network.tcp.bandwidth_factor", ["more than 0"]),
    ("network.tcp={kind: lv08, latency_factor: 0.5}", "network.tcp.latency_factor", ["1 or more"]),
    ("cluster.wan.loss=1", "cluster.wan.loss", ["less than 1"]),
    (
        "cluster.wan.loss=0.01",
        "cluster.wan.loss",
        ["ignores packet loss", "{tcp: window} or {model: packets}"],
    ),
    ("network.model=frames", "network.model", ["'frames' is unknown", "'flows', 'packets'"]),
    ("network.model={kind: packets, buffer: 1 kB}", "network.model.buffer", ["1514 or more, not '1 kB'"]),
    ("network.model={kind: packets, buffer: 30}", "network.model.buffer", ["'30 packets'", "packet, packets"]),
    ("network.model={kind: packets, priorities: 9}", "network.model.priorities", ["8 or less, not 9"]),
    ("network.model={kind: packets, paths: random}", "network.model.paths", ["'random' is unknown", "'spray'"]),
    ("network.model={kind: packets, sample_every: 1e-9 s}", "network.model.sample_every", ["1e-06 or more"]),
    (
        "network.model={kind: packets, fair: true, shared_buffer: true}",
        "network.model.shared_buffer",
        ["connections share", "false, with fair"],
    ),
    ("network.model={kind: packets, delays: nowhere}", "network.model.delays", ["'nowhere' is unknown", "'receivers'"]),
    ("network.model={kind: flows, acknowledgements: 1.5}", "network.model.acknowledgements", ["1 or less, not 1.5"]),
    (
        "network={model: {kind: flows, acknowledgements: 0.6}, tcp: lv08}",
        "network.model.acknowledgements",
        ["does not go with lv08", "0.5, its default"],
    ),
    ("network={model: {kind: flows, queue: -1 B}}", "network.model.queue", ["0 or more"]),
    *[
        (
            f"network={{model: {{kind: flows, queue: 24 packets}}, tcp: {tcp}}}",
            "network.model.queue",
            [f"does not go with {tcp}", "0 bytes, its default"],
        )
        for tcp in ("lv08", "window")
    ],
    ("network={model: packets, tcp: lv08}", "network.tcp", ["lv08 is a model for flows", "none, with model: packets"]),
    (
        f"{LAN}={{fabric: {{leaves: 4, spines: 2}}}}",
        f"{LAN}.fabric.leaves",
        ["3 workers", "4 leaves are more", "1 to 3"],
    ),
    (
        f"{LAN}.fabric={{leaves: 2, spines: 2, oversubscription: 1e-308}}",
        f"{LAN}.fabric.oversubscription",
        ["0.01 or more"],
    ),
    (f"{LAN}={{fabric: {{leaves: 2, spines: 0}}}}", f"{LAN}.fabric.spines", ["1 or more, not 0"]),
    (
        f"{LAN}={{fabric: {{leaves: 2, spines: 2}}, bandwidth: 1 Gbps}}",
        f"{LAN}.bandwidth",
        ["does not apply", "fabric: {"],
    ),
    (
        f"{LAN}.fabric={{leaves: 2, spines: 2, oversubscription: 2, bandwidth: 1 Gbps}}",
        f"{LAN}.fabric",
        ["both set", "one of them"],
    ),
    (
        "cluster.wan.paths=[{between: [east, west], loss: 0.1}]",
        "cluster.wan.paths.0.loss",
        ["ignores packet loss", "network: {tcp: window}"],
    ),
    ("cluster.clouds=[]", "cluster.clouds", ["1 or more entries"]),
    ("cluster.clouds=east", "cluster.clouds", ["must be a list, not 'east'"]),
    ("cluster.clouds.1.name=east", "cluster.clouds.1.name", ["already"]),
    ("cluster.clouds.1.name=a/b", "cluster.clouds.1.name", ["'a/b' may hold only"]),
    ("cluster.clouds.0.workers=[]", "cluster.clouds.0.workers", ["1 or more entries"]),
    (f"{GROUP}=[1]", GROUP, ["must be a mapping", "not a list"]),
    (f"{GROUP}.count=0", f"{GROUP}.count", ["1 or more"]),
    (f"{GROUP}.nic=50 Mb", f"{GROUP}.nic", ["'50 Mb' is not a bandwidth", "50 Mbps"]),
    (f"{GROUP}.nic=50", f"{GROUP}.nic", ["50 is not a bandwidth"]),
    (f"{GROUP}.nic=0 Mbps", f"{GROUP}.nic", ["more than 0"]),
    (f"{GROUP}.nic={{up: 5 Mbps}}", f"{GROUP}.nic.down", ["is required"]),
    (f"{GROUP}.nic={{up: 5 Mbps, down: 5 Mb}}", f"{GROUP}.nic.down", ["'5 Mb' is not a bandwidth"]),
    (f"{GROUP}.nic={{steps: {{0 s: 5 Mbps, 9 s: 5 Mb}}}}", f"{GROUP}.nic.steps.9 s", ["'5 Mb' is not a bandwidth"]),
    (f"{GROUP}.nic={{steps: {{0 s: 5 Mbps, soon: 5 Mbps}}}}", f"{GROUP}.nic.steps.soon", ["not a duration"]),
    (f"{GROUP}.nic={{steps: {{0 s: 5 Mbps, 0 ms: 9 Mbps}}}}", f"{GROUP}.nic.steps", ["two steps", "same time"]),
    (f"{GROUP}.nic={{steps: {{9 s: 5 Mbps}}}}", f"{GROUP}.nic", ["first step", "0 s"]),
    (f"{GROUP}.nic={{steps: {{0 s: 5 Mbps}}, repet: 9 s}}", f"{GROUP}.nic", ["unknown key 'repet'", "'repeat'"]),
    (f"{GROUP}.compute=p3.xlarge", f"{GROUP}.compute", ["'p3.xlarge'", "p2.xlarge, p2.8xlarge"]),
    (f"{GROUP}.compute=24 kores", f"{GROUP}.compute", ["'24 kores' is not a number of cores"]),
    (f"{GROUP}.compute={{cores: 8, noise: -1}}", f"{GROUP}.compute.noise", ["0 or more"]),
    ("cluster.wan={}", "cluster.wan", ["disconnected", "from 'east' to 'west'", "wan.rtt for"]),
    ("cluster.wan={paths: [{from: east, to: west}]}", "cluster.wan", ["disconnected", "from 'west' to 'east'"]),
    ("cluster.wan={rtt: 60 ms}", "cluster.wan", ["no bandwidth", "from 'east' to 'west'", "40 Mbps", "unlimited"]),
    (
        "cluster.wan={rtt: 60 ms, matrix: {east: {west: 1 Mbps}}}",
        "cluster.wan",
        ["no bandwidth", "from 'west' to 'east'"],
    ),
    (
        "cluster.wan={rtt: 60 ms, paths: [{between: [east, west]}]}",
        "cluster.wan.paths.0",
        ["no bandwidth", "from 'east' to 'west'"],
    ),
    ("cluster.wan.bandwidth=infinite", "cluster.wan.bandwidth", ["not a bandwidth", "or 'unlimited'"]),
    ("cluster.wan.paths=[{between: [east, '*']}, {between: ['*', west]}]", "cluster.wan.paths.1", ["already"]),
    (
        "cluster.wan={bandwidth: 40 Mbps}",
        "cluster.wan",
        ["no round-trip time", "from 'east' to 'west'", "60 ms", "0 ms"],
    ),
    (
        "cluster.wan={bandwidth: 40 Mbps, paths: [{from: east, to: west, rtt: 1 ms}, {from: west, to: east}]}",
        "cluster.wan.paths.1",
        ["no round-trip time", "from 'west' to 'east'"],
    ),
    (
        "cluster.wan={matrix: {east: {west: 1 Mbps}, west: {east: 1 Mbps}}}",
        "cluster.wan",
        ["no round-trip time", "from 'east' to 'west'"],
    ),
    ("cluster.wan.paths=[{between: [east, wst]}]", "cluster.wan.paths.0", ["no cloud 'wst'; did you mean 'west'?"]),
    ("cluster.wan.paths=[{between: [east, east]}]", "cluster.wan.paths.0", ["to itself"]),
    ("cluster.wan.paths=[{between: [east]}]", "cluster.wan.paths.0.between", ["2 or more entries"]),
    ("cluster.wan.paths=[{from: east}]", "cluster.wan.paths.0", ["between: [a, b]", "from: a, to: b"]),
    (
        "cluster.wan.paths=[{between: [east, west]}, {from: west, to: east}]",
        "cluster.wan.paths.1",
        ["from 'west' to 'east'", "already"],
    ),
    ("system=null", "system", ["must be a mapping", "not null"]),
    ("system={exchange: x}", "system.name", ["is required"]),
    ("system={name: dlion, exchnge: x}", "system", ["unknown key 'exchnge'; did you mean 'exchange'?"]),
    ("system.exchange=3", "system.exchange", ["must be a mapping", "not 3"]),
    ("system.exchange.kind=3", "system.exchange.kind", ["must be text, not 3"]),
]


@pytest.mark.parametrize(("override", "path", "words"), INVALID, ids=[override for override, _, _ in INVALID])
def test_invalid_values(file: Path, override: str, path: str | None, words: list[str]) -> None:
    with pytest.raises(InputError) as refusal:
        written(file, override)
    assert refusal.value.file == file
    assert refusal.value.path == path
    assert refusal.value.further == ()
    assert "\n" not in str(refusal.value)
    assert all(word in str(refusal.value) for word in words), str(refusal.value)


@pytest.mark.parametrize(
    "override",
    [
        "cluster.wan.paths=[{between: [east, LONG]}]",
        "cluster.clouds.1.name=a/LONG",
        f"{GROUP}.compute=LONG",
        f"{GROUP}.compute={' a' * 5000}",
        f"{GROUP}.nic.LONG=1",
        "seed=LONG",
    ],
)
def test_long_values_are_abbreviated(file: Path, override: str) -> None:
    with pytest.raises(InputError) as refusal:
        load(file, [override.replace("LONG", 10_000 * "x")])
    assert len(str(refusal.value)) < 800


def test_a_target_alone_may_never_be_reached(file: Path) -> None:
    with pytest.raises(InputError, match="may never be reached: also give duration or iterations"):
        load(file, ["duration=null", "target_accuracy=0.7"])


def test_all_faults_are_reported_at_once(file: Path) -> None:
    with pytest.raises(InputError) as refusal:
        written(file, "seed=x", "workload.batch_size=0", f"{GROUP}.nic=50 Mb")
    faults = [refusal.value, *refusal.value.further]
    assert [fault.path for fault in faults] == ["seed", "workload.batch_size", f"{GROUP}.nic"]
    assert all(fault.file == file for fault in faults)


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("seed", "written dotted.path=value"),
        ("=3", "written dotted.path=value"),
        ("workload..model=mlp", "written dotted.path=value"),
        ("seed=[1", "line 1, column 3"),
        ("system={name: dlion, name: ako}", "line 1, column 15: the key 'name' is given twice, first in line 1"),
        ("seed.x=3", "'seed' is 1, which has no 'x' to set"),
        ("cluster.clouds.2.name=x", "'2' is not an entry of the list 'cluster.clouds'; allowed: 0 to 1"),
        ("cluster.clouds.-1.name=x", "allowed: 0 to 1"),
        ("cluster.clouds.west.name=x", "allowed: 0 to 1"),
    ],
)
def test_malformed_overrides(file: Path, override: str, words: str) -> None:
    with pytest.raises(InputError) as refusal:
        load(file, [override])
    assert refusal.value.file == f"`overrides` {override}"
    assert words in str(refusal.value)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty"),
        (b"# nothing\n", "is empty"),
        (b"- a\n- b\n", "holds a list"),
        (b"name: a: b\n", "line 1, column 8"),
        (b"name: [a\n", "line 2, column 1"),
        (b"\tname: a\n", "line 1, column 1"),
        (b"name: a\nseed: 1\nname: b\n", "line 3, column 1: the key 'name' is given twice, first in line 1"),
        (b"system: {name: dlion, name: ako}\n", "line 1, column 23: the key 'name' is given twice, first in line 1"),
        (b"name: !!python/name:os.system a\n", "line 1, column 7"),
        (b"name: a\n---\nname: b\n", "line 2"),
        (b"name: \xff\n", "not UTF-8 text (byte 6)"),
        (b"name: \x00\n", "special characters"),
        (b"[" * 5000, "nested too deeply"),
        (b"seed: " + b"9" * 5000, "digits"),
        (b"a: 1\n" + b"# \n" * 2_500_000, "holds 7.5 MB, which is too much; allowed: 4 MB"),
        (MERGING, "aliases repeat more than 100000 values"),
        (MERGING_WIDE, "aliases repeat more than 100000 values"),
        (BOMB, "aliases repeat more than 100000 values"),
        (b"description: &here [*here]\n", "line 1, column 14: it holds itself by an alias"),
        (b"name: a\nseed: !!int ''\n", "line 2, column 7: '' is no int"),
        (b"name: a\nseed: !!int [1]\n", "line 2, column 7: expected a scalar node"),
        (b"name: !!bool maybe\n", "line 1, column 7: 'maybe' is no bool"),
        (b"name: !!timestamp foo\n", "line 1, column 7: could not determine a constructor for the tag"),
        (b"name: !!map [1]\n", "line 1, column 7: expected a mapping node"),
    ],
    ids=lambda given: None if isinstance(given, bytes) and len(given) > 100 else given,
)
def test_unreadable_files(tmp_path: Path, content: bytes, words: str) -> None:
    file = tmp_path / "bad.yaml"
    file.write_bytes(content)
    with pytest.raises(InputError) as refusal:
        load(file)
    assert refusal.value.file == file
    assert words in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_missing_file_and_folder(file: Path) -> None:
    with pytest.raises(InputError, match=r"no such file; allowed: example\.yaml"):
        load(file.parent / "exampel.yaml")
    with pytest.raises(InputError, match=r"is a folder, not a scenario; .* of a run .*/scenario\.yaml"):
        load(file.parent)


def test_data_from_python_needs_no_file() -> None:
    with pytest.raises(InputError) as refusal:
        from_data({"name": "a"})
    assert (refusal.value.file, refusal.value.path) == (None, "workload")


def test_leading_zeros_are_decimal_and_plain_tags_allowed() -> None:
    assert read_yaml("[010, 08, -007, !!str 010, !!int 5, !!float 1., !!null ~, !!bool true]") == [
        *(10, 8, -7, "010", 5, 1.0, None, True)
    ]
