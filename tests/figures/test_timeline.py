"""A timeline's window, and how messages are drawn of few and of many workers."""

import numpy as np
from matplotlib.colors import to_rgba

from dlion_sim.figures import plot_timeline
from dlion_sim.figures.timeline import SEND
from dlion_sim.results import MetricsRow, Run, RunWriter, TransfersRow


def run_of(folder, workers, *, profiling=3.0):
    """Each times its machine, then iterates each second and sends to all others, which takes half of one."""
    writer = RunWriter.create(folder, scenario_yaml="", manifest={"workers": [f"a/{n}" for n in range(workers)]})
    for worker in range(workers):
        ready = profiling / (worker + 1)
        if profiling:
            writer.append(MetricsRow(ready, 0.0, worker, "profile", 0, compute_seconds=ready, wait_seconds=0.0))
        for number in range(1, 30):
            end = ready + number
            writer.append(MetricsRow(end, end, worker, "iteration", number, 1.0, compute_seconds=1, wait_seconds=0))
            for peer in range(workers):
                if peer != worker:
                    writer.append(TransfersRow(end, end + 0.5, worker, peer, "data", "contribution", 9))
    # One that comes back later times its machine again.
    writer.append(MetricsRow(50.0, 0.0, 0, "profile", 0, compute_seconds=2.0, wait_seconds=0.0))
    writer.finish({"status": "completed"})
    return Run.open(folder)


def sending(figure):
    """The collections of what was sent."""
    return [each for each in figure.axes[0].collections if np.allclose(each.get_facecolor()[0], to_rgba(SEND))]


def words(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_the_default_window_is_ten_iterations_after_profiling(tmp_path, drawn):
    plot_timeline(run_of(tmp_path / "run", 3), tmp_path / "a.png")
    assert drawn[0].axes[0].get_xlim() == (3, 13.5)
    assert "profiling" not in words(drawn[0])


def test_without_profiling_the_window_begins_at_the_first_gradient(tmp_path, drawn):
    plot_timeline(run_of(tmp_path / "run", 2, profiling=0.0), tmp_path / "a.png")
    assert drawn[0].axes[0].get_xlim() == (0, 10)


def test_messages_of_many_workers_are_drawn_as_counts(tmp_path, drawn):
    plot_timeline(run_of(tmp_path / "few", 6), tmp_path / "a.png")
    plot_timeline(run_of(tmp_path / "many", 16), tmp_path / "b.png")
    few, many = drawn
    assert words(few)[-1] == "sending, a line for each message"
    assert words(many)[-1] == "sending (full height: 15 messages at once)"
    assert len(sending(many)) == 16
    # All are on the way at once, or none: a strip is as high as a row's room for it, and ends at its bottom.
    heights = {round(float(np.ptp(each.get_paths()[0].vertices[:, 1])), 6) for each in sending(many)}
    assert len(heights) == 1
    assert 0.3 < heights.pop() < 0.7
    thickness = [np.ptp(each.get_paths()[0].vertices[:, 1]) for each in sending(few)]
    assert max(thickness) < 0.1
