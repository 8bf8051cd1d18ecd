"""For how long a run has been going on, as its processes tell whoever started them."""

from __future__ import annotations

import threading
import time
from typing import IO


class Clock:
    """Runs from the first line on that a node writes to `told`."""

    def __init__(self, told: IO[bytes]) -> None:
        self._told = told
        self._began: float | None = None
        self._heard = threading.Event()
        threading.Thread(target=self._listen, name="clock", daemon=True).start()

    @property
    def seconds(self) -> float | None:
        """Since the run began; None before."""
        return None if self._began is None else time.monotonic() - self._began

    def wait(self) -> float | None:
        """Until the run begins; when that was, by `time.monotonic`. None if the node ends without it."""
        self._heard.wait()
        return self._began

    def _listen(self) -> None:
        if self._told.readline():
            self._began = time.monotonic()
        self._heard.set()
