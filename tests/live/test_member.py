"""Which runs can be live."""

import pytest

from dlion_sim.assembly import Setting
from dlion_sim.errors import InputError
from dlion_sim.live.member import check_live
from tests.simulation.scenarios import digits


@pytest.mark.parametrize(
    ("scenario", "path", "words"),
    [
        (
            digits(system={"name": "dlion", "exchange": {"bandwidth": "oracle_pair"}}),
            "system.exchange.bandwidth",
            "only a simulation",
        ),
        (digits("target_accuracy=0.9"), "target_accuracy", "cannot end a live run"),
    ],
    ids=["oracle", "target"],
)
def test_what_only_a_simulation_knows_is_refused(scenario, path, words):
    with pytest.raises(InputError, match=words) as refused:
        check_live(Setting.of(scenario))
    assert refused.value.path == path


def test_what_nodes_can_know_is_not():
    check_live(Setting.of(digits()))
