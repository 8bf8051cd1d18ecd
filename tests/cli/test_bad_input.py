"""Bad input ends a command with one line that names the file, the path and what is allowed, and exit code 2."""

import re
import shutil
from pathlib import Path

import pytest
import yaml

from dlion_sim.live.private_file import write_secret
from tests.command import dlion

GOOD = {
    "name": "good",
    "duration": "1 s",
    "workload": {"dataset": "digits", "model": "mlp", "evaluate_every": "1 s"},
    "cluster": {
        "clouds": [
            {"name": "east", "workers": [{"count": 2, "compute": "8 cores", "nic": "50 Mbps"}]},
            {"name": "west", "workers": [{"compute": "4 cores", "nic": "20 Mbps"}]},
        ],
        "wan": {"bandwidth": "40 Mbps", "rtt": "60 ms"},
    },
    "system": "dlion",
}


def changed(path: str, value: object) -> dict:
    """GOOD with one value set, or with a key removed (value None)."""
    data = yaml.safe_load(yaml.safe_dump(GOOD))
    place = data
    *above, last = path.split(".")
    for key in above:
        place = place[int(key)] if isinstance(place, list) else place[key]
    if value is None:
        del place[last]
    else:
        place[int(last) if isinstance(place, list) else last] = value
    return data


NIC = "cluster.clouds.0.workers.0.nic"
BAD_VALUES = [
    # Path, value, and parts of the line: the place, and what is wrong or allowed. What the scenario's models refuse is
    # in tests/scenario/test_faults.py.
    ("durration", "5 s", ["unknown key 'durration'", "did you mean 'duration'", "allowed: name"]),
    (NIC, "50 Mb", [NIC, "'50 Mb' is not a bandwidth", "50 Mbps", "Gbps"]),
    ("cluster.wan", None, ["cluster", "east", "west"]),
    ("workload.dataset", "imagenet", ["workload.dataset", "'imagenet'", "cifar10, cifar10_halved, cifar10_unit"]),
    ("workload.model", "resnet", ["workload.model", "'resnet'", "cipher", "mobilenet"]),
    ("workload.batch_size", 5000, ["workload.batch_size", "5000", "allowed: 1 to 479"]),
    ("workload.validation", 0.001, ["workload.validation", "0.001 of no class", "to 0.5"]),
    ("workload.kernels", "mkl", ["workload.kernels", "fast"]),
    (
        "system",
        "dlionn",
        ["system", "'dlionn'", "did you mean 'dlion'", "allowed: adpsgd, ako, "],
    ),
    ("system", {"name": "dlion", "exchange": "most"}, ["system.exchange", "'most'", "max_n"]),
    ("system", {"name": "dlion", "exchange": {"n_mim": 1}}, ["system.exchange", "'n_mim'", "'n_min'"]),
    ("system", {"name": "baseline", "exchange": {"n_min": 1}}, ["system.exchange", "'n_min'"]),
    ("system", {"name": "hop", "synchronization": {"skip_from": 2}}, ["system.synchronization", "needs max_gap"]),
    ("system", {"name": "dlion", "batching": {"weights": "rato"}}, ["system.batching.weights", "'ratio'"]),
]


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def fails_with_one_line(capsys, monkeypatch, here: Path, *arguments) -> str:
    """The line with which a command ends. It exits with 2 and leaves no files."""
    before = sorted(here.rglob("*"))
    assert dlion(monkeypatch, *arguments) == 2
    output = capsys.readouterr()
    assert output.out == ""
    lines = [line for line in output.err.splitlines() if re.match("dlion: ", line)]
    assert len(lines) == len(lines[:1]) == 1, output.err
    assert "Traceback" not in output.err
    assert sorted(here.rglob("*")) == before
    return lines[0]


@pytest.mark.parametrize(("path", "value", "words"), BAD_VALUES, ids=lambda value: str(value)[:40])
def test_a_bad_value(capsys, monkeypatch, here, path, value, words):
    (here / "bad.yaml").write_text(yaml.safe_dump(changed(path, value)))
    line = fails_with_one_line(capsys, monkeypatch, here, "run", "bad.yaml")
    assert line.startswith("dlion: bad.yaml: ")
    for word in words:
        assert word in line


