"""A page of runs in progress, served to this machine only; each request reads the folder."""

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

_LOCALHOST = "127.0.0.1"
_IDLE_SECONDS = 30.0
"""The time after which an idle connection is closed."""
_HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Content-Security-Policy": "frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
}


@dataclass(frozen=True)
class Watched:
    """A folder that is, or contains, runs in progress."""

    folder: Path
    target: float | str | None = None
    """As in `many_data`."""

    def version(self) -> str:
        """A digest that changes with every file of a run. Raises InputError if the folder is gone."""
        digest = hashlib.sha256()
        for run in self._runs():
            for file, status in sorted(_files(run)):
                digest.update(f"{file}\0{status.st_size}\0{status.st_mtime_ns}\0".encode(errors="surrogateescape"))
        return digest.hexdigest()[:16]

    def page(self) -> str:
        """The HTML of the current page. Raises InputError if a run cannot be read, and as `render`."""
        if holds_run(self.folder):
            return run_page(Run.open(self.folder), is_served=True)
        return many_page(Collected.of(self._runs()), self.target, is_served=True)

    def data(self) -> dict[str, Any]:
        """The page's data. Raises InputError if a run cannot be read."""
        if holds_run(self.folder):
            return run_data(Run.open(self.folder))
        return many_data(Collected.of(self._runs()), self.target)

    def _runs(self) -> list[Path]:
        """The run folders; there may be none yet."""
        if not self.folder.is_dir():
            raise InputError("is no folder", file=self.folder, allowed="a folder that runs are written to")
        try:
            return find_runs([self.folder])
        except InputError:
            return []


def _files(run: Path) -> Iterator[tuple[str, os.stat_result]]:
    """The files of a run, and of its growing tables; some may be removed meanwhile."""
    folders = [run]
    while folders:
        try:
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False) and entry.name.endswith(".parts"):
                        folders.append(Path(entry.path))
                    elif entry.name != REPORT:
                        yield entry.path, entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            continue


class PageServer(ThreadingHTTPServer):
    """Serves `/`, the page, and its JSON, `/version` and `/data`, to browsers on this machine.

    Raises InputError if the port is not available; 0 is any free one.
    """

    daemon_threads = True
    timeout = 0.5
    """Of `handle_request` (s)."""

    def __init__(self, watched: Watched, port: int) -> None:
        self.watched = watched
        try:
            super().__init__((_LOCALHOST, port), _Handler)
        except OSError as error:
            raise InputError(f"unavailable: {error.strerror}", file="`port`", allowed="a free port, or 0") from None

    @property
    def address(self) -> str:
        return f"http://{_LOCALHOST}:{self.server_port}/"

    @property
    def hosts(self) -> set[str]:
        """Accepted Host headers, against DNS rebinding."""
        names = {_LOCALHOST, "localhost"}
        return {f"{name}:{self.server_port}" for name in names} | (names if self.server_port == HTTP_PORT else set())

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore closed connections; report other errors."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    """The handler of a request."""

    server: PageServer
    timeout = _IDLE_SECONDS
    server_version, sys_version = "dlion_sim", ""

    def do_GET(self) -> None:
        """Answer a request; errors are JSON with an error status."""
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
        """The data with the version from before reading, so that later changes are requested again."""
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
        """Log nothing."""


def _json(value: dict[str, Any]) -> str:
    return msgspec.json.encode(value).decode()
