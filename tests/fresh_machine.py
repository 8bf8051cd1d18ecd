"""What holds tests to a fresh machine: no network, and no data set but one that a test asks for."""

from __future__ import annotations

import ipaddress
import os
import socket
import sys
from pathlib import Path

import pooch
import pytest

REQUIRED = "DLION_REQUIRE_DATA"
"""Names the folders of data sets that must be there, such as "cifar-10-batches-py, fashion-mnist"."""


@pytest.fixture(scope="session", autouse=True)
def machines_data(tmp_path_factory):
    """The folder of data sets that this machine has, if any; no test sees it, nor what was downloaded once."""
    with pytest.MonkeyPatch.context() as patch:
        folder = os.environ.get("DLION_DATA")
        patch.delenv("DLION_DATA", raising=False)
        empty = tmp_path_factory.mktemp("downloads")
        patch.setattr(pooch, "os_cache", lambda name: empty / name)
        yield Path(folder) if folder else None


@pytest.fixture
def published(machines_data, monkeypatch):
    """The one way to published data: gives a data set's folder and makes it available, or skips the test."""

    def folder(name: str) -> Path:
        found = found_or_skipped(machines_data, name)
        monkeypatch.setenv("DLION_DATA", str(found.parent))
        return found

    return folder


def found_or_skipped(data: Path | None, name: str) -> Path:
    """The folder of that name in a folder of data sets; without it the test is skipped, or fails if it is required."""
    if data and (data / name).is_dir():
        return data / name
    required = [each.strip() for each in os.environ.get(REQUIRED, "").split(",")]
    (pytest.fail if name in required else pytest.skip)(f"DLION_DATA names no folder that holds {name}/")


def refuse_network() -> None:
    """Fail whatever test of this process asks for a name's address, or connects to another machine, from now on."""
    sys.addaudithook(_refuse_network)


def _refuse_network(event: str, arguments: tuple) -> None:
    if event == "socket.getaddrinfo":
        host = arguments[0].decode() if isinstance(arguments[0], bytes) else arguments[0]
        is_here = host in (None, "", "localhost", socket.gethostname()) or _is_address(host)  # which is not looked up
    elif event == "socket.connect" and arguments[0].family in (socket.AF_INET, socket.AF_INET6):
        host = arguments[1][0]
        # A datagram socket only learns its own address so.
        is_here = not arguments[0].type & socket.SOCK_STREAM or _is_ours(host, arguments[0].family)
    else:
        return
    if not is_here:
        pytest.fail(f"a test must need no network, nor data that it does not ask `published` for: {event} of {host}")


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return True


def _is_ours(host: str, family: int) -> bool:
    """Whether it is a name of this machine, or one of its addresses, as only these can be bound."""
    if not _is_address(host):
        return host == "localhost"
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((host, 0))
        except OSError:
            return False
    return True
