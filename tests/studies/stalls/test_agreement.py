"""Run differencing and one run's timeline agree on stalls that overlap."""

from contextlib import nullcontext
from importlib import import_module

import pytest

from dlion_sim.scenario import from_data
from dlion_sim.studies.stalls import explain

UNEVEN = {
    "bandwidth": "20 Mbps",
    "rtt": "10 ms",
    "paths": [{"between": ["c0", "c1"], "rtt": "100 ms", "bandwidth": "3 Mbps"}],
}
FAR = {"bandwidth": "5 Mbps", "rtt": "40 ms"}
SLOW_PREP, PREP = {"prep_rate": 6}, {"prep_rate": 12}
DISK = {"prep_rate": 12, "disk": "1.2 MB/s", "sample_bytes": "110 kB", "cache": 0.5}
LOCAL = {"name": "local_sgd", "exchange": {"kind": "local_sgd", "period": 3}}
MACHINES = {
    "two": (12, 4),
    "slow path, fast machines": (12, 8, 5),
    "slow path, slow machine": (4, 8, 8),
    "four": (12, 8, 4, 6),
}


@pytest.fixture
def checked(tmp_path, monkeypatch):
    """The results of both methods, and their gaps."""
    for module in ("variants", "explain"):
        monkeypatch.setattr(import_module(f"dlion_sim.studies.stalls.{module}"), "COUNTERFACTUALS", {})

    def explained(system, cores, wan, *, fed_by=None, noise=0.0, nic="50 Mbps", beta="400 ms"):
        workload = {
            "dataset": "digits",
            "batch_size": 16,
            "compute_time": {"alpha": "10 ms", "beta": beta},
            **({"input": fed_by} if fed_by else {}),
        }
        clouds = [
            {
                "name": f"c{number}",
                "workers": [{"compute": {"cores": f"{each} cores", "noise": noise}, "nic": nic}],
            }
            for number, each in enumerate(cores)
        ]
        data = {"name": "small", "duration": "4 s", "workload": workload, "system": system}
        scenario = from_data({**data, "cluster": {"clouds": clouds, "wan": wan}})
        silent = lambda _: nullcontext(lambda progress: None)  # noqa: E731
        found = explain(scenario, tmp_path / "runs", iterations=9, observing=silent)
        return found.results

    return explained


@pytest.mark.parametrize(
    ("system", "machines", "wan", "options"),
    [
        ("baseline", "two", FAR, {"fed_by": PREP}),
        ("baseline", "slow path, fast machines", UNEVEN, {}),
        ("baseline", "slow path, slow machine", UNEVEN, {"fed_by": SLOW_PREP, "noise": 0.3}),
        ("baseline", "four", FAR, {"fed_by": PREP}),
        ("ring_allreduce", "slow path, fast machines", UNEVEN, {"fed_by": PREP}),
        ("ring_allreduce", "slow path, slow machine", FAR, {"fed_by": DISK, "noise": 0.3}),
        ("ring_allreduce", "four", FAR, {"fed_by": PREP}),
        ("parameter_server", "slow path, fast machines", UNEVEN, {"fed_by": PREP}),
        ("parameter_server", "four", UNEVEN, {"fed_by": DISK}),
        ("gaia", "slow path, fast machines", UNEVEN, {"fed_by": PREP}),
        ("dpsgd", "four", FAR, {"fed_by": PREP}),
        (LOCAL, "slow path, fast machines", UNEVEN, {"fed_by": PREP}),
    ],
)
def test_both_methods_agree(checked, system, machines, wan, options):
    results = checked(system, MACHINES[machines], wan, **options)
    gaps = {what: found["gap"] for what, found in results["check"].items()}
    assert gaps == pytest.approx(dict.fromkeys(gaps, 0.0), abs=0.03)
    assert results["agreement"].startswith("runs and one timeline agree within")


def test_methods_differ_if_messages_meet_only_on_equal_machines(checked):
    """On equal machines two messages at a time share each downlink."""
    nic = {"up": "1 Gbps", "down": "3 Mbps"}
    results = checked("baseline", (12, 12, 4), {"bandwidth": "unlimited", "rtt": "2 ms"}, nic=nic, beta="40 ms")
    found = results["check"]["straggler"]
    assert found["difference"] < 0 < found["timeline"]
    assert found["gap"] > 0.1
    assert results["agreement"] == (
        f"runs and one timeline are apart, of an iteration's time: straggler by {found['gap']:.0%}; "
        "messages meet at other times"
    )
