"""Tests without permission to use a network or a data set fail on any machine."""

import asyncio
import os
import socket
from contextlib import closing, suppress

import pytest

from dlion_sim.learning import load
from tests.fresh_machine import REQUIRED, found_or_skipped

REFUSED = pytest.raises(pytest.fail.Exception, match="a test must need no network")


def test_connecting_to_another_machine_fails():
    with REFUSED:
        socket.create_connection(("198.51.100.1", 80), timeout=0.01)
    with closing(socket.socket(socket.AF_INET6)) as six, REFUSED:
        six.connect(("2001:db8::1", 80))
    with REFUSED:
        asyncio.run(asyncio.wait_for(asyncio.open_connection("198.51.100.1", 80), timeout=0.01))
    with REFUSED:
        socket.getaddrinfo("example.org", 80)


def test_connecting_to_this_machine_is_allowed():
    own = "127.0.0.1"
    with socket.create_server((own, 0)) as server:
        socket.create_connection(("localhost", server.getsockname()[1])).close()
    with socket.socket(type=socket.SOCK_DGRAM) as unsent, suppress(OSError):  # there may be no network
        unsent.connect(("198.51.100.1", 9))
        own = unsent.getsockname()[0]
    with socket.create_server((own, 0)) as server:
        socket.create_connection(server.getsockname()).close()
    assert socket.getaddrinfo("198.51.100.1", 80)


@pytest.mark.parametrize("name", ["cifar10", "cifar10_halved", "cifar10_unit", "cifar100", "fashion_mnist", "mnist"])
def test_loading_data_without_the_fixture_fails(name):
    assert "DLION_DATA" not in os.environ
    with REFUSED:
        load(name)


def test_missing_data_skip_the_test_or_fail_it_if_required(tmp_path, monkeypatch):
    monkeypatch.delenv(REQUIRED, raising=False)
    (tmp_path / "here").mkdir()
    assert found_or_skipped(tmp_path, "here") == tmp_path / "here"
    for data in (tmp_path, None):
        with pytest.raises(pytest.skip.Exception, match="no folder that holds mnist/"):
            found_or_skipped(data, "mnist")
    monkeypatch.setenv(REQUIRED, "fashion-mnist, mnist")
    with pytest.raises(pytest.fail.Exception, match="no folder that holds mnist/"):
        found_or_skipped(tmp_path, "mnist")
    with pytest.raises(pytest.skip.Exception):
        found_or_skipped(tmp_path, "cifar-10-batches-py")
