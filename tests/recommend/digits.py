"""A small study: digits, a few candidates of a made-up catalog, done in this process."""

from __future__ import annotations

from pathlib import Path

import yaml

from dlion_sim.recommend import Choices, Goal, Study
from dlion_sim.sweep import Base
from dlion_sim.sweep.job import work
from dlion_sim.yaml_text import read_file

CATALOG = """\
InstanceType,AcceleratorName,AcceleratorCount,vCPUs,Price,SpotPrice,Region,NetworkGbps
small,,,8,1.00,,here,0.05
small,,,8,1.10,,there,0.05
middle,,,32,3.00,,here,0.1
middle,,,32,3.30,,there,0.1
strange,TPU,1,8,2.00,,here,1
strange,TPU,1,8,2.00,,there,1
"""
SCENARIO = {
    "name": "learn",
    "seed": 1,
    "duration": "1 h",
    "target_accuracy": 0.8,
    "workload": {
        "dataset": "digits",
        "optimizer": {"learning_rate": 0.05},
        "batch_size": 16,
        "evaluate_every": "2 s",
        "compute_time": {"alpha": "20 ms", "beta": "1 s"},
    },
    "cluster": {
        "clouds": [
            {"name": "east", "region": "here", "workers": [{}]},
            {"name": "west", "region": "there", "workers": [{}]},
        ],
        "wan": {"bandwidth": "4 Mbps", "rtt": "60 ms"},
    },
    "system": "dlion",
    "prices": {"egress": 0.02, "billing": {"least": "0 s"}},
}


def write_scenario(folder: Path, **keys: object) -> Path:
    """The scenario, with some keys replaced, beside its catalog."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "catalog.csv").write_text(CATALOG)
    file = folder / "learn.yaml"
    file.write_text(yaml.safe_dump({**SCENARIO, **keys}, sort_keys=False))
    return file


def study_of(
    folder: Path,
    goal: Goal,
    *,
    seeds: int = 3,
    instances=(),
    counts=(1, 2),
    systems=("dlion", "ring_allreduce"),
    **keys,
):
    """A study whose runs are below `folder`."""
    file = write_scenario(folder, **keys)
    choices = Choices(str(folder / "catalog.csv"), instances, counts, systems)
    study = Study(Base(file, read_file(file)), choices, goal, seeds, folder / "out")
    study.check()
    return study


def in_this_process(title, jobs) -> bool:
    """Does the jobs one by one."""
    for job in jobs:
        work(job, lambda: False, lambda progressed: None)
    return True
