"""Options of executors: inconsistent ones are one line."""

import sys

import pytest

from tests.command import dlion
from tests.sweep.scenarios import write_sweep

RAY = ["--executor", "ray"]


def refusal(capsys, monkeypatch, folder, *arguments) -> str:
    write_sweep(folder, axes={"seed": [1]})
    monkeypatch.chdir(folder)
    assert dlion(monkeypatch, "sweep", "sweep.yaml", "--output", "out", *arguments) == 2
    assert not (folder / "out").exists()
    (line,) = capsys.readouterr().err.splitlines()
    return line


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--address", "host:6379"], "dlion: --address: needs --executor ray"),
        (["--gpus-per-job", "0.5"], "dlion: --gpus-per-job: needs --executor ray"),
        ([*RAY, "--gpus-per-job", "0"], "dlion: --gpus-per-job: 0 is neither a share of a GPU nor a number of GPUs"),
        (
            [*RAY, "--gpus-per-job", "1.5"],
            "dlion: --gpus-per-job: 1.5 is neither a share of a GPU nor a number of GPUs",
        ),
        ([*RAY, "--device", "cuda"], "dlion: --device cuda: needs --gpus-per-job"),
        ([*RAY, "--device", "cpu", "--gpus-per-job", "1"], "dlion: --device cpu: does not go with --gpus-per-job"),
    ],
)
def test_inconsistent_options_are_one_line(capsys, monkeypatch, tmp_path, arguments, line):
    assert refusal(capsys, monkeypatch, tmp_path, *arguments).startswith(line)


def test_without_ray_the_line_names_the_extra(capsys, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "ray", None)
    line = refusal(capsys, monkeypatch, tmp_path, *RAY)
    assert line.startswith("dlion: --executor ray: needs the package ray")
    assert line.endswith("pip install 'dlion-sim[ray]'")
