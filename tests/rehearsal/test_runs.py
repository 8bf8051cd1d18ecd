"""Whole runs on a GPU: all systems, and what none of them is made of."""

import sys

import pytest

from dlion_sim.protocol.systems import SYSTEMS
from dlion_sim.simulation import resume, simulate
from tests.rehearsal.planted import plant
from tests.simulation.checkpointing.test_checkpoint import OTHERS, After, scenario

ON_DEVICES = (
    *("top_k", "adaptive_top_k", "random_k", "dgc", "weight_exchange", "adam", "clipped"),
    *("a stream's window", "a stream's reservoir", "a ring of halves"),
)
"""Of the other choices those that have tensors of their own."""


def check_alike(run, other):
    """Everything happened at the same time, and was learned but for rounding."""
    metrics, its = run.metrics(), other.metrics()
    assert metrics["virtual_time"].tolist() == pytest.approx(its["virtual_time"].tolist(), rel=1e-6)
    assert metrics["loss"].tolist() == pytest.approx(its["loss"].tolist(), rel=1e-3, nan_ok=True)


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_system_trains_as_on_a_cpu(system, tmp_path, rehearsal):
    given = scenario(system, "0.4 s")
    run = simulate(given, tmp_path / "run", device="cuda", checkpoint_every=None)
    assert run.manifest["device_name"] == "rehearsal device"
    check_alike(run, simulate(given, tmp_path / "cpu", device="cpu", checkpoint_every=None))


@pytest.mark.parametrize("other", ON_DEVICES)
def test_other_choices_train_and_go_on_after_a_stop(other, tmp_path, rehearsal):
    given = scenario("baseline", "0.4 s", *OTHERS[other])
    run = simulate(given, tmp_path / "run", device="cuda", interrupted=After(12))
    assert run.manifest["status"] == "interrupted"
    check_alike(resume(run.folder), simulate(given, tmp_path / "cpu", device="cpu", checkpoint_every=None))


def test_an_index_of_an_exchange_that_stays_on_the_cpu(tmp_path, rehearsal, monkeypatch):
    sparta = sys.modules["dlion_sim.protocol.exchange.sparta"]
    plant(monkeypatch, sparta, "SpartaExchange._chosen", ".to(parameters.device)", "")
    with pytest.raises(
        RuntimeError, match=r"on the same device, but aten\.index.* got one on rehearsal:0 and \[48\] int64 on"
    ):
        simulate(scenario("sparta", "0.4 s"), tmp_path / "run", device="cuda")
