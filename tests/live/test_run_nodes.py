"""Processes of a run's nodes, which leave, and which others replace."""

import subprocess
import sys

import pytest

from dlion_sim.assembly import Setting
from dlion_sim.live.node_config import Timeouts
from dlion_sim.live.nodes import Nodes
from dlion_sim.live.run_nodes import RunNodes, _running
from tests.simulation.scenarios import digits


def started(program):
    return subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)


@pytest.fixture
def nodes(tmp_path):
    """Of a run, none of which is started."""
    return RunNodes(Setting.of(digits()), tmp_path, [], paced=True, timeouts=Timeouts())


def test_former_processes_that_have_ended_keep_no_pipes():
    ended, waiting = started(""), started("input()")
    ended.wait()
    with waiting:
        assert _running([ended, waiting]) == [waiting]
        assert ended.stdin.closed
        assert ended.stdout.closed
        assert not waiting.stdin.closed
        waiting.stdin.close()


@pytest.mark.parametrize(("said", "killed"), [("samples left: 5", True), ("node 0: left", False)])
def test_a_node_that_has_left_is_not_killed(nodes, said, killed):
    nodes.processes[0] = started(f"import os; os.write(1, b'node 0: begun\\n{said}\\n'); input()")
    with nodes.processes[0] as process:
        assert process.stdout.readline() == b"node 0: begun\n"
        assert nodes.kill(0) == killed
        process.stdin.close()


def test_a_process_that_has_died_standing_by_harms_nothing(nodes):
    nodes._standing_by[0] = died = started("")
    died.wait()
    nodes.join(0, 1, 12.5)
    Nodes._ask_to_end(nodes)
    nodes._end()
    assert died.stdin.closed
