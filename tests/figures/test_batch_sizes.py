"""Batch sizes: what is drawn as one line, and when an axis is logarithmic."""

import numpy as np
import pandas as pd
import pytest

from dlion_sim.figures import plot_accuracy, plot_batch_sizes
from tests.made_up import made_up_run


def run_with(folder, workers, clouds):
    """Of so many workers, dealt out to so many micro-clouds, with batches of 8 samples more each."""
    run = made_up_run(folder, workers=workers)
    run.manifest["workers"] = [f"cloud-{number * clouds // workers}/{number}" for number in range(workers)]
    return run


def names(figure):
    (legend,) = figure.legends
    return [text.get_text() for text in legend.get_texts()]


def test_few_workers_have_a_line_each(tmp_path, drawn):
    plot_batch_sizes(run_with(tmp_path / "run", 2, 1), tmp_path / "a.png")
    bottom = drawn[0].axes[1]
    assert bottom.get_yscale() == "linear"
    assert names(drawn[0]) == ["cloud-0/0", "cloud-0/1"]
    assert len(bottom.lines) == 2
    assert not bottom.collections


def test_a_wide_range_has_a_logarithmic_axis(tmp_path, drawn):
    plot_batch_sizes(run_with(tmp_path / "run", 11, 4), tmp_path / "a.png")
    top, bottom = drawn[0].axes
    assert (top.get_yscale(), bottom.get_yscale()) == ("linear", "log")
    drawn[0].draw_without_rendering()
    assert {label.get_text() for label in bottom.get_yticklabels()} >= {"10", "20", "50", "100"}


@pytest.mark.parametrize(
    ("workers", "clouds", "lines"),
    [
        (6, 3, 6),
        (11, 4, ["cloud-0 (3)", "cloud-1 (3)", "cloud-2 (3)", "cloud-3 (2)"]),
        (64, 8, [f"cloud-{cloud} (8)" for cloud in range(8)]),
        (64, 32, ["all 64 workers"]),
    ],
)
def test_many_workers_share_lines(tmp_path, drawn, workers, clouds, lines):
    run = run_with(tmp_path / "run", workers, clouds)
    plot_batch_sizes(run, tmp_path / "a.png")
    plot_accuracy(run, tmp_path / "a.png")
    for figure in drawn:
        bottom = figure.axes[1]
        named = names(figure)
        assert (len(named) if isinstance(lines, int) else named) == lines
        # A band for each line that stands for several.
        assert len(bottom.collections) == (0 if isinstance(lines, int) else len(lines))
        assert ("band: minimum to maximum" in figure.legends[0].get_title().get_text()) == bool(bottom.collections)


def test_a_line_is_a_mean_with_its_range(tmp_path, drawn):
    plot_batch_sizes(run_with(tmp_path / "run", 8, 2), tmp_path / "a.png")
    bottom = drawn[0].axes[1]
    # At first 8, 16, 24 and 32 samples, and 40 to 64.
    assert [line.get_ydata()[0] for line in bottom.lines] == [20, 52]
    first = bottom.collections[0].get_paths()[0].vertices
    assert set(first[first[:, 0] == 1][:, 1]) >= {8, 32}


def test_only_the_part_with_changes_is_drawn(tmp_path, drawn):
    run = made_up_run(tmp_path / "run", [0.1] * 31)
    file = tmp_path / "run" / "metrics.parquet"
    rows = pd.read_parquet(file)
    rows["batch_size"] = np.where(rows["virtual_time"] < 20, 8, 12)
    rows.to_parquet(file)
    plot_batch_sizes(run, tmp_path / "a.png")
    assert [axes.get_xlim() for axes in drawn[0].axes] == [(0, 30), (0, 30)]
    assert "no change from 20 s to the end at 300 s" in drawn[0].legends[0].get_title().get_text()
    rows["batch_size"] = np.where(rows["virtual_time"] < 200, 8, 12)
    rows.to_parquet(file)
    plot_batch_sizes(run, tmp_path / "a.png")
    assert drawn[1].axes[0].get_xlim() == (0, 300)
    assert drawn[1].legends[0].get_title().get_text() == ""


def test_where_machines_in_a_micro_cloud_differ_like_ones_share_a_line(tmp_path, drawn):
    run = run_with(tmp_path / "run", 16, 4)
    groups = ((24, 1), (12, 2), (4, 1))
    cloud = [{"count": count, "compute": {"cores": f"{cores} cores"}} for cores, count in groups]
    run.scenario["cluster"] = {"clouds": [{"name": f"cloud-{place}", "workers": cloud} for place in range(4)]}
    plot_batch_sizes(run, tmp_path / "a.png")
    assert names(drawn[0]) == ["24 cores (4)", "12 cores (8)", "4 cores (4)"]
