"""What a scenario's transport needs."""

import pytest

from dlion_sim.assembly import Setting
from dlion_sim.bounded_loss import check
from dlion_sim.errors import InputError
from dlion_sim.live import check_live
from tests.simulation.scenarios import digits


@pytest.mark.parametrize("kind", ["dlcp", "pfabric"])
def test_flows_have_no_packets(kind):
    with pytest.raises(InputError) as caught:
        check(digits(f"transport={kind}"))
    assert str(caught.value) == (
        f"transport: {kind} needs packets, which the flow model does not have; "
        "allowed: reliable; or any, with network: {model: packets}"
    )


def test_flows_are_reliable():
    check(digits())


def test_pfabric_has_no_fair_queues():
    fair = "network.model={kind: packets, fair: true}"
    for transport in ("reliable", "dlcp"):
        check(digits(fair, f"transport={transport}"))
    with pytest.raises(
        InputError, match=r"^network.model.fair: pfabric queues packets by .* messages; allowed: false$"
    ):
        check(digits(fair, "transport=pfabric"))


def test_live_runs_have_no_pfabric():
    with pytest.raises(InputError, match=r"^transport: pfabric needs switches .*; allowed: reliable, dlcp$"):
        check_live(Setting.of(digits("transport=pfabric")))


@pytest.mark.parametrize("kind", ["dlcp", "reliable"])
def test_real_nodes_may_lose_what_a_bound_lets_them(kind):
    check_live(Setting.of(digits(f"transport={kind}")))
