"""Mininet's command line on a scenario's network, fed as if typed; nothing is left behind."""

import io
import logging
import os
import signal
import subprocess
import sys
from contextlib import contextmanager

import pytest
from mininet.log import StreamHandlerNoNewline

from dlion_sim.emulation.console import _Console, _signals
from dlion_sim.emulation.leftovers import remove_leftovers
from dlion_sim.results import Run
from dlion_sim.scenario import dump
from tests.command import dlion
from tests.emulation.traces import traces
from tests.simulation.scenarios import digits

CLUSTER = {
    "clouds": [{"name": "a", "workers": [{"count": 2, "nic": "20 Mbps"}]}, {"name": "b", "workers": [{}]}],
    "wan": {"bandwidth": "10 Mbps", "rtt": "20 ms"},
}
emulation = pytest.mark.emulation(by_hand=True)


@pytest.fixture
def console(tmp_path):
    """Opens one in a process of its own."""
    remove_leftovers()
    before = traces()

    @contextmanager
    def opened(*options, **environment):
        (tmp_path / "small.yaml").write_text(
            dump(digits("workload.evaluate_every=0.5 s", cluster=CLUSTER, duration="600 s", system="baseline"))
        )
        running = subprocess.Popen(
            [sys.executable, "-m", "dlion_sim", "emulate", "--cli", str(tmp_path / "small.yaml"), *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "HOME": str(tmp_path), **environment},  # Mininet keeps what is typed there.
        )
        try:
            yield running
        finally:
            running.kill()
            running.communicate()

    yield opened
    assert traces() == before


def said(running, *typed, code=0):
    output, _ = running.communicate("".join(f"{line}\n" for line in typed), timeout=60)
    assert running.returncode == code, output
    return output


def until(running, end):
    output = ""
    while not output.endswith(end):
        character = running.stdout.read(1)
        assert character, output
        output += character


@emulation
def test_hosts_reach_each_other_and_the_nodes_are_told(console):
    with console() as running:
        output = said(running, "pingall", "nodes", "py net['r1'].IP()", "s0 true r0", "no such", "exit")
    lines = [line.split() for line in output.splitlines()]
    assert ["h1", "10.0.0.2", "a/1"] in lines
    assert ["r1", "10.1.255.254", "router", "of", "b"] in lines
    assert "0% dropped (6/6 received)" in output
    assert "h0 h1 h2 r0 r1 s0 s1" in output
    assert "10.1.255.254\n" in output
    assert "Unknown command: no such" in output


@emulation
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_what_ends_it_at_the_prompt_leaves_nothing(console, number):
    with console() as running:
        until(running, "mininet> ")
        running.send_signal(number)
        said(running, code=130)


@emulation
def test_ctrl_c_ends_a_command_and_not_the_rest(console):
    with console() as running:
        for command in ("h0 echo begun; sleep 100", "sh echo begun; exec sleep 100"):
            until(running, "mininet> ")
            running.stdin.write(f"{command}\n")
            running.stdin.flush()
            until(running, "begun\n")
            running.send_signal(signal.SIGINT)
        until(running, "mininet> ")
        assert "(6/6 received)" in said(running, "pingall", "exit")


@emulation
def test_a_request_to_terminate_ends_it_whatever_runs(console):
    with console() as running:
        until(running, "mininet> ")
        running.stdin.write("h0 echo begun; sleep 100\n")
        running.stdin.flush()
        until(running, "begun\n")
        running.terminate()
        said(running, code=130)


@emulation
def test_what_the_kernel_refuses_leaves_nothing(console, tmp_path):
    (tmp_path / "tc").write_text("#!/bin/sh\necho 'Specified qdisc kind is unknown.' >&2\nexit 2\n")
    (tmp_path / "tc").chmod(0o755)
    with console(PATH=f"{tmp_path}:{os.environ['PATH']}") as running:
        (line,) = said(running, "pingall", code=2).splitlines()
    assert "qdisc kind is unknown" in line


@emulation
def test_nodes_train_meanwhile_until_it_is_left(console, tmp_path):
    with console("--start", "--output", str(tmp_path / "run")) as running:
        output = said(running, "sh sleep 1", "exit", code=130)
    assert output.index("h2") < output.index("ended interrupted")
    assert len(Run.open(tmp_path / "run").iterations()) > 3


def test_a_request_to_terminate_is_not_lost_where_mininet_prints():
    """It keeps most exceptions to itself there."""

    class Asking(io.StringIO):
        def write(self, text):
            signal.raise_signal(signal.SIGTERM)

    record = logging.makeLogRecord({"msg": "begun"})
    with _signals(), pytest.raises(SystemExit):
        StreamHandlerNoNewline(Asking()).emit(record)


def test_a_signal_is_not_lost_while_the_prompt_is_written(monkeypatch):
    class Asking(io.StringIO):
        def flush(self):
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(sys, "stdout", Asking())
    monkeypatch.setattr(_Console, "readlineInited", True)  # It would write what was typed at the end of all tests.
    with open(os.devnull) as nothing:
        monkeypatch.setattr(sys, "stdin", nothing)
        with _signals(), pytest.raises(KeyboardInterrupt):
            _Console({}, stdin=nothing)


def test_nodes_to_start_are_for_the_console(monkeypatch, capsys):
    assert dlion(monkeypatch, "emulate", "quickstart", "--start") == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "--start requires --cli" in line
