import json

import pytest

from dlion_sim.analysis import compare
from dlion_sim.errors import InputError
from dlion_sim.figures import plot_fidelity
from dlion_sim.results import LinksRow, MetricsRow, Run, RunWriter
from dlion_sim.simulation import simulate
from tests.simulation.scenarios import digits


def written(
    folder, *, period=1.0, iterations=10, size=1000, accuracies=(0.1, 0.5, 0.9), workers=("a/0", "a/1"), **about
):
    """A run of two workers with iterations of equal length, an evaluation each 5 s, and `size` bytes an iteration."""
    manifest = {"workers": list(workers), "scenario": "small", "system": "baseline", "seed": 0, **about}
    writer = RunWriter.create(folder, scenario_yaml="name: small\n", manifest=manifest)
    for worker in range(2):
        for iteration in range(1, iterations + 1):
            time = iteration * period
            writer.metrics(MetricsRow(time, time, worker, "iteration", iteration, 1.0, batch_size=8, staleness=2.0))
        for number, accuracy in enumerate(accuracies):
            writer.metrics(MetricsRow(5.0 * number, 5.0 * number, worker, "evaluation", 0, 1.0, accuracy=accuracy))
    for end in (5.0, 10.0):
        writer.links(LinksRow(end, 0, 1, size * iterations // 2, iterations // 2, iterations // 2))
    writer.finish({"status": "completed"})
    return Run.open(folder)


def test_a_run_is_like_itself(tmp_path):
    one, again = (simulate(digits(), tmp_path / name) for name in ("one", "again"))
    assert compare(one, again).verdict == {
        "iteration_median": 0.0,
        "bytes": 0.0,
        "accuracy_at_end": 0.0,
        "accuracy_on_the_way": 0.0,
    }


def test_differences_are_those_of_the_runs(tmp_path):
    simulated = written(tmp_path / "simulated")
    real = written(tmp_path / "real", period=1.04, iterations=9, size=1100, accuracies=(0.1, 0.48, 0.91), way="emulate")
    found = compare(simulated, real)
    assert found.workers["iterations"]["real"].tolist() == [9, 9]
    assert found.workers["iteration_median"]["ratio"].tolist() == pytest.approx([1.04, 1.04])
    assert found.workers["staleness"]["ratio"].tolist() == [1, 1]
    assert found.links["bytes"].loc[(0, 1)].tolist() == pytest.approx([10000, 9900, 0.99])
    assert found.links["throughput"].loc[(0, 1)].tolist() == pytest.approx([1000, 990, 0.99])
    assert found.verdict["iteration_median"] == pytest.approx(0.04)
    assert found.verdict["accuracy_at_end"] == pytest.approx(1)
    assert found.verdict["accuracy_on_the_way"] == pytest.approx(2)
    assert json.loads(json.dumps(found.document))["links"][0]["bytes_simulated"] == 10000


def test_only_the_time_that_both_ran_counts(tmp_path):
    simulated = written(tmp_path / "simulated")
    real = written(tmp_path / "real", iterations=5, accuracies=(0.1, 0.5))
    found = compare(simulated, real)
    assert found.workers["iterations"]["simulated"].tolist() == [5, 5]
    assert found.links["bytes"]["simulated"].tolist() == [5000]
    assert found.accuracy.index.tolist() == [0.0, 5.0]


def test_runs_of_other_workers_are_refused(tmp_path):
    simulated, real = written(tmp_path / "one"), written(tmp_path / "other", workers=("a/0", "b/0"))
    with pytest.raises(InputError, match="other workers"):
        compare(simulated, real)


def test_runs_that_were_evaluated_on_other_samples_are_refused(tmp_path):
    simulated, real = written(tmp_path / "one"), written(tmp_path / "other", evaluated_on="validation")
    with pytest.raises(InputError, match="was evaluated on the validation set; allowed: the test set, as") as refusal:
        compare(simulated, real)
    assert refusal.value.file == real.folder


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_the_figure_shows_both(tmp_path, suffix):
    simulated = written(tmp_path / "simulated")
    real = written(tmp_path / "real", period=1.04, way="emulate")
    file = plot_fidelity(simulated, real, tmp_path / f"both.{suffix}")
    assert file.stat().st_size > 1000
    if suffix == "svg":
        assert "emulated" in file.read_text() or file.read_text().count("<path") > 20
