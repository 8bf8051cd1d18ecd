"""A run whose messages may lose a part, over emulated switches with short queues."""

from functools import partial

import pytest

from dlion_sim.emulation import emulate
from dlion_sim.emulation.requirements import has_red
from tests.emulation.traces import traces
from tests.simulation.scenarios import digits

FOUR = {"clouds": [{"name": "a", "workers": [{"count": 4, "compute": "8 cores", "nic": "20 Mbps"}]}]}
SHORT = {"model": {"kind": "packets", "buffer": "30 packets", "drop_above": "10 packets", "mark_above": "10 packets"}}
incast = partial(digits, "duration=6 s", system="parameter_server", cluster=FOUR, network=SHORT)


@pytest.mark.emulation
def test_what_a_short_queue_drops_is_lost_within_the_bound(tmp_path):
    """Four workers' gradients, of 27 packets each, come to the server's port at once, where there is room for 30."""
    before = traces()
    transport = {"kind": "dlcp", "loss_bound": 0.1, "initial_window": 27}
    run = emulate(incast(transport=transport), tmp_path / "run")
    assert traces() == before
    assert run.summary["status"] == "completed"
    told = run.manifest["emulation"]
    assert (told["queues"], told["buffer"]) == ("marking" if has_red() else "fifo", 30 * 1514)
    for node in run.manifest["nodes"]:
        assert node["datagrams"]["refused"] == 0
        assert node["lost"] == {}
    transfers = run.transfers()
    ended = transfers[(transfers["channel"] == "data") & transfers["end"].notna()]
    assert len(ended) > 40
    assert ended["lost_bytes"].sum() > 0
    assert (ended["lost_bytes"] <= 0.1 * (ended["bytes"] + ended["saved_bytes"])).all()
    assert run.iterations()["loss"].iloc[-4:].mean() < run.iterations()["loss"].iloc[:4].mean()
