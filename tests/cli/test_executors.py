"""The options that say who does a sweep's runs: what does not go together is one line."""

import sys

import pytest

from dlion_sim.cli.executors import Device, ExecutorKind, ExecutorOptions
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
def test_what_does_not_go_together_is_one_line(capsys, monkeypatch, tmp_path, arguments, line):
    assert refusal(capsys, monkeypatch, tmp_path, *arguments).startswith(line)


def test_without_ray_it_is_said_what_to_install(capsys, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "ray", None)
    line = refusal(capsys, monkeypatch, tmp_path, *RAY)
    assert line.startswith("dlion: --executor ray: needs the package ray")
    assert line.endswith("pip install 'dlion-sim[ray]'")


@pytest.mark.parametrize(
    ("kind", "device", "gpus", "of_jobs"),
    [
        (ExecutorKind.LOCAL, Device.AUTO, None, "auto"),
        (ExecutorKind.RAY, Device.AUTO, None, "cpu"),
        (ExecutorKind.RAY, Device.AUTO, 0.25, "cuda"),
    ],
)
def test_jobs_on_a_cluster_compute_on_what_they_get(kind, device, gpus, of_jobs):
    assert ExecutorOptions(kind, None, device, None, gpus).device_of_jobs == of_jobs
