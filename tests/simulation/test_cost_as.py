"""A small model learns, and a large one's time and bytes are charged."""

import json

import pytest

from dlion_sim.assembly import Setting
from dlion_sim.errors import InputError
from dlion_sim.figures.style import title
from dlion_sim.live.member import check_live
from dlion_sim.scenario import from_data
from dlion_sim.simulation import simulate
from tests.simulation.scenarios import digits

PARAMETERS_OF_MLP = 64 * 128 + 128 + 128 * 10 + 10
ALL = ["system=baseline", "workload.compute_time={alpha: 0 s, beta: null}"]


def cost_as(times, **flops):
    return f"workload.cost_as={json.dumps({'parameters': times * PARAMETERS_OF_MLP, **flops})}"


def test_bytes_and_operations_are_charged_in_proportion_to_parameters(tmp_path):
    small = simulate(digits(*ALL, iterations=3, duration=None), tmp_path / "small")
    large = simulate(digits(*ALL, cost_as(20), iterations=3, duration=None), tmp_path / "large")
    headers = small.transfers()["bytes"] - 4 * PARAMETERS_OF_MLP
    assert (headers > 0).all()
    charged = large.transfers()["bytes"] - 20 * 4 * PARAMETERS_OF_MLP
    assert charged.tolist() == pytest.approx(headers.tolist(), abs=1)
    seconds = [run.iterations()["compute_seconds"].to_numpy() for run in (small, large)]
    assert seconds[1] == pytest.approx(20 * seconds[0])
    # What is learnt is the small one, by the same gradients.
    assert sorted(large.iterations()["loss"]) == sorted(small.iterations()["loss"])


def test_a_large_model_on_fast_links_is_as_a_small_one_on_slow_links(tmp_path):
    """Budgets of Max-N follow the charged sizes, measured or told."""
    for bandwidth in ("measured", "oracle_share"):
        system = (
            f"system={{name: dlion, exchange: {{bandwidth: {bandwidth}}}, batching: fixed, knowledge_transfer: none}}"
        )
        slow = {"wan": {"bandwidth": "0.4 Mbps", "rtt": "60 ms"}, "clouds": clouds("1 Mbps")}
        fast = {"wan": {"bandwidth": "4 Mbps", "rtt": "60 ms"}, "clouds": clouds("10 Mbps")}
        small = simulate(digits(system, cluster=slow), tmp_path / f"small {bandwidth}")
        large = simulate(digits(system, cost_as(10), cluster=fast), tmp_path / f"large {bandwidth}")
        full = 4 * PARAMETERS_OF_MLP * len(small.transfers())
        assert 0.01 < small.summary["bytes_sent"] / full < 0.5
        assert large.summary["bytes_sent"] == pytest.approx(10 * small.summary["bytes_sent"], rel=0.02)


def clouds(nic):
    return [{"name": name, "workers": [{"count": 1, "compute": "4 cores", "nic": nic}]} for name in ("a", "b")]


def test_the_charged_model_is_named_wherever_costs_are(tmp_path):
    run = simulate(
        digits(*ALL, "workload.cost_as={parameters: 1.3 B, flops: 16 TFLOP}", duration="1 ms"), tmp_path / "run"
    )
    told = {"parameters": "1.3 B", "flops": "16 TFLOP"}
    assert run.manifest["cost_as"] == run.summary["cost_as"] == run.scenario["workload"]["cost_as"] == told
    assert title(run) == "small, charged as 1.3 B parameters · baseline (no exchange)"


def test_operations_are_proportional_to_parameters_by_default():
    own = Setting.of(digits(*ALL)).core_seconds_per_sample
    assert Setting.of(digits(*ALL, cost_as(7))).core_seconds_per_sample == pytest.approx(7 * own)
    assert Setting.of(digits(*ALL, cost_as(7, flops="19 GFLOP"))).core_seconds_per_sample == pytest.approx(10)
    said = Setting.of(digits("workload.compute_time.beta=3 s", cost_as(7)))
    assert said.core_seconds_per_sample == 3
    assert Setting.of(said.scenario).scenario == said.scenario  # as a resumed run reads it


def test_real_machines_charge_nothing():
    with pytest.raises(
        InputError, match=r"workload\.cost_as: real machines and links cost what they cost; allowed: null"
    ):
        check_live(Setting.of(digits(cost_as(2))))


@pytest.mark.parametrize(
    ("given", "path", "words"),
    [
        ({"parameters": 0}, "workload.cost_as.parameters", "more than 0"),
        ({"parameters": "1.3 GB"}, "workload.cost_as.parameters", "1.3 B"),
        ({"parameters": "1 B", "flops": 5}, "workload.cost_as.flops", "16 TFLOP"),
        ({"flops": "1 TFLOP"}, "workload.cost_as.parameters", "is required"),
        ({"parameters": "1 B", "size": 3}, "workload.cost_as", "unknown key 'size'"),
    ],
)
def test_an_invalid_cost_is_refused_in_one_line(given, path, words):
    scenario = digits().model_dump(mode="json", by_alias=True)
    with pytest.raises(InputError, match=words) as refused:
        from_data({**scenario, "workload": {**scenario["workload"], "cost_as": given}})
    assert refused.value.path == path
