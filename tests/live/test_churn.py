"""Runs that nodes leave and come back to, with all nodes in one process."""

import pytest

from dlion_sim.live.gathering import gather
from tests.live.together import Together
from tests.simulation.scenarios import digits

CLOUD = {"clouds": [{"name": "a", "workers": [{"count": 3, "compute": "400 cores"}]}]}


def brief(*overrides, **keys):
    """Three workers whose iterations take about 12 ms."""
    keys = {"cluster": CLOUD, "duration": None, "availability": {}, **keys}
    return digits("workload.evaluate_every=0.2 s", *overrides, **keys)


def iteration(together, rank):
    return together.members[rank].participant.iteration


@pytest.mark.parametrize("system", ["baseline", "ako", "gaia", "hop", "adpsgd", "dlion", "dpsgd"])
def test_a_node_that_was_killed_and_started_again_takes_part(tmp_path, system):
    together = Together(brief("duration=3 s", system=system), tmp_path / "parts")

    async def interfere(together):
        await together.until(lambda: iteration(together, 2) > 10)
        together.kill(2)
        await together.until(lambda: iteration(together, 0) > 30)
        await together.start_again(2)
        await together.until(lambda: 2 in together.drivers and together.drivers[2].now > 0)

    for outcome in together.run(interfere):
        assert (outcome.ending.status, outcome.ending.stopped_by) == ("completed", "duration"), outcome.ending
    run = gather(tmp_path / "parts", tmp_path / "run")
    told = run.membership()
    assert told["what"].tolist().count("lost") == 2
    assert told["what"].tolist().count("joined") == 1
    joined = told[told["what"] == "joined"].iloc[0]
    assert (joined["participant"], joined["incarnation"]) == (2, 1)
    assert joined["bytes"] >= 4 * together.setting.layout.size
    assert joined["peer"] in (0, 1)
    later = run.iterations().query("worker == 2 and virtual_time > @joined.virtual_time")
    assert later["iteration"].min() == joined["iteration"] + 1
    assert len(later) > 10
    evaluated = run.evaluations().query("worker == 2 and virtual_time > @joined.virtual_time")
    assert len(evaluated) > 2
