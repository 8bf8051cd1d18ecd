"""Stalls as a linear function of messages and bytes."""

import pytest

from dlion_sim.analysis.stalls.attribution import LINKS, stalls
from dlion_sim.analysis.stalls.macroscopic import fit
from dlion_sim.simulation import simulate
from tests.simulation.scenarios import digits

POINTS = [(2, 1e4), (2, 1e7), (6, 1e5), (6, 1e8), (14, 1e6)]


def test_coefficients_are_recovered():
    made = [(*point, 0.02 * point[0] + 8e-8 * point[1] + 0.001) for point in POINTS]
    model = fit(*zip(*made, strict=True))
    assert (model.seconds_per_message, model.seconds_per_byte) == pytest.approx((0.02, 8e-8))
    assert model.seconds == pytest.approx(0.001)
    assert model.explained == pytest.approx(1)
    assert model.stall(1, 1e6) == pytest.approx(0.101)


def test_hidden_stalls_are_left_out_and_never_negative():
    made = [max(0.0, 0.02 * messages + 8e-8 * size - 0.05) for messages, size in POINTS]
    assert made[0] == 0
    model = fit(*zip(*POINTS, strict=True), made)
    assert model.seconds == pytest.approx(-0.05)
    assert model.stall(2, 1e4) == 0


def test_fewer_than_three_stalls_are_refused():
    with pytest.raises(ValueError, match="three stalls"):
        fit([1, 2, 3], [1.0, 2.0, 3.0], [0.1, 0.0, 0.2])


def test_a_simulated_ring_has_the_latency_and_bandwidth_of_its_links(tmp_path):
    told = []
    for workers, parameters in ((2, "20 k"), (4, "200 k"), (2, "2 M"), (4, "20 M")):
        clouds = [{"name": f"c{each}", "workers": [{"nic": "1 Gbps"}]} for each in range(workers)]
        cluster = {"clouds": clouds, "wan": {"bandwidth": "100 Mbps", "rtt": "40 ms"}}
        charged = f"workload.cost_as={{parameters: {parameters}}}"
        run = simulate(
            digits("system=ring_allreduce", charged, "duration=null", "iterations=6", cluster=cluster),
            tmp_path / "run",
            force=True,
        )
        size = run.transfers().query("sender == 0")["bytes"].sum() / 6
        told.append((2 * (workers - 1), size, stalls(run, 3).per_iteration[[*LINKS]].sum()))
    model = fit(*zip(*told, strict=True))
    assert model.seconds_per_message == pytest.approx(0.02, rel=0.1)
    assert model.seconds_per_byte == pytest.approx(8e-8 * 1514 / 1448, rel=0.05)
