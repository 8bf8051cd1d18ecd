"""Curves over time, bytes, iterations and epochs; several seeds as a band, several runs on top of each other."""

import numpy as np
import pytest

from dlion_sim.analysis import group_runs, labelled
from dlion_sim.errors import InputError
from dlion_sim.figures import plot_accuracies
from dlion_sim.metric import PERPLEXITY
from tests.made_up import made_up_run


def lines(figure):
    """By name the points of the lines."""
    names = [text.get_text() for legend in figure.legends for text in legend.get_texts()]
    drawn = [line for axes in figure.axes for line in axes.lines]
    return {
        name: (line.get_xdata().tolist(), line.get_ydata().round(6).tolist())
        for name, line in zip(names or [""], drawn, strict=True)
    }


def notes(figure):
    return [legend.get_title().get_text() for legend in figure.legends]


@pytest.mark.parametrize(
    ("progress", "places", "label"),
    [
        ("time", [0, 10, 20], "Virtual time (s)"),
        ("bytes", [0, 2, 4], "Sent over the LAN by all workers (MB)"),
        ("iterations", [0, 10, 20], "Iterations (mean of the workers)"),
        # Each second 8 and 16 samples; from the tenth on 16 and 24, and in the twentieth 24 and 32.
        ("epochs", [0, 2.56, 6.72], "Epochs (samples of all workers / training samples)"),
    ],
)
def test_accuracy_is_over_the_chosen_progress(tmp_path, drawn, progress, places, label):
    run = made_up_run(tmp_path / "run", (0.1, 0.5, 0.8))
    run.manifest["training_samples"] = 100
    plot_accuracies(group_runs([run]), tmp_path / "a.png", progress)
    assert drawn[0].axes[0].get_xlabel() == label
    assert drawn[0].axes[0].get_xlim() == (0, pytest.approx(places[-1]))
    ((x, y),) = lines(drawn[0]).values()
    assert x == pytest.approx(places)
    assert y == [10, 50, 80]


def test_a_wide_range_of_bytes_has_a_logarithmic_axis(tmp_path, drawn):
    few = made_up_run(tmp_path / "a", (0.1, 0.5, 0.8))
    many = made_up_run(tmp_path / "b", (0.1, 0.4, 0.6), system="ako", workers=40)
    plot_accuracies(group_runs([few, many]), tmp_path / "a.png", "bytes")
    axes = drawn[0].axes[0]
    assert axes.get_xscale() == "log"
    assert axes.get_xlim() == (pytest.approx(2), pytest.approx(80))
    assert sorted(tuple(line.get_xdata()) for line in axes.lines) == [(2, 4), (40, 80)]
    drawn[0].draw_without_rendering()
    ticks = [label.get_text() for label in axes.get_xticklabels()]
    assert {"2 MB", "10 MB", "50 MB"} <= {*ticks}, "each says its own unit"
    assert axes.get_xlabel() == "Sent over the LAN by all workers"


def test_perplexities_are_on_a_logarithmic_axis(tmp_path, drawn):
    run = made_up_run(tmp_path / "run", (0.1, 0.5, 0.8))
    run.manifest["metric"] = PERPLEXITY.fields
    plot_accuracies(group_runs([run]), tmp_path / "a.png")
    assert drawn[0].axes[0].get_yscale() == "log"
    assert drawn[0].axes[0].get_ylabel() == "Test perplexity (lower is better)"


def test_epochs_need_the_number_of_samples(tmp_path):
    with pytest.raises(InputError, match="has no number of training samples"):
        plot_accuracies(group_runs([made_up_run(tmp_path / "run")]), tmp_path / "a.png", "epochs")


def test_without_traffic_the_last_accuracy_is_drawn(tmp_path, drawn):
    plot_accuracies(group_runs([made_up_run(tmp_path / "run", workers=1)]), tmp_path / "a.png", "bytes")
    assert lines(drawn[0]) == {"": ([0], [80])}


def test_seeds_are_interpolated_up_to_the_shortest(tmp_path, drawn):
    runs = [made_up_run(tmp_path / "a", (0.1, 0.5, 0.9), seed=0), made_up_run(tmp_path / "b", (0.2, 0.4), seed=1)]
    # As many samples count twice as much.
    for run, samples in zip(runs, (100, 200), strict=True):
        run.manifest["training_samples"] = samples
    plot_accuracies(group_runs(runs), tmp_path / "a.png", "epochs")
    (x, y) = lines(drawn[0])[""]
    assert x == pytest.approx([0, 1.28])
    assert y == pytest.approx([15, 35])
    band = drawn[0].axes[0].collections[0].get_paths()[0].vertices
    assert set(np.round(band[:, 1], 6)) == {10, 20, 30, 40}
    assert notes(drawn[0]) == ["band: minimum to maximum of 2 seeds"]


def test_repeated_seeds_are_counted_as_runs(tmp_path, drawn):
    plot_accuracies(group_runs([made_up_run(tmp_path / name) for name in "ab"]), tmp_path / "a.png")
    assert notes(drawn[0]) == ["band: minimum to maximum of 2 runs"]


