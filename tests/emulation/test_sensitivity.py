"""`python -m emulation.sensitivity`: simulations of nearly the same scenario."""

import json

import pytest

from dlion_sim.scenario import dump
from dlion_sim.simulation import simulate
from emulation import sensitivity, validate
from tests.simulation.scenarios import digits


def test_neighbours_have_all_bandwidths_a_little_off_and_nothing_else():
    scenario = digits("duration=2 s")
    neighbour = sensitivity.neighbour_of(scenario, 0)
    ours, theirs = ([worker.nic.up.value_at(0) for worker in one.cluster.workers] for one in (scenario, neighbour))
    assert all(0 < abs(other / one - 1) <= sensitivity.OFF for one, other in zip(ours, theirs, strict=True))
    assert neighbour != sensitivity.neighbour_of(scenario, 1)
    assert neighbour == sensitivity.neighbour_of(scenario, 0)
    assert neighbour.workload == scenario.workload


def test_the_table_tells_how_far_neighbours_are(tmp_path, capsys):
    scenarios, output = tmp_path / "scenarios", tmp_path / "output"
    scenarios.mkdir()
    scenario = digits("name=one", "system=baseline", "cluster.wan.bandwidth=500 kbps")
    (scenarios / "one.yaml").write_text(dump(scenario))
    simulate(scenario, output / "one" / "simulated")
    assert sensitivity.main([str(scenarios), "--output", str(output)]) == 0
    found = json.loads((output / "one" / validate.SENSITIVITY).read_text())
    assert 0 < found["iteration_median"] < 0.05
    (output / "one" / "fidelity.json").write_text(json.dumps({"verdict": dict.fromkeys(found, 0.0), "late": 0.0}))
    table = validate.table_of(validate.scenarios_in(scenarios), output)
    assert table["iteration_median_itself"].tolist() == pytest.approx([found["iteration_median"]])
    capsys.readouterr()
    assert sensitivity.main([str(scenarios), "--output", str(output)]) == 0
    assert "1 of 1" not in capsys.readouterr().err


def test_without_the_simulation_it_says_so(tmp_path, capsys):
    (tmp_path / "one.yaml").write_text(dump(digits("name=one")))
    assert sensitivity.main([str(tmp_path), "--output", str(tmp_path / "output")]) == 2
    assert "is not a run folder" in capsys.readouterr().err


@pytest.mark.parametrize("script", [sensitivity, validate])
def test_another_metric_than_accuracy_is_refused_in_one_line(script, tmp_path, capsys):
    (tmp_path / "one.yaml").write_text(dump(digits("workload.dataset=diabetes")))
    assert script.main([str(tmp_path), "--output", str(tmp_path / "output")]) == 2
    [line] = capsys.readouterr().err.splitlines()
    words = "workload.dataset: is evaluated by rmse; allowed: one of accuracy; `dlion validate` takes any"
    assert line.endswith(f"{tmp_path / 'one.yaml'}: {words}")
    assert not (tmp_path / "output").exists()
