"""A machine that cannot emulate is told what to do, in one line."""

import builtins
import os
import shutil
import subprocess
import sys

import pytest

from dlion_sim.cli.main import main
from dlion_sim.emulation import cpu
from dlion_sim.emulation.requirements import check_requirements
from dlion_sim.errors import InputError
from emulation import measure
from tests.command import dlion


@pytest.fixture
def able(monkeypatch):
    """A machine that has all."""
    monkeypatch.setattr(shutil, "which", lambda tool: f"/usr/bin/{tool}")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(subprocess, "run", lambda command, **_: subprocess.CompletedProcess(command, 0, "", ""))


def fault() -> str:
    with pytest.raises(InputError) as error:
        check_requirements()
    return str(error.value)


def test_a_machine_that_has_all_will_do(able):
    check_requirements()


def test_missing_tools_are_named_by_their_packages(able, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda tool: None if tool in ("mnexec", "brctl") else tool)
    assert fault().endswith("apt-get install --no-install-recommends bridge-utils mininet")


def test_mininet_for_python_is_an_extra(able, monkeypatch):
    real = builtins.__import__

    def without(name, *rest):
        if name.startswith("mininet"):
            raise ImportError("No module named 'mininet'")
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    assert "pip install 'dlion-sim[emulation]'" in fault()


def test_it_takes_root(able, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert "needs root" in fault()


def test_it_takes_a_root_that_may(able, monkeypatch):
    refused = subprocess.CompletedProcess([], 1, "", "unshare: Operation not permitted")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: refused)
    assert "Operation not permitted" in fault()


def test_without_pacing_it_takes_a_cpu_controller(able, monkeypatch):
    monkeypatch.setattr(cpu, "_mounted", lambda: None)
    check_requirements()
    with pytest.raises(InputError, match="'cpu', which is not mounted"):
        check_requirements(paced=False)


def test_without_pacing_it_takes_one_that_can_be_written(able, monkeypatch, tmp_path):
    monkeypatch.setattr(cpu, "_mounted", lambda: tmp_path)
    check_requirements(paced=False)
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(InputError, match=f"needs {tmp_path} to be writable"):
        check_requirements(paced=False)


def test_inspecting_networks_needs_ping(able, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda tool: None if tool == "ping" else tool)
    check_requirements()
    with pytest.raises(InputError, match="apt-get install --no-install-recommends iputils-ping"):
        check_requirements(by_hand=True)


@pytest.mark.parametrize("arguments", [["emulation/four_workers"], ["emulation/four_workers", "--cli"], ["--clean"]])
def test_the_command_says_it_in_one_line(able, monkeypatch, capsys, arguments):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert dlion(monkeypatch, "emulate", *arguments) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("dlion: emulation needs root")


def test_the_script_says_it_in_one_line(able, monkeypatch, capsys):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(sys, "argv", ["script", "emulation/four_workers"])
    with pytest.raises(SystemExit) as stopped:
        main(measure.app)
    (line,) = capsys.readouterr().err.splitlines()
    assert (stopped.value.code, line.startswith("dlion: emulation needs root")) == (2, True)
