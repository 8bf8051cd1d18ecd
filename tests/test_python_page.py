"""The page on using the package from Python works as it stands."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import dlion_sim
from dlion_sim.errors import InputError
from tests.simulation.scenarios import digits

PAGE = (Path(__file__).parents[1] / "docs" / "python.md").read_text()


def test_its_code_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    here: dict = {}
    for code in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        exec(code, here)
    runs = here["runs"]
    assert runs.summaries["run"].tolist() == ["baseline-0", "baseline-1", "dlion-0", "dlion-1"]
    assert (runs.summaries["status"] == "completed").all()
    assert here["final"].shape == (2, 2)
    assert here["curves"].index.tolist() == [0, 3, 6, 9, 12]
    assert here["sent"].sum() * 1e6 == pytest.approx(runs.summaries["bytes_sent"].sum())
    assert runs.iterations.groupby("run").size().sum() == runs.summaries["iterations"].sum() * 6


def test_a_scenario_is_a_file_a_mapping_or_an_object(tmp_path):
    scenario = digits("duration=1 s")
    data = scenario.model_dump(mode="json", by_alias=True, exclude_none=True)
    one = dlion_sim.simulate(scenario, tmp_path / "one", overrides={"seed": 3, "description": "\N{GRINNING FACE}"})
    two = dlion_sim.simulate(data | {"seed": 3}, tmp_path / "two")
    three = dlion_sim.simulate(tmp_path / "two" / "scenario.yaml", tmp_path / "three")
    losses = [run.iterations()["loss"].tolist() for run in (one, two, three)]
    assert losses[0] == losses[1] == losses[2]
    assert one.summary["seed"] == 3
    with pytest.raises(InputError, match="already holds a run"):
        dlion_sim.simulate(scenario, tmp_path / "one")
    assert dlion_sim.load(tmp_path / "one").summaries["run"].tolist() == ["one"]


def test_importing_the_package_imports_nothing_heavy():
    heavy = {"torch", "pandas", "numpy", "pydantic", "matplotlib"}
    code = f"import sys, dlion_sim; print(sorted({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"


def test_reading_summaries_imports_no_torch(tmp_path):
    dlion_sim.simulate(digits("duration=1 s"), tmp_path / "run")
    code = f"import sys, dlion_sim; dlion_sim.load({str(tmp_path)!r}).summaries; print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"
