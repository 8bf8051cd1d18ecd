"""The time that participants take for messages: one after another, and none for those of their own machine."""

import pytest

from dlion_sim.simulation import resume, simulate
from tests.simulation.scenarios import digits

TIME = "workload.compute_time.per_message=7 ms"


def alike(count):
    return {"clouds": [{"name": "a", "workers": [{"count": count, "compute": "8 cores", "nic": "50 Mbps"}]}]}


def ends(run):
    return run.iterations().groupby("iteration")["virtual_time"].max()


@pytest.mark.parametrize("model", ["flows", "packets"])
@pytest.mark.parametrize("count", [2, 4])
def test_an_iteration_is_longer_by_all_messages_that_come_at_once(tmp_path, count, model):
    def run(name, *overrides):
        scenario = digits(
            f"network.model={model}", *overrides, cluster=alike(count), system="baseline", duration=None, iterations=5
        )
        return ends(simulate(scenario, tmp_path / name))

    without, with_time = run("without"), run("with", TIME)
    apart = (with_time - without).diff().dropna()
    # By packets some may come before others, so that only the rest waits.
    least = 0.007 if model == "packets" else 0.007 * (count - 1)
    assert apart.between(least - 1e-6, 0.007 * (count - 1) + 1e-3).all(), apart


def test_messages_of_the_same_machine_take_none(tmp_path):
    def run(name, *overrides):
        scenario = digits(*overrides, cluster=alike(1), system="parameter_server", duration=None, iterations=5)
        return ends(simulate(scenario, tmp_path / name))

    assert run("without").tolist() == run("with", TIME).tolist()


def test_a_run_that_was_interrupted_goes_on_to_the_bit(tmp_path):
    scenario = digits(TIME, system="dlion", duration="2 s")
    whole = simulate(scenario, tmp_path / "whole")
    simulate(scenario, tmp_path / "parts", until=0.9)
    parts = resume(tmp_path / "parts")
    columns = ["virtual_time", "worker", "kind", "loss"]
    assert parts.metrics()[columns].equals(whole.metrics()[columns])
