"""One writer at a time for a run folder."""

from __future__ import annotations

import fcntl
import os
import weakref
from pathlib import Path

from dlion_sim.errors import InputError


class FolderLock:
    """Holds an existing run folder until `close` or the end of the process, even by a kill.

    The folder itself is locked: no file is left in it. Raises InputError if another process holds it.
    """

    def __init__(self, folder: Path) -> None:
        descriptor = os.open(folder, os.O_RDONLY)
        self.close = weakref.finalize(self, os.close, descriptor)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.close()
            problem = "is being written by a run that still goes on"
            raise InputError(problem, file=folder, allowed="another folder, or waiting for its end") from None
        except OSError:
            pass  # Some network file systems lock no folders.
