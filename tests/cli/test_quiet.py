"""Long commands print nothing but errors with --quiet."""

import hashlib

import pooch
import pytest
import typer

from dlion_sim.cli.main import app
from dlion_sim.cli.progress import SweepProgress
from dlion_sim.learning.datasets import registry
from dlion_sim.learning.datasets.registry import DATASETS
from dlion_sim.learning.datasets.source import Source
from dlion_sim.simulation import simulate
from dlion_sim.sweep import Ended, Started
from tests.command import dlion
from tests.made_up import made_up_run
from tests.simulation.checkpointing.test_checkpoint import After
from tests.simulation.scenarios import digits
from tests.sweep.scenarios import write_sweep

AT_ONCE = {"schema", "systems", "models", "datasets", "devices", "catalogs", "scenarios", "compare"}
"""Commands whose only purpose is their output."""


def test_every_long_command_can_be_quiet():
    commands = dict(typer.main.get_command(app).commands)
    plots, calibrations = commands.pop("plot").commands, commands.pop("calibrate").commands
    for name, command in {**commands, **plots, **calibrations}.items():
        quiet = [each for each in command.params if "--quiet" in each.opts]
        assert bool(quiet) != (name in AT_ONCE), name
        assert all(each.help == "Print nothing but errors." for each in quiet)


@pytest.mark.parametrize("quiet", [True, False])
def test_a_quiet_download_prints_nothing(capfd, monkeypatch, tmp_path, quiet):
    def download(url, known_hash, name, folder, processor, downloader):
        pooch.get_logger().info("Downloading data")
        downloader.progressbar.update(1)
        folder.mkdir()
        (folder / name).touch()

    def digits():
        Source("things", {"one": hashlib.md5(b"").hexdigest()}, "http://127.0.0.1:9").read()
        return DATASETS["digits"]()

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FORCE_COLOR", "1")  # as on a terminal
    monkeypatch.setattr(pooch, "os_cache", lambda name: tmp_path)
    monkeypatch.setattr(pooch, "retrieve", download)
    monkeypatch.setattr(registry, "DATASETS", {"digits": digits})
    options = ["--set", "duration=1 ms", "-o", "run", *(["-q"] if quiet else [])]
    assert dlion(monkeypatch, "run", "quickstart", *options) == 0
    assert bool(capfd.readouterr().err) != quiet
    assert not pooch.get_logger().disabled


@pytest.mark.parametrize("to", ["csv", "tensorboard", "trace"])
def test_a_quiet_export_prints_nothing(capfd, monkeypatch, tmp_path, to):
    monkeypatch.chdir(tmp_path)
    made_up_run(tmp_path / "run")
    assert dlion(monkeypatch, "export", "run", "--to", to, "-o", "out", "-q") == 0
    assert list((tmp_path / "out").iterdir())
    assert capfd.readouterr() == ("", "")


def test_a_quiet_resumed_run_prints_nothing(capfd, monkeypatch, tmp_path):
    simulate(digits(), tmp_path / "run", interrupted=After(10))
    assert dlion(monkeypatch, "run", "--resume", tmp_path / "run", "-q") == 0
    assert capfd.readouterr() == ("", "")


def test_a_quiet_plan_and_progress_print_nothing(capfd, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    write_sweep(tmp_path, axes={"seed": [1, 2]})
    assert dlion(monkeypatch, "sweep", "sweep.yaml", "-o", "out", "--dry-run", "-q") == 0
    with SweepProgress(1, quiet=True) as progress:
        progress.show(Started("a"))
        progress.show(Ended("a", "failed", "a reason"))
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("overrides", "keys"),
    [
        ([], {"axes": {"seed": [1]}}),
        (
            ["workload.validation=0.2"],
            {"search": {"trials": 1, "metric": "accuracy", "over": {"workload.batch_size": [8, 16]}}},
        ),
    ],
    ids=["sweep", "search"],
)
def test_a_quiet_sweep_or_search_prints_nothing(capfd, monkeypatch, tmp_path, at_once, overrides, keys):
    monkeypatch.chdir(tmp_path)
    write_sweep(tmp_path, *overrides, **keys)
    assert dlion(monkeypatch, "sweep", "sweep.yaml", "-o", "out", "-q") == 0
    assert list((tmp_path / "out").glob("*/summary.json"))
    assert capfd.readouterr() == ("", "")
