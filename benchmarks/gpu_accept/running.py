"""Steps in their own processes, which report figures immediately and end in time."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from benchmarks.gpu_accept.record import Record, Row, Step

Work = Callable[[Path, float], Iterable[Row]]
"""Yields figures, given an empty folder and the seconds available; an exception fails the step."""
_POLL_SECONDS = 0.1
_LEAST_SECONDS = 1.0
"""With less time left, no step starts."""
_LOG_LINES = 20


def has_gpu() -> bool:
    """Whether PyTorch can use a GPU; tested in another process, as one with CUDA must not be forked."""
    child = os.fork()
    if not child:
        import torch

        os._exit(0 if torch.cuda.is_available() else 1)
    return os.waitpid(child, 0)[1] == 0


def run(record: Record, work: dict[str, Work], interrupted: Callable[[], int | None]) -> None:
    """Run the steps in order until all are done, the limit is reached, or `interrupted` returns a signal's number."""
    for step in record.steps:
        if interrupted() or record.left < _LEAST_SECONDS:
            break
        _run_step(record, step, work[step.name], interrupted)
        record.save()
        print(f"{step.name}: {step.status}, {step.seconds:.1f} s{f': {step.message}' * bool(step.message)}", flush=True)
    if number := interrupted():
        record.status = f"cut off by {signal.Signals(number).name}"
    elif any(step.status == "not run" for step in record.steps) or record.left <= 0:
        record.status = "cut off by its limit"
    else:
        record.status = "completed"
    record.save()


def _run_step(record: Record, step: Step, work: Work, interrupted: Callable[[], int | None]) -> None:
    began, bound = time.monotonic(), min(step.bound, record.left)
    step.status, step.message = "running", "ended without a message"
    record.save()
    folder = Path(tempfile.mkdtemp(prefix="dlion-gpu-"))
    child, reports = _start(work, folder, bound)
    lines = b""
    try:
        while step.status == "running":
            if interrupted() or time.monotonic() - began > bound:
                step.status, step.message = "out of time", f"stopped after {time.monotonic() - began:.0f} s"
            elif select.select([reports], [], [], _POLL_SECONDS)[0]:
                received = os.read(reports, 1 << 16)
                *whole, lines = (lines + received).split(b"\n")
                for line in whole:
                    _take(step, json.loads(line))
                if whole:
                    record.save()
                if not received and step.status == "running":
                    step.status = "failed"
    finally:
        _kill(child)
        os.close(reports)
        step.seconds = round(time.monotonic() - began, 2)
        if step.message:
            step.log = (folder / "log").read_text(errors="replace").splitlines()[-_LOG_LINES:]
        shutil.rmtree(folder, ignore_errors=True)


def _take(step: Step, report: dict[str, Row | str]) -> None:
    """Add a figure, or the end of the step."""
    if isinstance(row := report.get("row"), dict):
        step.rows.append(row)
    else:
        step.message = str(report["message"])
        step.status = "failed" if step.message else "passed"


def _start(work: Work, folder: Path, seconds: float) -> tuple[int, int]:
    """A process that does the work, and the pipe with its reports; it has this one's imports, and ends with it."""
    reports, reporting = os.pipe()
    (folder / "log").touch()
    child = os.fork()
    if child:
        os.close(reporting)
        return child, reports
    try:
        os.setsid()
        os.close(reports)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        log = os.open(folder / "log", os.O_WRONLY | os.O_APPEND)
        os.dup2(log, 1)
        os.dup2(log, 2)
        sys.stdout = sys.stderr = os.fdopen(log, "w", buffering=1)
        threading.Thread(target=_end_with, args=(reporting,), daemon=True).start()
        message = ""
        try:
            for row in work(folder, seconds):
                _report(reporting, {"row": row})
        except BaseException as error:
            traceback.print_exc()
            first = next(iter(str(error).splitlines()), "")
            message = f"{type(error).__name__}: {first}"
        _report(reporting, {"message": message})
    finally:
        os._exit(0)


def _report(reporting: int, what: object) -> None:
    data = json.dumps(what).encode() + b"\n"
    while data:
        data = data[os.write(reporting, data) :]


def _end_with(reporting: int) -> None:
    """End this process's group when the reader of its reports is gone."""
    reader = select.poll()
    reader.register(reporting, 0)  # Only errors: the other end is closed.
    reader.poll()
    os.killpg(0, signal.SIGKILL)


def _kill(child: int) -> None:
    """Kill a process and all its descendants in any session, and wait for it."""
    processes = [child, *_descendants(child)]
    for process in processes:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)


def _descendants(process: int) -> Iterator[int]:
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(stat.parent.name))
    found = [process]
    while found:
        below = children.get(found.pop(), [])
        found += below
        yield from below
