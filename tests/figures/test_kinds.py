"""Every kind of figure, from made-up runs: its words, its bytes, and what it refuses."""

from functools import partial

import matplotlib
import pytest

from dlion_sim import figures
from dlion_sim.analysis import group_runs
from dlion_sim.errors import InputError
from tests.made_up import made_up_run

ACCURACIES = {"baseline": (0.1, 0.3, 0.6), "dlion": (0.1, 0.6, 0.9)}


@pytest.fixture
def groups(tmp_path):
    """Two systems at two bandwidths, two seeds each."""
    return group_runs(
        [
            made_up_run(
                tmp_path / f"{system}-{bandwidth}-{seed}",
                [accuracy * (1 - 0.1 * seed) for accuracy in ACCURACIES[system]],
                system=system,
                seed=seed,
                extra=bandwidth,
                point={"cluster.wan.bandwidth": bandwidth, "system": system, "seed": str(seed)},
            )
            for system in ACCURACIES
            for bandwidth in ("5 Mbps", "20 Mbps")
            for seed in (0, 1)
        ]
    )


KINDS = {
    "accuracies": partial(figures.plot_accuracies),
    "accuracy_at": partial(figures.plot_accuracy_at, time=10.0),
    "time_to_accuracy": partial(figures.plot_time_to_accuracy, target=0.5),
    "deviation": partial(figures.plot_deviation),
    "heatmap": partial(figures.plot_heatmap, quantity="speedup", target=0.5),
}
KINDS_OF_ONE = {
    "batch_sizes": figures.plot_batch_sizes,
    "links": figures.plot_links,
    "timeline": figures.plot_timeline,
}
WORDS = {
    "accuracies": ["made-up, bandwidth 5 Mbps", "bandwidth 20 Mbps", "Test accuracy (%)", "Virtual time (s)", "dlion"],
    "accuracy_at": ["after 10 s", "bandwidth 20 Mbps", "baseline", "57"],
    "time_to_accuracy": ["Time to 50%", "Speed-up over", ">2<", "bandwidth 5 Mbps"],
    "deviation": ["percentage points"],
    "heatmap": ["2.00", "bandwidth", "system", "Speed-up over Baseline"],
    "batch_sizes": ["Global batch", "Local batch", "east/1", "made-up · dlion"],
    "links": ["N of Max-N (%)", "Sent (Mbps)", "from", "east/0", "to east/1"],
    "timeline": ["computing", "waiting", "sending (full colour: 0.8 Mbps)", "east/1", "Virtual time (s)"],
}


def draw(kind, groups, file):
    if kind in KINDS:
        return KINDS[kind](groups, file)
    return KINDS_OF_ONE[kind](groups[1].runs[0], file)


@pytest.mark.parametrize("kind", WORDS)
def test_the_words_say_what_is_shown(groups, tmp_path, kind):
    with matplotlib.rc_context({"svg.fonttype": "none"}):
        svg = draw(kind, groups, tmp_path / "figure.svg").read_text()
    for words in WORDS[kind]:
        assert words in svg


@pytest.mark.parametrize("kind", KINDS)
def test_the_words_say_on_what_accuracies_were_measured(groups, tmp_path, kind):
    for group in groups:
        for run in group.runs:
            run.manifest["evaluated_on"] = "validation"
    with matplotlib.rc_context({"svg.fonttype": "none"}):
        svg = draw(kind, groups, tmp_path / "figure.svg").read_text()
    assert "validation accuracy" in svg.lower()
    assert "test accuracy" not in svg.lower()


@pytest.mark.parametrize(
    ("kind", "suffix", "head"),
    [("accuracies", ".png", b"\x89PNG"), ("timeline", ".pdf", b"%PDF"), ("links", ".svg", b"<")],
)
def test_every_format_is_written_and_the_same_each_time(groups, tmp_path, kind, suffix, head):
    first, second = (draw(kind, groups, tmp_path / f"{name}{suffix}").read_bytes() for name in "ab")
    assert first == second
    assert first.startswith(head)


def test_what_was_never_reached_is_said(groups, tmp_path):
    with matplotlib.rc_context({"svg.fonttype": "none"}):
        svg = figures.plot_time_to_accuracy(groups, tmp_path / "figure.svg", 0.85).read_text()
    assert svg.count("not reached") == 2
    assert "Speed-up" not in svg


def test_runs_without_rows_have_figures_too(tmp_path):
    groups = group_runs([made_up_run(tmp_path / "run", (), every=0.0, status="interrupted")])
    for kind in ("accuracies", "deviation"):
        assert KINDS[kind](groups, tmp_path / "figure.png").exists()
    figures.plot_batch_sizes(groups[0].runs[0], tmp_path / "figure.png")
    with pytest.raises(InputError, match="has sent nothing"):
        figures.plot_links(groups[0].runs[0], tmp_path / "figure.png")
    with pytest.raises(InputError, match="no worker did anything"):
        figures.plot_timeline(groups[0].runs[0], tmp_path / "figure.png")


def test_a_timelines_window_can_be_chosen(groups, tmp_path):
    run = groups[0].runs[0]
    figures.plot_timeline(run, tmp_path / "figure.png", 3.0, 5.0)
    with pytest.raises(InputError, match="no worker did anything from 50 s to 60 s"):
        figures.plot_timeline(run, tmp_path / "figure.png", 50.0, 60.0)


def test_a_heat_map_needs_two_labels_that_tell_all_apart(groups, tmp_path):
    file = tmp_path / "figure.png"
    with pytest.raises(InputError, match="--x seed: the runs don't differ in that"):
        figures.plot_heatmap(groups, file, "accuracy", 0.5, x="seed")
    with pytest.raises(InputError, match="differ in nothing but their seeds"):
        figures.plot_heatmap(groups[:1], file, "accuracy", 0.5)
    assert figures.plot_heatmap(groups, file, "bytes", 0.5, x="system", y="cluster.wan.bandwidth") == file
    assert figures.plot_heatmap(groups[:2], file, "time", 0.5) == file


def test_many_bars_take_both_columns(tmp_path):
    groups = group_runs(
        made_up_run(tmp_path / str(number), extra=str(number), point={"workload.batch_size": str(number)})
        for number in range(30)
    )
    wide = matplotlib.image.imread(figures.plot_accuracy_at(groups, tmp_path / "wide.png", 10.0))
    assert wide.shape[1] == int(7.16 * 300)
    # More links than can be told apart.
    run = made_up_run(tmp_path / "many", workers=20)
    assert figures.plot_links(run, tmp_path / "links.png").exists()
