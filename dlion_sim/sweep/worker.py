"""The program of a process that does jobs: a line of JSON for each on standard input, events as lines on output.

It ends with its standard input, so it never outlives its parent.
"""

from __future__ import annotations

import importlib
import os
import queue
import signal
import sys
import threading
from contextlib import suppress

import msgspec

from dlion_sim.sweep.job import Ended, Job, Progressed, work


def main() -> None:
    """Do jobs until standard input ends."""
    asked = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: asked.set())
    # Other output must not mix with the events.
    lines = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)

    def tell(event: Progressed | Ended) -> None:
        with suppress(BrokenPipeError):  # The end of the standard input says the same.
            lines.write(msgspec.json.encode(event) + b"\n")

    jobs: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_receive, args=[jobs], daemon=True).start()
    importlib.import_module("dlion_sim.simulation")  # which takes seconds, before there is a job to do
    while True:
        tell(work(msgspec.json.decode(jobs.get(), type=Job), asked.is_set, tell))


def _receive(jobs: queue.SimpleQueue[bytes]) -> None:
    for line in sys.stdin.buffer:
        jobs.put(line)
    os._exit(0)  # At once, even during a job: the parent is gone.


if __name__ == "__main__":
    main()
