"""Links with one queue for all."""

import pytest

from emulation.traffic import flows
from tests.emulation.test_network import made, mbps


@pytest.mark.emulation
def test_one_queue_for_all_limits_them_together():
    with made(fair=False) as network:
        with flows(network, (0, 2), (1, 2)) as measure:
            assert sum(mbps(measure(2.0))) == pytest.approx(10, rel=0.1)
        (path,) = (link for link in network.links if link.name == "a to b")
        with flows(network, (0, 2)) as measure:
            path.set(5e6)
            measure(0.5)
            assert mbps(measure()) == [pytest.approx(5, rel=0.1)]
