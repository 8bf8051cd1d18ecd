"""The acceptance on a GPU: a whole rehearsal, and early ends with partial results."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from benchmarks.gpu_accept.record import Record, Step, read
from benchmarks.gpu_accept.running import run

ROOT = Path(__file__).parents[2]
REHEARSAL = [sys.executable, "-m", "benchmarks.gpu", "--accept", "--rehearse"]


def until(condition, seconds=60.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it takes too long"
        time.sleep(0.02)


def content(file):
    return json.loads(file.read_text())


def outcomes(file):
    return {step["name"]: (step["status"], step["message"]) for step in content(file)["steps"]}


def is_running(process):
    with suppress(OSError):
        return "Z" not in Path(f"/proc/{process}/stat").read_text().rpartition(")")[2][:3]
    return False


@pytest.fixture
def file(tmp_path):
    return tmp_path / "accepted.json"


@pytest.fixture
def accept(file):
    """Runs steps by name, with a bound for each."""

    def accept(work, limit=60.0, bound=60.0, interrupted=lambda: None):
        record = Record(file, True, limit, [Step(name, "", bound) for name in work])
        run(record, work, interrupted)
        return record

    return accept


def figures(folder, seconds):
    yield {"folder": folder.name, "seconds": seconds}
    yield {"share": 0.5}


def failing(folder, seconds):
    yield {"share": 0.25}
    print("details")
    raise ValueError("too far\nand more")


def sleeping(folder, seconds):
    yield {"process": os.getpid(), "child": subprocess.Popen(["sleep", "60"], start_new_session=True).pid}
    time.sleep(60)


def dying(folder, seconds):
    yield {"share": 0.125}
    os._exit(3)


def test_a_failed_step_has_a_message_and_the_others_run(accept, file):
    record = accept({"one": failing, "two": dying, "three": figures})
    assert outcomes(file) == {
        "one": ("failed", "ValueError: too far"),
        "two": ("failed", "ended without a message"),
        "three": ("passed", ""),
    }
    assert [len(step["rows"]) for step in content(file)["steps"]] == [1, 1, 2]
    assert any("details" in line for line in record.steps[0].log)
    assert record.status == "completed"


def test_a_step_out_of_time_is_killed_with_its_descendants(accept, file):
    record = accept({"one": sleeping, "two": figures}, bound=0.5)
    assert [step.status for step in record.steps] == ["out of time", "passed"]
    (row,) = content(file)["steps"][0]["rows"]
    until(lambda: not any(map(is_running, row.values())))


def test_at_the_limit_partial_results_remain(accept, file):
    began = time.monotonic()
    record = accept({"one": figures, "two": sleeping, "three": figures}, limit=1.5)
    assert time.monotonic() - began < 60, "as long as what sleeps"
    assert [step.status for step in record.steps] == ["passed", "out of time", "not run"]
    assert content(file)["status"] == "cut off by its limit"
    assert content(file)["steps"][0]["rows"][0]["seconds"] <= 1.5


def test_after_a_signal_partial_results_remain(accept, file):
    asked = lambda: signal.SIGTERM if file.exists() and content(file)["steps"][1]["rows"] else None  # noqa: E731
    accept({"one": figures, "two": sleeping, "three": figures}, interrupted=asked)
    assert [status for status, _ in outcomes(file).values()] == ["passed", "out of time", "not run"]
    assert content(file)["status"] == "cut off by SIGTERM"


def test_after_a_kill_partial_results_remain_and_the_step_ends(accept, file):
    whole = os.fork()
    if not whole:
        accept({"one": figures, "two": sleeping})
        os._exit(0)
    until(lambda: file.exists() and content(file)["steps"][1]["rows"])
    os.kill(whole, signal.SIGKILL)
    os.waitpid(whole, 0)
    assert [step["status"] for step in content(file)["steps"]] == ["passed", "running"]
    until(lambda: not is_running(content(file)["steps"][1]["rows"][0]["process"]))
    os.kill(content(file)["steps"][1]["rows"][0]["child"], signal.SIGKILL)  # of a session of its own


def test_a_rehearsal_runs_every_step(file):
    ran = subprocess.run([*REHEARSAL, "--output", file], cwd=ROOT, capture_output=True, text=True, timeout=400)
    assert ran.returncode == 0, ran.stdout + ran.stderr + file.read_text()
    result = content(file)
    assert (result["rehearsal"], result["status"]) == (True, "completed")
    assert all(step["status"] == "passed" and step["rows"] for step in result["steps"]), outcomes(file)
    rows = {step["name"]: step["rows"] for step in result["steps"]}
    assert all(row["fused"] > 0 < row["one_by_one"] for row in rows["rates"])
    assert all(0 < row["busy"] <= 1 for row in rows["busy"])
    assert [row["device"] for row in rows["nodes"]] == ["cpu", "cpu"]
    assert rows["paper"][0]["virtual_seconds"] > 0
    assert "goal: fused gradients, mlp, 64 workers: 10 times one by one; not measured" in ran.stdout
    assert read(file) == {}, "its figures mean nothing"


def test_a_terminated_rehearsal_keeps_its_results(file):
    with subprocess.Popen([*REHEARSAL, "--output", file], cwd=ROOT, stdout=subprocess.PIPE) as whole:
        until(lambda: file.exists() and outcomes(file)["machine"][0] == "passed")
        whole.terminate()
        assert whole.wait(timeout=60) == 128 + signal.SIGTERM
    assert content(file)["status"] == "cut off by SIGTERM"
    assert content(file)["steps"][0]["rows"]


def test_a_rehearsal_ends_at_its_limit(file):
    ran = subprocess.run([*REHEARSAL, "--limit", "1", "--output", file], cwd=ROOT, capture_output=True, timeout=60)
    assert ran.returncode == 1
    assert content(file)["status"] == "cut off by its limit"
    assert content(file)["seconds"] < 5
    assert outcomes(file)["paper"] == ("not run", "")
