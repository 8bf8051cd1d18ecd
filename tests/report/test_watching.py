"""The server of a page of runs in progress."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager
from http.client import HTTPConnection
from threading import Thread

import pytest

from dlion_sim.errors import InputError
from dlion_sim.report import PageServer, Watched
from tests.made_up import made_up_run
from tests.report.sweeps import begun_run, go_on, made_up_sweep


@contextmanager
def served(folder, target=None):
    with PageServer(Watched(folder, target), 0) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        yield server
        server.shutdown()


def answer(server, path, *, method="GET", host=None):
    """Status, headers and text."""
    connection = HTTPConnection("127.0.0.1", server.server_port, timeout=60)
    connection.request(method, path, headers={"Host": host} if host else {})
    response = connection.getresponse()
    told = response.status, dict(response.getheaders()), response.read().decode()
    connection.close()
    return told


def version(server) -> str:
    status, _, text = answer(server, "/version")
    assert status == 200
    return json.loads(text)["version"]


def test_it_serves_a_page_its_version_and_its_data(tmp_path):
    made_up_sweep(tmp_path, bandwidths=["5 Mbps"], seeds=1)
    with served(tmp_path) as server:
        status, headers, page = answer(server, "/")
        assert status == 200
        assert headers["Content-Type"] == "text/html; charset=utf-8"
        assert "connect-src 'self'" in page
        status, headers, text = answer(server, "/data")
        assert headers["Content-Type"] == "application/json; charset=utf-8"
        assert headers["X-Content-Type-Options"] == "nosniff"
        told = json.loads(text)
        assert told["data"]["counts"] == "2 completed"
        assert told["version"] == version(server) == version(server)


def test_a_run_folder_is_shown_as_a_run(tmp_path):
    made_up_run(tmp_path)
    with served(tmp_path) as server:
        assert json.loads(answer(server, "/data")[2])["data"]["title"].startswith("made-up · dlion")


@pytest.mark.parametrize(
    ("path", "method", "status"),
    [
        ("/../manifest.json", "GET", 404),
        ("/manifest.json", "GET", 404),
        ("/data?folder=/etc", "GET", 404),
        ("http://127.0.0.1/etc/passwd", "GET", 403),
        ("/", "HEAD", 501),
        ("/data", "POST", 501),
        ("/data", "DELETE", 501),
        ("/data", "OPTIONS", 501),
    ],
)
def test_other_paths_and_methods_are_refused(tmp_path, path, method, status):
    made_up_run(tmp_path)
    with served(tmp_path) as server:
        assert answer(server, path, method=method)[0] == status


@pytest.mark.parametrize("path", ["/", "/version", "/data"])
@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "127.0.0.1.evil:{port}"]
)
def test_other_host_names_are_refused(tmp_path, path, host):
    with served(tmp_path) as server:
        status, _, text = answer(server, path, host=host.format(port=server.server_port))
    assert (status, text) == (403, "not a name of this server\n")


def test_only_this_machine_can_connect(tmp_path):
    with served(tmp_path) as server:
        assert server.socket.getsockname()[0] == "127.0.0.1"
        assert answer(server, "/version", host=f"localhost:{server.server_port}")[0] == 200
        with pytest.raises(OSError, match="refused"):
            socket.create_connection(("127.0.0.2", server.server_port), timeout=60)


def test_the_version_changes_only_with_runs(tmp_path):
    whole = made_up_run(tmp_path / "whole")
    folder = tmp_path / "sweep"
    folder.mkdir()
    watched = Watched(folder)
    seen = [watched.version()]
    assert watched.data()["groups"] == []
    writer = begun_run(whole, folder / "run", until=10.0)
    seen.append(watched.version())
    go_on(writer, whole, 10.0, 20.0)
    seen.append(watched.version())
    (folder / "report.html").write_text("not of a run")
    (folder / "run/report.html").write_text("nor this")
    assert watched.version() == seen[-1]
    writer.finish(whole.outcome)
    seen.append(watched.version())
    shutil.rmtree(folder / "run")
    assert watched.version() == seen[0]
    assert len(set(seen)) == 4


def test_a_missing_folder_is_reported_and_may_return(tmp_path):
    folder = tmp_path / "sweep"
    made_up_run(folder / "run")
    with served(folder) as server:
        before = version(server)
        folder.rename(tmp_path / "elsewhere")
        for path in ("/", "/version", "/data"):
            status, _, text = answer(server, path)
            assert status == 503
            assert json.loads(text)["problem"] == f"{folder}: is no folder; allowed: a folder that runs are written to"
        (tmp_path / "elsewhere").rename(folder)
        assert version(server) == before


def test_unreadable_runs_are_reported(tmp_path):
    made_up_run(tmp_path / "run")
    (tmp_path / "run/metrics.parquet").write_bytes(b"no table")
    with served(tmp_path) as server:
        status, _, text = answer(server, "/data")
    assert status == 503
    assert "metrics.parquet: is not a whole Parquet file" in json.loads(text)["problem"]


def test_a_port_in_use_is_reported():
    with socket.create_server(("127.0.0.1", 0)) as other, pytest.raises(InputError, match="unavailable") as error:
        PageServer(Watched(None), other.getsockname()[1])
    assert str(error.value).startswith("`port`: ")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_end_the_command(tmp_path, number):
    command = [sys.executable, "-m", "dlion_sim", "watch", str(tmp_path), "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ})
    line = process.stdout.readline()
    assert line.startswith("watch: http://127.0.0.1:"), process.stderr.read()
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (130, "")
