"""Processes of a run's nodes, which others have replaced."""

import subprocess
import sys

from dlion_sim.live.run_nodes import _running


def started(program):
    return subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def test_former_processes_that_have_ended_keep_no_pipes():
    ended, waiting = started(""), started("input()")
    ended.wait()
    with waiting:
        assert _running([ended, waiting]) == [waiting]
        assert ended.stdin.closed
        assert ended.stdout.closed
        assert not waiting.stdin.closed
        waiting.stdin.close()
