"""Analysis of runs with a stream."""

import pytest

from dlion_sim.analysis import comparison, group_runs
from dlion_sim.analysis.curves import drift_intervals, online_accuracy
from dlion_sim.analysis.stalls.steps import steps
from dlion_sim.analysis.timeline import spans
from dlion_sim.errors import InputError
from dlion_sim.results import Frames
from tests.made_up import made_up_run


def test_online_accuracy_is_by_interval_of_evaluations(tmp_path):
    curve = online_accuracy(made_up_run(tmp_path / "run", streamed=True))
    assert dict(curve) == {10.0: 0.5, 20.0: 0.5}
    with pytest.raises(InputError, match="has no stream of samples"):
        online_accuracy(made_up_run(tmp_path / "other"))


def test_simultaneous_drifts_are_one(tmp_path):
    run = made_up_run(tmp_path / "run", streamed=True)
    assert drift_intervals(run) == [("class 1 comes", 6, 6), ("rotation, labels shift", 8, 12)]


def test_tests_of_arrivals_are_no_spans(tmp_path):
    plain, run = made_up_run(tmp_path / "a"), made_up_run(tmp_path / "b", streamed=True)
    assert len(run.metrics()) > len(plain.metrics())
    assert spans(run.metrics()).equals(spans(plain.metrics()))
    assert steps(run) == steps(plain)


def test_comparisons_and_tables_have_streams(tmp_path):
    runs = [made_up_run(tmp_path / "a", seed=0, streamed=True), made_up_run(tmp_path / "b", system="ako")]
    told, other = comparison(group_runs(runs), 0.5)[["online", "forgetting", "adaptation"]].to_numpy()
    assert told.tolist() == [0.5, 0.05, 10.0]
    assert all(value != value for value in other)
    frames = Frames.of([tmp_path])
    assert frames.summaries.set_index("run")["adaptation_1"]["a"] == 10.0
    assert len(frames.classes) == 3 * 2 * 2
    assert frames.arrivals["batch_size"].sum() == 160