def test_a_target_without_a_bound_may_never_be_reached(capsys, monkeypatch, here):
    (here / "bad.yaml").write_text(yaml.safe_dump({**changed("duration", None), "target_accuracy": 0.9}))
    line = fails_with_one_line(capsys, monkeypatch, here, "run", "bad.yaml")
    assert "may never be reached" in line
    assert "duration or iterations" in line


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ["is empty", "name"]),
        (b"\xff\xfe\x00", ["UTF-8"]),
    ],
    ids=["empty", "no text"],
)
def test_a_bad_file(capsys, monkeypatch, here, text, words):
    (here / "bad.yaml").write_bytes(text if isinstance(text, bytes) else text.encode())
    line = fails_with_one_line(capsys, monkeypatch, here, "run", "bad.yaml")
    assert line.startswith("dlion: bad.yaml: ")
    assert all(word in line for word in words)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "quikstart"], ["quikstart", "quickstart"]),
        (["run", "."], [".", "is a folder, not a scenario", "scenario.yaml"]),
        (["run"], ["SCENARIO", "is missing", "--resume DIR"]),
        (["run", "--resume", "nowhere"], ["nowhere", "is not a run folder"]),
        (["run", "good.yaml", "--resume", "nowhere"], ["--resume", "does not go with a scenario, 'good.yaml'"]),
        (
            ["run", "--resume", "nowhere", "--set", "seed=2", "--set", "duration=1 s"],
            ["does not go with --set seed=2 --set 'duration=1 s'"],
        ),
        (["run", "--resume", "nowhere", "--output", "here"], ["does not go with --output here"]),
        (["run", "--resume", "nowhere", "--device", "cpu"], ["does not go with --device cpu"]),
        (["run", "--resume", "nowhere", "--force"], ["--resume", "does not go with --force;"]),
        (["run", "good.yaml", "--set", "duration"], ["--set duration", "dotted.path=value"]),
        (["run", "good.yaml", "--set", "cluster.clouds.9.name=x"], ["--set cluster.clouds.9.name=x", "0 to 1"]),
        (["run", "good.yaml", "--output", "good.yaml"], ["good.yaml", "is a file"]),
        (["run", "good.yaml", "--output", "."], ["holds other things"]),
        (["run", "good.yaml", "--output", "/proc/run"], ["/proc/run", "cannot be written"]),
    ],
    ids=lambda value: " ".join(value) if value[0] == "run" else "",
)
def test_bad_arguments(capsys, monkeypatch, here, arguments, words):
    (here / "good.yaml").write_text(yaml.safe_dump(GOOD))
    line = fails_with_one_line(capsys, monkeypatch, here, *arguments)
    assert all(word in line for word in words)


@pytest.mark.parametrize(
    "command",
    [
        ["run", "--output=out"],
        ["live", "--output=out"],
        ["sweep", "--output=out"],
        ["node", "--rank=0", "--peers=127.0.0.1:1", "--secret-file=secret", "--output=out"],
    ],
    ids=lambda command: command[0],
)
def test_a_missing_gpu_is_one_line(capsys, monkeypatch, here, command):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    (here / "good.yaml").write_text(yaml.safe_dump(GOOD))
    write_secret(here / "secret")
    name, *options = command
    line = fails_with_one_line(capsys, monkeypatch, here, name, "good.yaml", "--device=cuda", *options)
    assert "--device cuda: this machine has no GPU that PyTorch can use" in line
    assert not (here / "out").exists()


def test_a_run_is_not_overwritten_unless_forced(capsys, monkeypatch, here):
    (here / "good.yaml").write_text(yaml.safe_dump(GOOD))
    assert dlion(monkeypatch, "run", "good.yaml", "--output", "out", "--quiet") == 0
    line = fails_with_one_line(capsys, monkeypatch, here, "run", "good.yaml", "--output", "out")
    assert "already holds a run" in line
    assert "--force" in line
    assert dlion(monkeypatch, "run", "good.yaml", "--output", "out", "--quiet", "--force") == 0


