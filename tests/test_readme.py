"""What the README shows works."""

import re
from pathlib import Path

import yaml

from dlion_sim.protocol.compose import compose
from dlion_sim.scenario import from_data

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def test_its_scenario_is_one():
    (text,) = re.findall(r"```yaml\n(.*?)```", README, re.DOTALL)
    scenario = from_data(yaml.safe_load(text))
    assert compose(scenario.system).spec.exchange.parameters["n_min"] == 10


def test_what_it_points_to_is_there():
    for target in re.findall(r"\]\(([^)]+)\)", README):
        assert (ROOT / target).exists(), target


def test_its_commands_are_targets_of_the_makefile():
    targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert set(re.findall(r"make (\w+) ", README)) <= set(targets)
