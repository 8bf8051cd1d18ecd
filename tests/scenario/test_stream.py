"""How a stream of samples is written."""

import numpy as np
import pytest

from dlion_sim.errors import InputError
from dlion_sim.scenario import from_data, to_data

DRIFT = [
    {"kind": "late_class", "class": 7, "from": "1 min"},
    {"kind": "label_shift", "classes": [0, 1], "weight": {"20 s": 0.5, "10 s": 1}, "clouds": ["east"]},
    {"kind": "brightness", "to": "10 s", "by": -0.4},
    {"kind": "rotation", "from": "5 s", "to": "10 s", "by": 30},
]


def with_stream(data, folder="", **stream):
    workload = {**data["workload"], "stream": {"arrivals": "50/s", **stream}}
    return from_data({**data, "workload": workload}, folder=folder)


@pytest.mark.parametrize("keep", ["all", {"window": 40}, {"reservoir": 40}])
def test_what_is_written_is_read_again(data, keep):
    arrivals = {"rate": "50 samples/s", "of": {"east/0": {"steps": {"0 s": "5/s", "20 s": "0/s"}}}}
    scenario = with_stream(data, arrivals=arrivals, keep=keep, drift=DRIFT)
    assert from_data(to_data(scenario)) == scenario
    assert scenario.workload.stream.arrivals.at("east", "east/1").steps == ((0.0, 50.0),)
    assert scenario.workload.stream.arrivals.at("east", "east/0").steps == ((0.0, 5.0), (20.0, 0.0))


def test_rates_may_be_a_trace(data, tmp_path):
    (tmp_path / "rates.csv").write_text("time_s,rate\n0,10\n30,2.5\n")
    stream = with_stream(data, tmp_path, arrivals={"trace": "rates.csv", "repeat": False}).workload.stream
    assert stream.arrivals.rate.steps == ((0.0, 10.0), (30.0, 2.5))


def test_weights_and_amounts_go_along_lines(data):
    late, shift, light, turn = with_stream(data, drift=DRIFT).workload.stream.drift
    times = np.array([0.0, 7.5, 15.0, 59.0, 60.0])
    assert late.weight_at(times).tolist() == [0, 0, 0, 0, 1]
    assert shift.weight_at(times).tolist() == [1, 1, 0.75, 0.5, 0.5]
    assert (light.by * light.part_at(times)).tolist() == pytest.approx([0, -0.3, -0.4, -0.4, -0.4])
    assert (turn.by * turn.part_at(times)).tolist() == [0, 15, 30, 30, 30]
    assert [each.span for each in (late, shift, light, turn)] == [(60, 60), (10, 20), (0, 10), (5, 10)]


@pytest.mark.parametrize(
    ("stream", "path", "problem"),
    [
        ({"arrivals": 50}, "arrivals", "50 is not a rate of samples; write e.g. '50/s'"),
        ({"keep": "some"}, "keep", "'some' is not a way to keep samples"),
        ({"keep": {"window": 5, "reservoir": 5}}, "keep", "exclude each other"),
        ({"drift": [{"kind": "late"}]}, "drift.0", "kind 'late' is unknown"),
        ({"drift": [{**DRIFT[3], "to": "5 s"}]}, "drift.0.to", "must end after it begins"),
        ({"drift": [{**DRIFT[1], "weight": {"1 s": 1, "1000 ms": 2}}]}, "drift.0.weight", "at the same time"),
        ({"drift": [{**DRIFT[1], "weight": {}}]}, "drift.0.weight", "1 or more entries"),
        ({"drift": [{**DRIFT[2], "by": 2}]}, "drift.0.by", "1 or less"),
    ],
)
def test_what_cannot_be_is_said_with_its_place(data, stream, path, problem):
    with pytest.raises(InputError, match=problem) as refused:
        with_stream(data, **stream)
    assert refused.value.path == f"workload.stream.{path}"


def test_samples_that_all_workers_hold_are_no_stream(data):
    data["workload"]["partition"] = "shared"
    with pytest.raises(InputError, match="trained on at other workers") as refused:
        with_stream(data)
    assert refused.value.path == "workload.partition"
