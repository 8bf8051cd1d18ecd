"""What a summary tells of a stream."""

import pytest

from dlion_sim.assembly.optional_totals import StreamTotals
from dlion_sim.results import ClassesRow, MetricsRow

CURVES = {
    # class: (share, accuracy) of two workers at 0, 10, ... 50 s
    0: [(0.5, 0.2, 0.2), (0.5, 0.8, 0.6), (0.5, 0.9, 0.7), (0.0, 0.8, 0.6), (0.0, 0.5, 0.6), (0.0, 0.3, 0.6)],
    1: [(0.5, 0.1, 0.3), (0.5, 0.5, 0.5), (0.5, 0.6, 0.6), (0.5, 0.7, 0.7), (0.5, 0.7, 0.7), (0.5, 0.8, 0.7)],
    2: [(0.0, 0.9, 0.9), (0.0, 0.0, 0.0), (0.0, 0.0, 0.1), (0.5, 0.1, 0.1), (0.5, 0.7, 0.3), (0.5, 0.6, 0.6)],
    3: [(0.0, 1.0, 1.0)] * 6,
}


@pytest.fixture
def streamed():
    streamed = StreamTotals()
    for place in range(6):
        for worker in (0, 1):
            for label, rows in CURVES.items():
                share, *accuracies = rows[place]
                streamed.classes(ClassesRow(10.0 * place, worker, label, share, 100, accuracies[worker]))
    return streamed


def test_forgetting(streamed):
    """Of class 2 only what was since it came; class 3 never has."""
    lost = [0.9 - 0.3, 0.7 - 0.6, 0.7 - 0.8, 0.7 - 0.7, 0.7 - 0.6, 0.3 - 0.6]
    assert streamed.summary(50.0)["forgetting"] == pytest.approx(sum(lost) / 6)


def test_adaptation(streamed):
    """The mean worker has 0.1, 0.5, 0.6, and 0.4 at the end on average of the last three."""
    assert streamed.summary(50.0)["adaptation"] == {"2": 10.0}
    streamed.classes(ClassesRow(60.0, 0, 2, 0.5, 100, 1.0))
    streamed.classes(ClassesRow(60.0, 1, 2, 0.5, 100, 1.0))
    assert streamed.summary(60.0)["adaptation"] == {"2": 30.0}


def test_online_accuracy():
    streamed = StreamTotals()
    assert streamed.summary(1.0) is None
    for samples, right in ((4, 1), (1, 1), (5, 0)):
        row = MetricsRow(1.0, 0.0, 0, "arrivals", 3, 0.5, right / samples, samples)
        streamed.arrivals(row)
    told = streamed.summary(1.0)
    assert (told["scored"], told["online_accuracy"]) == (10, pytest.approx(0.2))
    assert (told["forgetting"], told["adaptation"]) == (None, {})
