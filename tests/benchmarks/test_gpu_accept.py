"""What is done with the first minutes on a GPU: all in a rehearsal, and ending in time with what there is."""

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


def told(file):
    return json.loads(file.read_text())


def outcomes(file):
    return {step["name"]: (step["status"], step["message"]) for step in told(file)["steps"]}


def is_there(process):
    with suppress(OSError):
        return "Z" not in Path(f"/proc/{process}/stat").read_text().rpartition(")")[2][:3]
    return False


@pytest.fixture
def file(tmp_path):
    return tmp_path / "accepted.json"


@pytest.fixture
def accept(file):
    """Does steps, each of which may take as long as is said, by name."""

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
    print("what was tried")
    raise ValueError("too far\nfrom the truth")


def sleeping(folder, seconds):
    yield {"process": os.getpid(), "child": subprocess.Popen(["sleep", "60"], start_new_session=True).pid}
    time.sleep(60)


def dying(folder, seconds):
    yield {"share": 0.125}
    os._exit(3)


def test_a_step_that_fails_says_why_and_the_others_go_on(accept, file):
    record = accept({"one": failing, "two": dying, "three": figures})
    assert outcomes(file) == {
        "one": ("failed", "ValueError: too far"),
        "two": ("failed", "ended without a word"),
        "three": ("passed", ""),
    }
    assert [len(step["rows"]) for step in told(file)["steps"]] == [1, 1, 2]
    assert any("what was tried" in line for line in record.steps[0].log)
    assert record.status == "completed"


def test_a_step_whose_time_is_over_is_killed_with_all_that_it_started(accept, file):
    record = accept({"one": sleeping, "two": figures}, bound=0.5)
    assert [step.status for step in record.steps] == ["out of time", "passed"]
    (row,) = told(file)["steps"][0]["rows"]
    until(lambda: not any(map(is_there, row.values())))


def test_at_its_limit_it_ends_with_what_it_has(accept, file):
    began = time.monotonic()
    record = accept({"one": figures, "two": sleeping, "three": figures}, limit=1.5)
    assert time.monotonic() - began < 60, "as long as what sleeps"
    assert [step.status for step in record.steps] == ["passed", "out of time", "not run"]
    assert told(file)["status"] == "cut off by its limit"
    assert told(file)["steps"][0]["rows"][0]["seconds"] <= 1.5


def test_when_asked_it_ends_with_what_it_has(accept, file):
    asked = lambda: signal.SIGTERM if file.exists() and told(file)["steps"][1]["rows"] else None  # noqa: E731
    accept({"one": figures, "two": sleeping, "three": figures}, interrupted=asked)
    assert [status for status, _ in outcomes(file).values()] == ["passed", "out of time", "not run"]
    assert told(file)["status"] == "cut off by SIGTERM"


def test_when_killed_what_it_has_stays_and_its_step_ends(accept, file):
    whole = os.fork()
    if not whole:
        accept({"one": figures, "two": sleeping})
        os._exit(0)
    until(lambda: file.exists() and told(file)["steps"][1]["rows"])
    os.kill(whole, signal.SIGKILL)
    os.waitpid(whole, 0)
    assert [step["status"] for step in told(file)["steps"]] == ["passed", "running"]
    until(lambda: not is_there(told(file)["steps"][1]["rows"][0]["process"]))
    os.kill(told(file)["steps"][1]["rows"][0]["child"], signal.SIGKILL)  # of a session of its own


def test_a_rehearsal_does_every_step(file):
    ran = subprocess.run([*REHEARSAL, "--output", file], cwd=ROOT, capture_output=True, text=True, timeout=400)
    assert ran.returncode == 0, ran.stdout + ran.stderr + file.read_text()
    result = told(file)
    assert (result["rehearsal"], result["status"]) == (True, "completed")
    assert all(step["status"] == "passed" and step["rows"] for step in result["steps"]), outcomes(file)
    rows = {step["name"]: step["rows"] for step in result["steps"]}
    assert all(row["fused"] > 0 < row["one_by_one"] for row in rows["rates"])
    assert all(0 < row["busy"] <= 1 for row in rows["busy"])
    assert [row["device"] for row in rows["nodes"]] == ["cpu", "cpu"]
    assert rows["paper"][0]["virtual_seconds"] > 0
    assert "goal: fused gradients, mlp, 64 workers: 10 times one by one; not measured" in ran.stdout
    assert read(file) == {}, "its figures say nothing"


def test_a_rehearsal_that_is_to_end_keeps_what_it_has(file):
    with subprocess.Popen([*REHEARSAL, "--output", file], cwd=ROOT, stdout=subprocess.PIPE) as whole:
        until(lambda: file.exists() and outcomes(file)["machine"][0] == "passed")
        whole.terminate()
        assert whole.wait(timeout=60) == 128 + signal.SIGTERM
    assert told(file)["status"] == "cut off by SIGTERM"
    assert told(file)["steps"][0]["rows"]


def test_a_rehearsal_of_a_second_ends_after_it(file):
    ran = subprocess.run([*REHEARSAL, "--limit", "1", "--output", file], cwd=ROOT, capture_output=True, timeout=60)
    assert ran.returncode == 1
    assert told(file)["status"] == "cut off by its limit"
    assert told(file)["seconds"] < 5
    assert outcomes(file)["paper"] == ("not run", "")
