"""Nodes on hosts that share nothing: what they learn, and which connections are refused."""

import shutil
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from dlion_sim.live import gather
from dlion_sim.live.private_file import write_secret
from dlion_sim.results import Run
from dlion_sim.simulation import simulate
from emulation.host import hosts
from emulation.hosts import comparison, prepare, run_on_hosts
from tests.simulation.scenarios import digits

pytestmark = pytest.mark.emulation

TWO, THREE = ({"clouds": [{"name": "a", "workers": [{"count": count, "compute": "2 cores"}]}]} for count in (2, 3))


def brief(*overrides, cluster=TWO, **keys):
    return digits("workload.evaluate_every=5 s", *overrides, cluster=cluster, system="baseline", **keys)


@pytest.fixture(autouse=True)
def nothing_is_left():
    def devices_and_mounts():
        devices = subprocess.run(["ip", "-brief", "link"], capture_output=True, check=True).stdout
        return devices, Path("/proc/mounts").read_text()

    before = devices_and_mounts()
    yield
    assert devices_and_mounts() == before


@pytest.fixture
def secret(tmp_path):
    write_secret(tmp_path / "secret")
    return tmp_path / "secret"


def node(host, scenario, secret, rank, peers, *options):
    """Start one, as its user would."""
    prepare(host, scenario, [secret])
    usual = (f"--rank={rank}", f"--peers={peers}", "--secret-file=secret", "--output=parts", "--device=cpu")
    return host.start(sys.executable, "-m", "dlion_sim", "node", "scenario.yaml", *usual, *options)


def test_hosts_share_nothing_but_the_switch(tmp_path):
    seen = "hostname; cut -d. -f1 /proc/uptime; ls -A ~ /tmp /dev/shm; echo mine > /tmp/file; touch /usr/file"
    with hosts(["one", "two"]) as both:
        said = [host.start("sh", "-c", seen).communicate()[0].splitlines() for host in both]
        assert (both[0].root / "tmp" / "file").read_text() == "mine\n"
    assert [lines[0] for lines in said] == ["one", "two"]
    assert int(said[1][1]) - int(said[0][1]) == pytest.approx(100_000, abs=60)
    assert all("Read-only file system" in lines[-1] for lines in said)
    assert "file" not in said[1]


@pytest.mark.parametrize("own_ca", [False, True], ids=["secret", "own CA"])
def test_nodes_on_hosts_that_share_nothing_learn_what_a_simulation_does(tmp_path, own_ca):
    scenario = brief("iterations=8", duration=None)
    assert run_on_hosts(scenario, tmp_path / "parts", own_ca=own_ca) == [0, 0]
    live, simulated = gather(tmp_path / "parts", tmp_path / "live"), simulate(scenario, tmp_path / "sim", device="cpu")
    assert "the same to the bit (16 and 16)" in comparison(live, simulated)
    assert live.summary["accuracy"] == simulated.summary["accuracy"]
    assert [each["hostname"] for each in live.manifest["nodes"]] == ["host-0", "host-1"]


def test_a_host_that_is_not_listed_is_refused_and_a_listed_name_may_have_another_address(tmp_path, secret):
    """The unlisted host disturbs nobody. A name is looked up at each attempt, so that its host may be replaced."""
    written = brief(duration="10 min", availability={"workers": {"a/2": {"down": [["0 s", "1 s"]]}}}, cluster=THREE)
    listed = "one:7000,two:7000,three:7000"
    with ExitStack() as stack, hosts(["one", "two", "three", "stranger", "spare"]) as all_hosts:
        one, two, three, stranger, spare = all_hosts

        def start(host, rank, peers, *options):
            return stack.enter_context(node(host, written, secret, rank, peers, *options))

        members = [start(one, 0, listed), start(two, 1, listed)]
        assert [each.stdout.readline() for each in members] == ["node 0: begun\n", "node 1: begun\n"]

        refused = start(stranger, 2, "one:7000,two:7000,stranger:7000", "--join", "--start-within=4")
        (line,) = refused.communicate()[0].splitlines()
        assert refused.returncode == 2
        assert "node 0 at one:7000 has not connected to node 2 at stranger:7000, which can connect to it" in line
        assert "same --peers" in line

        joins = start(three, 2, listed, "--join")
        until(lambda: iterations(three) > 2)
        kill(three, "KILL")
        assert joins.communicate()[0] == "node 2: begun\n"
        for host in all_hosts:
            host.resolve({each.name: each.address for each in all_hosts} | {"three": spare.address})
        start(spare, 2, listed, "--join", "--incarnation=1")
        until(lambda: iterations(spare, "rank-2.1") > 2)

        assert [each.poll() for each in members] == [None, None]
        for host in (one, two, spare):  # To leave in good order would take evaluations, which nobody reads.
            kill(host, "KILL")
        said = "".join(each.communicate()[0] for each in members)
        for host in (one, two, three, spare):
            shutil.copytree(host.home / "parts", tmp_path / "parts", dirs_exist_ok=True)
    assert "has lost node 2" in said
    told = gather(tmp_path / "parts", tmp_path / "live").membership()
    assert list(told[told["what"] == "joined"]["participant"]) == [2, 2]
    assert 2 in set(told[told["what"] == "lost"]["participant"])


def test_a_pair_that_connects_one_way_only_is_refused_at_both_ends(tmp_path, secret):
    """As through a NAT whose ports are not forwarded: its own address refuses connections."""
    with ExitStack() as stack, hosts(["one", "two", "gateway"]) as (one, two, gateway):
        one.resolve({"one": one.address, "two": gateway.address})
        peers, written = "one:7000,two:7000", brief("iterations=8", duration=None)
        nodes = [
            stack.enter_context(node(host, written, secret, rank, peers, "--start-within=12"))
            for rank, host in enumerate((one, two))
        ]
        said = [each.communicate()[0].splitlines() for each in nodes]
    assert [each.returncode for each in nodes] == [2, 2]
    assert [len(lines) for lines in said] == [1, 1]
    start = "dlion: scenario.yaml: could not start within 12 s: "
    assert said[0][0].startswith(
        f"{start}node 0 cannot connect to node 1 at two:7000 (Connection refused), which can connect to node 0; "
    )
    assert said[1][0].startswith(
        f"{start}node 0 at one:7000 has not connected to node 1 at two:7000, which can connect to it; "
    )
    assert all("where it listens (--listen), or use a VPN" in lines[0] for lines in said)


def until(condition):
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline, "it takes too long"
        time.sleep(0.1)


def iterations(host, part="rank-2"):
    """How many a node has written down."""
    folder = host.home / "parts" / part
    return len(Run.open(folder).iterations()) if (folder / "manifest.json").exists() else 0


def kill(host, signal):
    """Send a signal to all that runs on a host."""
    host.start("sh", "-c", f"kill -{signal} -1").communicate()
