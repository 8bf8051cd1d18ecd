"""Whole runs over samples that come while workers learn."""

import numpy as np
import pandas as pd
import pytest
import torch

from dlion_sim.assembly import Setting, StreamSampler
from dlion_sim.learning.gradients import GradientExecutor
from dlion_sim.results import WALL_CLOCK_COLUMNS
from dlion_sim.simulation import simulate
from tests.simulation.scenarios import digits, streamed

LATE = {"kind": "late_class", "class": 7, "from": "2 s"}
FIXED = "workload.optimizer={learning_rate: 1e-30}"
TURN = {"kind": "rotation", "to": "3 s", "by": 60}


def test_the_online_accuracy_of_a_fixed_model_is_its_accuracy_on_the_arrivals(tmp_path):
    scenario = streamed(FIXED, drift=[LATE, TURN], duration="3 s", system="baseline")
    run, setting = simulate(scenario, tmp_path / "run"), Setting.of(scenario)
    scored = 0
    for worker, own in run.arrivals().groupby("worker"):
        arrivals, sizes = setting.stream.arrivals[worker], own["batch_size"].astype(int)
        ends = np.cumsum(sizes)
        came = arrivals.samples[arrivals.initial :][: sizes.sum()]
        with torch.no_grad():
            outputs = setting.model(setting.dataset.transform(setting.dataset.train_inputs[came]))
        right = (outputs.argmax(dim=1) == setting.dataset.train_targets[came]).numpy()
        expected = [right[end - size : end].mean() for end, size in zip(ends, sizes, strict=True)]
        assert own["accuracy"].tolist() == pytest.approx(expected)
        assert [arrivals.by(now) - arrivals.initial for now in own["virtual_time"]] == ends.tolist()
        scored += right.sum()
    told = run.summary["stream"]
    assert told["online_accuracy"] == pytest.approx(scored / told["scored"])
    assert told["scored"] == run.arrivals()["batch_size"].sum()


def test_no_sample_is_trained_on_before_it_was_tested(tmp_path, monkeypatch):
    tested, trained = set(), []
    receive, submit = StreamSampler.receive, GradientExecutor.submit

    def received(sampler, now):
        came = receive(sampler, now)
        tested.update(came.tolist(), sampler.shard.tolist())
        return came

    def submitted(executor, replica, samples):
        assert tested.issuperset(samples.tolist())
        trained.extend(samples.tolist())
        return submit(executor, replica, samples)

    monkeypatch.setattr(StreamSampler, "receive", received)
    monkeypatch.setattr(GradientExecutor, "submit", submitted)
    run = simulate(streamed(keep={"window": 60}, system="ako"), tmp_path / "run")
    assert len(trained) >= run.summary["samples"] > 0
    assert len(set(trained)) > 3 * 60, "of more than a window"


def test_a_late_class_is_learned_and_classes_are_weighted_by_their_shares(tmp_path):
    rate = "workload.optimizer={learning_rate: 0.3}"
    run = simulate(streamed(rate, arrivals="60/s", drift=[LATE], system="ako"), tmp_path / "run")
    of_class = run.classes().groupby(["label", "virtual_time"])["accuracy"].mean()[7]
    assert of_class[2.0] == 0, "nobody has seen one"
    assert of_class.iloc[-1] > 0.5
    assert list(run.summary["stream"]["adaptation"]) == ["7"]
    evaluation = run.evaluations().groupby(["virtual_time", "worker"])["accuracy"].first()
    classes = run.classes().assign(weighted=lambda rows: rows["share"] * rows["accuracy"])
    weighted = classes.groupby(["virtual_time", "worker"])["weighted"].sum()
    assert weighted.to_numpy() == pytest.approx(evaluation.to_numpy())
    shares = run.classes().groupby(["virtual_time", "worker"])["share"].sum()
    assert shares.to_numpy() == pytest.approx(1)


@pytest.mark.parametrize("keep", ["all", {"window": 60}, {"reservoir": 60}])
def test_the_same_seed_gives_the_same_run(tmp_path, keep):
    scenario = streamed(keep=keep, drift=[LATE, TURN], duration="2.5 s", system="hop")
    runs = [simulate(scenario, tmp_path / name) for name in ("one", "two")]
    rows = [run.metrics().drop(columns=list(WALL_CLOCK_COLUMNS)) for run in runs]
    pd.testing.assert_frame_equal(*rows, check_exact=True)
    pd.testing.assert_frame_equal(*(run.classes() for run in runs), check_exact=True)


def test_without_a_stream_there_are_no_rows_of_one(tmp_path):
    run = simulate(digits(duration="1 s"), tmp_path / "run")
    assert run.arrivals().empty
    assert run.classes().empty
    assert "stream" not in run.summary
    assert not list(run.folder.glob("classes*"))