def test_single_runs_share_a_panel(tmp_path, drawn):
    runs = [made_up_run(tmp_path / f"b{size}", (0.1, size / 100), extra=f"batch_size: {size}") for size in (8, 16, 32)]
    plot_accuracies(group_runs(runs), tmp_path / "a.png")
    assert {name: y[-1] for name, (_, y) in lines(drawn[0]).items()} == {
        "batch size 8": 8,
        "batch size 16": 16,
        "batch size 32": 32,
    }
    assert drawn[0].axes[0].get_title(loc="left") == "made-up · dlion"
    other = made_up_run(tmp_path / "other", (0.1, 0.5), system="baseline")
    plot_accuracies(group_runs([*runs[:2], other]), tmp_path / "a.png")
    assert len(drawn[1].axes) == 1
    assert {name: y[-1] for name, (_, y) in lines(drawn[1]).items()} == {
        "baseline": 50,
        "dlion, batch size 8": 8,
        "dlion, batch size 16": 16,
    }
    assert len({line.get_color() for line in drawn[1].axes[0].lines}) == 3


def test_labels_of_the_user_replace_others(tmp_path, drawn):
    ours = [made_up_run(tmp_path / f"ours{seed}", seed=seed) for seed in (0, 1)]
    theirs = made_up_run(tmp_path / "theirs", system="baseline", scenario="other")
    groups = [*labelled(group_runs(ours), "ours"), *labelled(group_runs([theirs]), "theirs")]
    plot_accuracies(groups, tmp_path / "a.png")
    assert len(drawn[0].axes) == 1
    assert list(lines(drawn[0])) == ["ours", "theirs"]


def test_large_numbers_are_written_out(tmp_path, drawn):
    plot_accuracies(group_runs([made_up_run(tmp_path / "run", every=600.0)]), tmp_path / "a.png", "iterations")
    drawn[0].axes[0].set_xlim(0, 3_000_000)
    drawn[0].draw_without_rendering()
    ticks = [label.get_text() for label in drawn[0].axes[0].get_xticklabels()]
    assert "1,000,000" in ticks
    assert "0" in ticks


def test_bytes_are_over_the_wan_if_there_is_one(tmp_path, drawn):
    clouds = ("east", "east", "east", "west")  # one link of four goes there, and one back
    run = made_up_run(tmp_path / "run", (0.1, 0.5, 0.8), workers=4, clouds=clouds)
    plot_accuracies(group_runs([run]), tmp_path / "a.png", "bytes")
    assert drawn[0].axes[0].get_xlabel() == "Sent over the WAN by all workers (MB)"
    assert list(drawn[0].axes[0].lines[0].get_xdata()) == [0, 2, 4]


def three_seeds(folder, **about):
    return [made_up_run(folder / f"{seed}", [0.1, 0.5 + 0.1 * seed], seed=seed, **about) for seed in range(3)]


def test_the_band_is_the_range_or_the_interval(tmp_path, drawn):
    groups = group_runs(three_seeds(tmp_path))
    for band in ("range", "interval"):
        plot_accuracies(groups, tmp_path / "a.png", band=band)
    edges = [figure.axes[0].collections[0].get_paths()[0].vertices[:, 1] for figure in drawn]
    assert (edges[0].min(), edges[0].max()) == (pytest.approx(10), pytest.approx(70))
    half = 10 * 4.303 / 3**0.5  # Student's t of two degrees of freedom
    assert edges[1].max() == pytest.approx(60 + half, abs=0.01)
    assert [notes(figure) for figure in drawn] == [
        ["band: minimum to maximum of 3 seeds"],
        ["band: 95 % interval of the mean of 3 seeds"],
    ]


def test_an_interval_counts_a_repeated_simulation_once(tmp_path, drawn):
    again = made_up_run(tmp_path / "again", [0.1, 0.5], seed=0)
    plot_accuracies(group_runs([*three_seeds(tmp_path), again]), tmp_path / "a.png", band="interval")
    assert drawn[0].axes[0].lines[0].get_ydata()[-1] == pytest.approx(60)
    assert "of 3" in notes(drawn[0])[0]


UNLIKE = ("workload: {dataset: digits, model: mlp}\n", "workload: {dataset: {name: cifar10}, model: cipher}\n")


def test_different_workloads_have_their_own_panels(tmp_path, drawn):
    runs = [made_up_run(tmp_path / f"{number}", extra=extra) for number, extra in enumerate(UNLIKE)]
    plot_accuracies(group_runs(runs), tmp_path / "a.png")
    titles = [axes.get_title(loc="left") for axes in drawn[0].axes]
    assert titles == ["made-up · dlion, digits mlp", "made-up · dlion, cifar10 cipher"]


def test_labelled_runs_of_different_workloads_share_a_panel(tmp_path, drawn):
    ours, theirs = (
        made_up_run(tmp_path / name, extra=extra, scenario=name) for name, extra in zip("ab", UNLIKE, strict=True)
    )
    plot_accuracies(
        [*labelled(group_runs([ours]), "ours"), *labelled(group_runs([theirs]), "theirs")], tmp_path / "a.png"
    )
    assert [axes.get_title(loc="left") for axes in drawn[0].axes] == ["a, b · dlion"]
    assert notes(drawn[0]) == ["different workloads: digits mlp (ours), cifar10 cipher (theirs)"]