def test_several_faults_are_a_line_each(capsys, monkeypatch, here):
    (here / "bad.yaml").write_text(yaml.safe_dump({**changed(NIC, "50 Mb"), "seed": -1}))
    assert dlion(monkeypatch, "run", "bad.yaml") == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert "seed" in lines[0]
    assert NIC in lines[1]


def test_a_truncated_data_file(capsys, monkeypatch, here, published):
    shutil.copytree(published("fashion-mnist"), here / "fashion-mnist", copy_function=shutil.copyfile)
    labels = here / "fashion-mnist" / "train-labels-idx1-ubyte.gz"
    labels.write_bytes(labels.read_bytes()[:1000])
    monkeypatch.setenv("DLION_DATA", str(here))
    (here / "good.yaml").write_text(yaml.safe_dump(changed("workload.dataset", "fashion_mnist")))
    line = fails_with_one_line(capsys, monkeypatch, here, "run", "good.yaml")
    assert "train-labels-idx1-ubyte.gz" in line
    assert "1000 bytes" in line


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("duration=10", ["--set duration=10: duration: 10 is not a duration"]),
        ("system.exchange.n_min=few", ["--set system.exchange.n_min=few: system.exchange.n_min: must be a number"]),
        ("lr=0.1", ["--set lr=0.1: unknown key 'lr'; there is workload.optimizer.learning_rate"]),
        ("learning_rate=0.1", ["there is workload.optimizer.learning_rate"]),
        ("system.period=10", ["--set system.period=10: ", "system.exchange.period (", "diloco", "local_sgd"]),
        ("cluster.wan.rtt=20 ms", ["--set cluster.wan.rtt=20 ms: ", "allowed: cluster.wan.paths.*.rtt"]),
    ],
)
def test_a_bad_override_is_reported_with_the_right_path(capsys, monkeypatch, here, override, words):
    line = fails_with_one_line(capsys, monkeypatch, here, "run", "quickstart", "--set", override)
    assert line.startswith(f"dlion: --set {override}: ")
    assert all(word in line for word in words)
    assert "quickstart.yaml" not in line


def test_a_sweep_is_not_run_as_a_scenario_nor_the_reverse(capsys, monkeypatch, here):
    line = fails_with_one_line(capsys, monkeypatch, here, "run", "sweeps/digits")
    assert "digits.yaml: is a sweep, not a scenario; allowed: a scenario; sweeps are for `dlion sweep`" in line
    line = fails_with_one_line(capsys, monkeypatch, here, "sweep", "quickstart", "--output", here / "out")
    assert "quickstart.yaml: is a scenario, not a sweep; allowed: a sweep; scenarios are for `dlion run`" in line


def test_settings_without_effect_give_a_warning(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    wan = {"bandwidth": "40 Mbps", "rtt": "60 ms", "paths": [{"between": ["east", "west"], "rtt": "5 ms"}]}
    data = {**changed("duration", "0.1 s"), "cluster": {**GOOD["cluster"], "wan": wan}}
    data["cluster"]["clouds"][1]["lan"] = {"bandwidth": "1 Gbps", "rtt": "1 ms"}
    Path("file.yaml").write_text(yaml.safe_dump(data))
    assert dlion(monkeypatch, "run", "file.yaml", "-o", "run", "-q") == 0
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "dlion: file.yaml: cluster.wan.rtt: nothing reads it: all of cluster.wan.paths have their own rtt; "
        "read instead: cluster.wan.paths.*.rtt, of all these at once",
    ]
    for again in ("run/scenario.yaml", "file.yaml"):
        overrides = ["cluster.wan.rtt=null"] if again == "file.yaml" else []
        sets = [part for each in overrides for part in ("--set", each)]
        assert dlion(monkeypatch, "run", again, "-o", f"again-{again[:4]}", "-q", *sets) == 0
        assert capsys.readouterr().err == ""
