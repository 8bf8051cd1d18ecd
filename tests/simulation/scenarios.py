"""Small scenarios for tests: digits, seconds of virtual time."""

from __future__ import annotations

from dlion_sim.scenario import Scenario, from_data, to_data

CLOUDS = [
    {"name": "east", "workers": [{"count": 2, "compute": "24 cores", "nic": "50 Mbps"}]},
    {"name": "west", "workers": [{"count": 1, "compute": "4 cores", "nic": "20 Mbps"}]},
]


def digits(*overrides: str, **keys: object) -> Scenario:
    """Three unequal workers in two clouds; `keys` replace top-level keys, `overrides` are as for --set."""
    data = {
        "name": "small",
        "seed": 1,
        "duration": "4 s",
        "workload": {
            "dataset": "digits",
            "optimizer": {"learning_rate": 0.1},
            "batch_size": 16,
            "evaluate_every": "2 s",
            "compute_time": {"alpha": "10 ms", "beta": "40 ms"},
        },
        "cluster": {"clouds": CLOUDS, "wan": {"bandwidth": "40 Mbps", "rtt": "60 ms"}},
        "system": "dlion",
    }
    return from_data({**data, **keys}, overrides)


def streamed(*overrides: str, system: object = "dlion", duration: str | None = "4 s", **stream: object) -> Scenario:
    """The same, whose samples come as a stream: 50 to begin with, then 20 a second."""
    scenario = digits(duration=duration or "1 s", system=system)
    data = to_data(scenario)
    data["workload"]["stream"] = {"arrivals": "20/s", "initial": 50, **stream}
    return from_data({**data, "duration": duration}, overrides)
