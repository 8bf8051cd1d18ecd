"""A page of runs in progress, served to this machine alone: what is asked for is read from the folder then."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTP_PORT
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import msgspec

from dlion_sim.errors import InputError
from dlion_sim.report.many.page import Collected, many_data, many_page
from dlion_sim.report.run_page import run_data, run_page
from dlion_sim.results import Run, find_runs
from dlion_sim.results.run_folder import REPORT, holds_run

HERE = "127.0.0.1"
_IDLE_SECONDS = 30.0
"""After which a connection that asks nothing is closed."""
_HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Content-Security-Policy": "frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
}


@dataclass(frozen=True)
class Watched:
    """A folder with runs in it, or that is one itself, while they are written."""

    folder: Path
    target: float | str | None = None
    """As of `many_data`."""

    def version(self) -> str:
        """Differs whenever a file of a run has changed. Raises InputError where the folder is gone."""
        digest = hashlib.sha256()
        for run in self._runs():
            for file, told in sorted(_files(run)):
                digest.update(f"{file}\0{told.st_size}\0{told.st_mtime_ns}\0".encode(errors="surrogateescape"))
        return digest.hexdigest()[:16]

    def page(self) -> str:
        """The HTML of what there is. Raises InputError where it cannot be read, and as `render`."""
        if holds_run(self.folder):
            return run_page(Run.open(self.folder), is_served=True)
        return many_page(Collected.of(self._runs()), self.target, is_served=True)

    def data(self) -> dict[str, Any]:
        """What the page draws. Raises InputError where it cannot be read."""
        if holds_run(self.folder):
            return run_data(Run.open(self.folder))
        return many_data(Collected.of(self._runs()), self.target)

    def _runs(self) -> list[Path]:
        """The run folders, of which there may be none yet."""
        if not self.folder.is_dir():
            raise InputError("is no folder", file=self.folder, allowed="a folder that runs are written to")
        try:
            return find_runs([self.folder])
        except InputError:
            return []


def _files(run: Path) -> Iterator[tuple[str, os.stat_result]]:
    """Those of a run, and of its tables that still grow; some may go meanwhile."""
    waiting = [run]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False) and entry.name.endswith(".parts"):
                        waiting.append(Path(entry.path))
                    elif entry.name != REPORT:
                        yield entry.path, entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            continue


class PageServer(ThreadingHTTPServer):
    """Answers browsers on this machine: `/` with the page, `/version` and `/data` with JSON for it; nothing else.

    Raises InputError where the port cannot be had; 0 stands for any that is free.
    """

    daemon_threads = True
    timeout = 0.5
    """For which `handle_request` waits (s)."""

    def __init__(self, watched: Watched, port: int) -> None:
        self.watched = watched
        try:
            super().__init__((HERE, port), _Answer)
        except OSError as error:
            raise InputError(f"cannot be had: {error.strerror}", file="`port`", allowed="a free port, or 0") from None

    @property
    def address(self) -> str:
        """What to open."""
        return f"http://{HERE}:{self.server_port}/"

    @property
    def hosts(self) -> set[str]:
        """What browsers call it; a name that somebody else has made point here is none of these."""
        names = {HERE, "localhost"}
        return {f"{name}:{self.server_port}" for name in names} | (names if self.server_port == HTTP_PORT else set())

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Let browsers hang up when they like, and tell of anything else."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


class _Answer(BaseHTTPRequestHandler):
    """To one request."""

    server: PageServer
    timeout = _IDLE_SECONDS
    server_version, sys_version = "dlion_sim", ""

    def do_GET(self) -> None:
        """Answer it. Whatever cannot be read is told as JSON, with a status that is none of success."""
        watched = self.server.watched
        answers: dict[str, tuple[str, Callable[[], str]]] = {
            "/": ("text/html", watched.page),
            "/version": ("application/json", lambda: _json({"version": watched.version()})),
            "/data": ("application/json", self._data),
        }
        if self.headers.get("Host") not in self.server.hosts:
            self._send(HTTPStatus.FORBIDDEN, "text/plain", "not a name of this server\n")
        elif self.path not in answers:
            self._send(HTTPStatus.NOT_FOUND, "text/plain", "nothing here\n")
        else:
            kind, answer = answers[self.path]
            try:
                content = answer()
            except (InputError, OSError) as error:
                self._send(HTTPStatus.SERVICE_UNAVAILABLE, "application/json", _json({"problem": str(error)}))
            else:
                self._send(HTTPStatus.OK, kind, content)

    def _data(self) -> str:
        """With the version from before they were read, so that what came meanwhile is asked for again."""
        watched = self.server.watched
        return _json({"version": watched.version(), "data": watched.data()})

    def _send(self, status: HTTPStatus, kind: str, content: str) -> None:
        body = content.encode()
        self.send_response(status)
        for name, value in {**_HEADERS, "Content-Type": f"{kind}; charset=utf-8", "Content-Length": len(body)}.items():
            self.send_header(name, str(value))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Say nothing."""


def _json(told: dict[str, Any]) -> str:
    return msgspec.json.encode(told).decode()
