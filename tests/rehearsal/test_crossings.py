"""What crosses between host and GPU in whole runs."""

import pytest

from tests.rehearsal.crossings import counted
from tests.simulation.scenarios import digits


@pytest.mark.parametrize(
    ("system", "overrides", "waits"),
    [
        ("baseline", [], 0),
        ("dlion", [], 2),
        ("baseline", ["system.exchange=top_k"], 1),
        ("baseline", ["system.exchange=dgc"], 1),
        ("gaia", [], 1),
        ("sparta", [], 0),
    ],
)
def test_gradients_stay_on_the_gpu_and_the_host_waits_for_little(system, overrides, waits, tmp_path, rehearsal):
    """Beside the losses: for how much is chosen. Samples, their weights and chosen indices are sent."""
    crossings, iterations = counted(digits(*overrides, system=system, duration="0.8 s"), tmp_path / "run")
    to_host = [each for each in crossings if each.kind != "to device" and "_compute_waiting" not in each.place]
    to_device = [each for each in crossings if each.kind == "to device" and "fused.py" not in each.place]
    assert iterations > 5
    begun = iterations + 3  # by as many workers
    assert len(to_host) <= waits * begun
    assert sum(each.nbytes for each in to_host) < 200 * begun
    assert len(to_device) <= (3 * begun if system == "sparta" else 0)
