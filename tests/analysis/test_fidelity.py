import json
import math
from types import MappingProxyType

import pytest

from dlion_sim.analysis import compare
from dlion_sim.errors import InputError
from dlion_sim.figures import plot_fidelity
from dlion_sim.results import LinksRow, MetricsRow, Run, RunWriter
from dlion_sim.results.atomic import json_bytes
from dlion_sim.simulation import simulate
from tests.simulation.scenarios import digits


def written(
    folder,
    *,
    period=1.0,
    iterations=10,
    links=MappingProxyType({(0, 1): 1000}),
    accuracies=(0.1, 0.5, 0.9),
    every=5.0,
    workers=("a/0", "a/1"),
    idle=(),
    late=None,
    ending=MappingProxyType({"status": "completed", "stopped_by": "duration"}),
    way="simulate",
    evaluated_on="test",
):
    """A run of two workers with iterations of equal length, each of which has `links` carry so many bytes in the end.

    Workers in `idle` do none. Accuracies and traffic are written `every` so many seconds.
    """
    manifest = {"workers": list(workers), "scenario": "small", "system": "baseline", "seed": 0, "way": way}
    manifest["evaluated_on"] = evaluated_on
    if way != "simulate":
        nodes = [{"rank": rank, "status": "completed", "late": late} for rank in range(2)]
        manifest |= {"paced": late is not None, "nodes": nodes}
    writer = RunWriter.create(folder, scenario_yaml="name: small\n", manifest=manifest)
    times = [iteration * period for iteration in range(1, iterations + 1)]
    for worker in range(2):
        for iteration, time in enumerate(() if worker in idle else times, 1):
            writer.append(MetricsRow(time, time, worker, "iteration", iteration, 1.0, batch_size=8, staleness=2.0))
        for number, accuracy in enumerate(accuracies):
            time = every * number
            writer.append(MetricsRow(time, time, worker, "evaluation", 0, 1.0, accuracy=accuracy))
    for number in range(1, len(accuracies)):
        end = every * number
        messages = sum(end - every < time <= end for time in times)
        for (sender, receiver), size in links.items():
            if messages:
                writer.append(LinksRow(end, sender, receiver, size * messages, messages, messages))
    writer.finish(dict(ending))
    return Run.open(folder)


def test_equal_runs_have_no_differences(tmp_path):
    one, again = (simulate(digits(), tmp_path / name) for name in ("one", "again"))
    assert compare(one, again).verdict == {
        "iteration_median": 0.0,
        "iterations": 0.0,
        "bytes": 0.0,
        "accuracy_at_end": 0.0,
        "accuracy_on_the_way": 0.0,
        "accuracy_at_worst": 0.0,
    }


def test_differences_are_those_of_the_runs(tmp_path):
    simulated = written(tmp_path / "simulated")
    real = written(tmp_path / "real", period=1.04, iterations=9, links={(0, 1): 1100}, accuracies=(0.1, 0.48, 0.91))
    found = compare(simulated, real)
    assert found.workers["iterations"]["real"].tolist() == [9, 9]
    assert found.workers["iteration_median"]["ratio"].tolist() == pytest.approx([1.04, 1.04])
    assert found.workers["staleness"]["ratio"].tolist() == [1, 1]
    assert found.links["bytes"].loc[(0, 1)].tolist() == pytest.approx([10000, 9900, 0.99])
    assert found.links["throughput"].loc[(0, 1)].tolist() == pytest.approx(
        [1000, 1100 * (4 + 9) / (5 + 10), 1100 * 13 / 15000]
    )
    assert found.verdict["iteration_median"] == pytest.approx(0.04)
    assert found.verdict["accuracy_at_end"] == pytest.approx(1)
    assert found.verdict["accuracy_on_the_way"] == pytest.approx((0 + 2 + 1) / 3)
    assert found.verdict["accuracy_at_worst"] == pytest.approx(2)
    assert json.loads(json_bytes(found.document))["links"][0]["bytes_simulated"] == 10000


def test_only_the_common_time_counts(tmp_path):
    simulated = written(tmp_path / "simulated")
    real = written(tmp_path / "real", iterations=5, accuracies=(0.1, 0.5))
    found = compare(simulated, real)
    assert found.workers["iterations"]["simulated"].tolist() == [5, 5]
    assert found.links["bytes"]["simulated"].tolist() == [5000]
    assert found.evaluations.index.tolist() == [0.0, 5.0]


def test_whole_numbers_count_by_their_delay(tmp_path):
    """In a run that is 0.1 % slower the last of 20 iterations, and its message, are missing at the end."""
    sampled = {"accuracies": [0.1] * 48, "every": 10 / 47}
    simulated = written(tmp_path / "simulated", period=0.5, iterations=20, **sampled)
    real = written(tmp_path / "real", period=0.5005, iterations=19, **sampled)
    found = compare(simulated, real)
    assert found.workers["iterations"]["ratio"].tolist() == found.links["bytes"]["ratio"].tolist() * 2 == [0.95, 0.95]
    assert found.verdict["iterations"] == pytest.approx(0.001, rel=0.1)
    assert found.verdict["bytes"] < 0.005


@pytest.mark.parametrize(("data", "off"), [(1_000_000, 0.01), (900_000, 0.1)])
def test_links_of_control_messages_hardly_count(tmp_path, data, off):
    simulated = written(tmp_path / "simulated", links={(0, 1): 1_000_000, (1, 0): 1_000_000, (0, 2): 1000})
    real = written(tmp_path / "real", links={(0, 1): 1_000_000, (1, 0): data, (0, 2): 1667})
    found = compare(simulated, real)
    assert found.links["bytes"]["ratio"].loc[(0, 2)] == pytest.approx(1.667)
    assert found.verdict["bytes"] == pytest.approx(off, rel=0.01)


def test_links_and_workers_of_one_run_only_count(tmp_path):
    simulated = written(tmp_path / "simulated")
    real = written(tmp_path / "real", links={(1, 0): 1000}, idle=[1])
    found = compare(simulated, real)
    assert found.links["bytes"]["real"].to_dict() == {(0, 1): 0, (1, 0): 10000}
    assert found.workers["iterations"]["real"].tolist() == [10, 0]
    assert found.verdict["bytes"] >= 1
    assert found.verdict["iterations"] == 1


def test_without_an_exchange_bytes_are_unknown(tmp_path):
    found = compare(*(written(tmp_path / name, links={}) for name in ("simulated", "real")))
    assert math.isnan(found.verdict["bytes"])
    assert json.loads(json_bytes(found.document))["verdict"]["bytes"] is None
    assert found.verdict["iterations"] == 0


def test_lateness_is_a_share_of_the_time(tmp_path):
    simulated = written(tmp_path / "simulated")
    late = {"computations": 10, "late": 2, "seconds_late": 0.5, "most_seconds_late": 0.3}
    assert compare(simulated, written(tmp_path / "paced", late=late, way="emulate")).late == pytest.approx(0.05)
    assert math.isnan(compare(simulated, written(tmp_path / "unpaced", way="emulate")).late)


def test_runs_of_other_workers_are_refused(tmp_path):
    simulated, real = written(tmp_path / "one"), written(tmp_path / "other", workers=("a/0", "b/0"))
    with pytest.raises(InputError, match="other workers"):
        compare(simulated, real)


def test_runs_with_other_evaluation_sets_are_refused(tmp_path):
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
