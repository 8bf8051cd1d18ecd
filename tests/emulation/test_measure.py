"""Links against what a scenario states of them."""

import json
import math
import os
import shutil
import sys

import pytest
from rich.console import Console

from dlion_sim.cli.main import main
from dlion_sim.emulation.leftovers import remove_leftovers
from dlion_sim.emulation.network import network_of
from dlion_sim.scenario import DURATION, dump
from emulation import endpoints, measure
from emulation.endpoints import to_measure
from emulation.measurement import Measurement, report
from emulation.tools import delivered, median_round_trip
from tests.emulation.traces import traces
from tests.simulation.scenarios import digits

CLUSTER = {
    "clouds": [
        {"name": "a", "workers": [{"nic": {"up": "20 Mbps", "down": "8 Mbps"}}]},
        {"name": "b", "workers": [{}]},
    ],
    "wan": {"bandwidth": "10 Mbps", "rtt": "30 ms"},
}
PINGS = """PING 10.1.0.3 (10.1.0.3) 56(84) bytes of data.
64 bytes from 10.1.0.3: icmp_seq=1 ttl=62 time=9.00 ms
64 bytes from 10.1.0.3: icmp_seq=2 ttl=62 time=0.085 ms
64 bytes from 10.1.0.3: icmp_seq=3 ttl=62 time=0.095 ms
"""
emulation = pytest.mark.emulation(by_hand=True)


def rendered(found, tolerance=0.05) -> str:
    console = Console(width=100)
    with console.capture() as capture:
        console.print(report(found, tolerance))
    return capture.get()


def test_the_median_of_pings_is_taken():
    assert median_round_trip(PINGS) == pytest.approx(95e-6)
    assert median_round_trip("7 packets transmitted, 0 received, 100% packet loss") == math.inf


def test_what_iperf3_received_is_what_counts():
    end = {"sum_sent": {"bits_per_second": 9.9e6}, "sum_received": {"bits_per_second": 9.5e6}}
    assert delivered(json.dumps({"end": end})) == 9.5e6
    assert delivered('{"end": {}, "error": "unable to connect to server"}') == 0


def test_headers_count_to_a_bandwidth():
    found = Measurement.of_payload("a to b", 10e6, 10e6 * 1448 / 1514)
    assert found.ratio == pytest.approx(1)
    assert "a to b 10 Mbps 9.56 Mbps 10 Mbps 1.000" in " ".join(rendered([found]).split())


@pytest.mark.parametrize(("payload", "off"), [(9.5e6, False), (9.0e6, True), (10.2e6, True), (0.0, True)])
def test_a_bandwidth_is_off_on_either_side(payload, off):
    found = Measurement.of_payload("a to b", 10e6, payload)
    assert found.is_off(0.05) == off
    assert not found.is_off(1.0)
    assert f"{off:d} of 1 off by more than 5 %" in rendered([found])


@pytest.mark.parametrize(
    ("stated", "found", "off", "shown"),
    [
        (0.0002, 0.0001, False, "0.500"),
        (0.0, 0.001, False, "-"),
        (0.03, 0.0331, True, "1.103"),
        (0.03, math.inf, True, "no answer"),
    ],
)
def test_short_round_trips_may_differ_by_what_a_message_takes(stated, found, off, shown):
    measured = Measurement("a to b and back", stated, found, DURATION, slack=0.002)
    assert measured.is_off(0.05) == off
    assert shown in rendered([measured])


def test_what_nodes_hold_back_is_told():
    round_trip = Measurement("a to b and back", 0.03, 0.03, DURATION, held_back=0.03)
    assert "hold messages back" in rendered([round_trip])
    assert "hold messages back" not in rendered([Measurement.of_payload("a to b", 1e6, 1e6)])


@pytest.fixture
def network():
    remove_leftovers()
    before = traces()
    with network_of(digits(cluster=CLUSTER, system="baseline")) as network:
        yield network
    assert traces() == before


@emulation
@pytest.mark.parametrize("tool", ["own", "iperf3"])
def test_a_link_is_measured_alone(network, monkeypatch, tool):
    if tool == "iperf3" and not shutil.which("iperf3"):
        # As of all that emulation needs: where it must be tested, set-up should have brought it.
        (pytest.fail if os.environ.get("DLION_REQUIRE_EMULATION") else pytest.skip)("iperf3 is not installed")
    monkeypatch.setattr(endpoints, "has_iperf3", lambda: tool == "iperf3")
    wanted = {each.name: each for each in to_measure(network, digits(cluster=CLUSTER).cluster)}
    assert [*wanted] == ["a/0 up", "a/0 down", "b/0 up", "b/0 down", "a to b", "b to a", "a to b and back"]
    # Across a path of half as much.
    assert wanted["a/0 up"].measure(network, 1.0).ratio == pytest.approx(1, abs=0.1)
    (path,) = (link for link in network.links if link.name == "a to b")
    path.set(5e6)
    assert wanted["a to b"].measure(network, 1.0).ratio == pytest.approx(0.5, abs=0.05)


def run(monkeypatch, tmp_path, *options) -> int:
    cluster = {"clouds": [{"name": "a", "workers": [{"count": 2, "nic": "20 Mbps"}]}]}
    (tmp_path / "two.yaml").write_text(dump(digits(cluster=cluster, system="baseline")))
    monkeypatch.setattr(sys, "argv", ["measure", str(tmp_path / "two.yaml"), *options])
    with pytest.raises(SystemExit) as stopped:
        main(measure.app)
    return int(stopped.value.code or 0)


@emulation
def test_the_script_measures_all_and_leaves_nothing(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(endpoints, "has_iperf3", lambda: False)
    before = traces()
    assert run(monkeypatch, tmp_path, "--seconds", "0.3", "--tolerance", "30") == 0
    output = capsys.readouterr()
    assert "5 of 5: within a" in output.err
    assert "0 of 5 off by more than 30 %" in output.out
    assert traces() == before


@pytest.mark.parametrize(("found", "code"), [(1.0, 0), (0.9, 1)])
def test_what_is_off_tells_by_the_exit_code(monkeypatch, tmp_path, capsys, found, code):
    measurement = Measurement.of_payload("a/0 up", 1e6, found * 1e6 * 1448 / 1514)
    monkeypatch.setattr(measure, "check_requirements", lambda **_: None)
    monkeypatch.setattr(measure, "_measured", lambda *_, **__: [measurement])
    assert run(monkeypatch, tmp_path) == code
    assert f"{code} of 1 off" in capsys.readouterr().out


@emulation
def test_a_single_machine_has_nothing_to_measure(monkeypatch, tmp_path, capsys):
    assert run(monkeypatch, tmp_path, "--set", "cluster.clouds.0.workers.0.count=1") == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "--set cluster.clouds.0.workers.0.count=1: cluster: it has a single machine" in line
