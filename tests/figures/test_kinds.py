"""Every kind of figure, from made-up runs: its words, its bytes, and what it refuses."""

import math
from functools import partial
from pathlib import Path

import matplotlib
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.text import Text

from dlion_sim import figures
from dlion_sim.analysis import group_runs
from dlion_sim.errors import InputError
from dlion_sim.figures.timeline import PROFILE, SEND, WAIT
from dlion_sim.figures.trade_off import Place, front
from dlion_sim.metric import ACCURACY, PERPLEXITY
from dlion_sim.results import MetricsRow, Run, RunWriter, TransfersRow
from tests.made_up import made_up_run

ACCURACIES = {"baseline": (0.1, 0.3, 0.6), "dlion": (0.1, 0.6, 0.9)}


def two_systems(folder, *, lossy=False, streamed=False):
    """At two bandwidths, two seeds each."""
    return group_runs(
        [
            made_up_run(
                folder / f"{system}-{bandwidth}-{seed}",
                [accuracy * (1 - 0.1 * seed) for accuracy in ACCURACIES[system]],
                system=system,
                seed=seed,
                extra=bandwidth,
                lossy=lossy,
                streamed=streamed,
                point={"cluster.wan.bandwidth": bandwidth, "system": system, "seed": str(seed)},
            )
            for system in ACCURACIES
            for bandwidth in ("5 Mbps", "20 Mbps")
            for seed in (0, 1)
        ]
    )


@pytest.fixture
def groups(tmp_path):
    return two_systems(tmp_path)


KINDS = {
    "accuracies": partial(figures.plot_accuracies),
    "accuracy_at": partial(figures.plot_accuracy_at, time=10.0),
    "time_to_accuracy": partial(figures.plot_time_to_accuracy, target=0.5),
    "deviation": partial(figures.plot_deviation),
    "heatmap": partial(figures.plot_heatmap, quantity="speedup", target=0.5),
    "completion_times": figures.plot_completion_times,
    "online": figures.plot_online,
    "trade_off": figures.plot_trade_off,
}
KINDS_OF_ONE = {
    "batch_sizes": figures.plot_batch_sizes,
    "links": figures.plot_links,
    "queues": figures.plot_queues,
    "timeline": figures.plot_timeline,
}
OF_PACKETS = {"completion_times", "queues"}
OF_STREAMS = {"online"}
WORDS = {
    "accuracies": [
        "band: minimum to maximum of 2 seeds",
        "made-up, bandwidth 5 Mbps",
        "bandwidth 20 Mbps",
        "Test accuracy (%)",
        "Virtual time (s)",
        "dlion",
    ],
    "accuracy_at": ["whiskers: minimum to maximum of 2 seeds", "after 10 s", "bandwidth 20 Mbps", "baseline", "57"],
    "time_to_accuracy": ["crossed: a bound", "Time to 50 %", "Speed-up over", "bandwidth 5 Mbps"],
    "deviation": ["band: minimum to maximum of 2 seeds", "percentage points"],
    "heatmap": ["2.00", "bandwidth", "system", "Speed-up over Baseline"],
    "completion_times": [
        "bandwidth 5 Mbps, baseline: mean 105, p50 105, p99 200 ms",
        "made-up, bandwidth 5 Mbps",
        "Messages (%)",
        "Completion time (ms)",
    ],
    "online": ["Online accuracy (%)", "class 1 comes", "rotation, labels shift", "band: minimum to maximum of 2 seeds"],
    "trade_off": [
        "Test accuracy (%)",
        "Sent over the LAN by all workers (",
        "95 % interval of 2 seeds",
        "bandwidth 5 Mbps",
        "dlion",
    ],
    "batch_sizes": ["Global batch", "Local batch", "east/1", "made-up · dlion"],
    "links": ["N of Max-N (%)", "Sent (Mbps)", "from", "east/0", "to east/1"],
    "queues": ["east/1 down", "all 3 links", "Queued (kB)", "Virtual time (s)", "dropped (630 in all)", "marked (120"],
    "timeline": ["computing", "waiting", "sending (full colour: 0.8 Mbps)", "east/1", "Virtual time (s)"],
}


def draw(kind, groups, file):
    if kind in KINDS:
        return KINDS[kind](groups, file)
    return KINDS_OF_ONE[kind](groups[1].runs[0], file)


@pytest.mark.parametrize("kind", WORDS)
def test_labels_are_written(tmp_path, kind):
    groups = two_systems(tmp_path, lossy=kind in OF_PACKETS, streamed=kind in OF_STREAMS)
    with matplotlib.rc_context({"svg.fonttype": "none"}):
        svg = draw(kind, groups, tmp_path / "figure.svg").read_text()
    for words in WORDS[kind]:
        assert words in svg


@pytest.mark.parametrize("kind", sorted(KINDS.keys() - OF_PACKETS - OF_STREAMS))
def test_the_evaluation_set_is_named(groups, tmp_path, kind):
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
def test_every_format_is_reproducible(groups, tmp_path, kind, suffix, head):
    first, second = (draw(kind, groups, tmp_path / f"{name}{suffix}").read_bytes() for name in "ab")
    assert first == second
    assert first.startswith(head)


def test_missed_targets_are_bounds(groups, tmp_path):
    with matplotlib.rc_context({"svg.fonttype": "none"}):
        svg = figures.plot_time_to_accuracy(groups, tmp_path / "figure.svg", 0.85).read_text()
    assert svg.count("&gt; 20") == 4
    assert "crossed: a bound, as not all seeds reached it" in svg
    assert "Speed-up" not in svg


def heights(axes):
    return [patch.get_height() for patch in axes.patches]


def test_bars_count_missed_targets_with_the_end_of_the_run(tmp_path, drawn):
    accuracies = [(0.1, 0.1, 0.6, 0.6), (0.1, 0.1, 0.1, 0.1)]
    runs = [made_up_run(tmp_path / f"d{seed}", each, seed=seed) for seed, each in enumerate(accuracies)]
    runs += [made_up_run(tmp_path / f"b{seed}", accuracies[0], system="baseline", seed=seed) for seed in (0, 1)]
    figures.plot_time_to_accuracy(group_runs(runs), tmp_path / "figure.png", 0.5)
    figures.plot_time_to_accuracy(group_runs(runs[2:]), tmp_path / "figure.png", 0.5)
    times, speedups = drawn[0].axes
    # Baseline has its colour by itself too.
    assert times.patches[0].get_facecolor() == drawn[1].axes[0].patches[0].get_facecolor() == (0, 0, 0, 1)
    assert heights(times) == [20, 25]
    assert [patch.get_hatch() for patch in times.patches] == [None, "xxxxx"]
    assert heights(speedups) == pytest.approx([1, math.sqrt(2 / 3)])
    assert [text.get_text() for text in speedups.texts] == ["1", "< 0.816"]


@pytest.mark.parametrize(("metric", "best"), [(ACCURACY, [(1, 5), (3, 7), (4, 8)]), (PERPLEXITY, [(1, 3)])])
def test_the_front_is_not_dominated(metric, best):
    places = [Place(*place) for place in [(4, 7), (1, 5), (3, 7), (1, 3), (2, 4), (4, 8), (9, 8)]]
    assert [(place.sent, place.value) for place in front(places, metric)] == best


def test_heat_maps_hatch_bounds(groups, tmp_path):
    with matplotlib.rc_context({"svg.fonttype": "none"}):
        svg = figures.plot_heatmap(groups, tmp_path / "figure.svg", "time", 0.75).read_text()
    assert svg.count("&gt; 20") == 2
    assert "hatched: a bound, as not all seeds reached it" in svg


def test_labels_name_replaced_choices_and_missing_exchanges(tmp_path):
    runs = [
        made_up_run(tmp_path / "a", system="baseline", replaced={"exchange": "gossip:Gossip"}),
        made_up_run(tmp_path / "b", system="diloco", exchanging=False),
    ]
    with matplotlib.rc_context({"svg.fonttype": "none"}):
        together = figures.plot_accuracies(group_runs(runs), tmp_path / "a.svg").read_text()
        alone = figures.plot_accuracies(group_runs(runs[1:]), tmp_path / "b.svg").read_text()
        one = figures.plot_timeline(runs[0], tmp_path / "c.svg").read_text()
    assert "baseline, exchange gossip:Gossip" in together
    assert "diloco (no exchange)" in together
    assert "band" not in together
    assert "diloco (no exchange)" in alone
    assert "made-up · baseline, exchange gossip:Gossip" in one


def test_parts_of_messages_are_drawn_for_one_environment(tmp_path):
    groups = two_systems(tmp_path, lossy=True)
    of_one = [group for group in groups if group.labels["cluster.wan.bandwidth"] == "5 Mbps"]
    with matplotlib.rc_context({"svg.fonttype": "none"}):
        one = figures.plot_completion_times(of_one, tmp_path / "one.svg").read_text()
        several = figures.plot_completion_times(groups, tmp_path / "several.svg").read_text()
    for words in ("Missing (%)", "within (ms)", "push", "weight", "large entries", "small entries"):
        assert words in one
        assert words not in several


def test_unknown_times_of_parts_are_left_out(tmp_path, drawn):
    """As in live runs."""
    run = made_up_run(tmp_path / "run", lossy=True)
    file = tmp_path / "run" / "parts.parquet"
    pd.read_parquet(file).assign(seconds=float("nan")).to_parquet(file)
    figures.plot_completion_times(group_runs([run]), tmp_path / "figure.png")
    assert [axes.get_ylabel() for axes in drawn[0].axes] == ["Messages (%)", "Missing (%)"]
    large, small = (line.get_ydata().tolist() for line in drawn[0].axes[1].lines)
    assert (large, small) == ([0, 0], [20, 20])


def test_lines_are_transports_and_panels_environments(tmp_path, drawn):
    runs = [
        made_up_run(
            tmp_path / f"{transport}-{bandwidth}",
            transport=transport,
            extra=f"{bandwidth}\n",
            point={"cluster.wan.bandwidth": bandwidth},
            lossy=True,
        )
        for transport in ("dlcp", "reliable")
        for bandwidth in ("5 Mbps", "20 Mbps")
    ]
    figures.plot_completion_times(group_runs(runs), tmp_path / "figure.png")
    titles = [axes.get_title(loc="left") for axes in drawn[0].axes]
    assert titles == ["made-up · dlion, bandwidth 5 Mbps", "made-up · dlion, bandwidth 20 Mbps"]
    assert [text.get_text() for text in drawn[0].legends[0].get_texts()] == ["dlcp", "reliable"]


def test_completion_times_are_a_distribution(tmp_path, drawn):
    figures.plot_completion_times(group_runs([made_up_run(tmp_path / "run", lossy=True)]), tmp_path / "figure.png")
    steps, dots = drawn[0].axes[0].lines
    assert steps.get_xdata()[[0, -1]].tolist() == pytest.approx([10, 200])
    assert steps.get_ydata()[[0, -1]].tolist() == [2.5, 100]
    assert dots.get_xdata().tolist() == pytest.approx([105, 200])


@pytest.mark.parametrize(("often", "scale", "limits"), [(1, "linear", (0, 9.555)), (100, "linear", (0, 9.555))])
def test_similar_completion_times_have_a_linear_axis(tmp_path, drawn, often, scale, limits):
    run = made_up_run(tmp_path / "run", lossy=True)
    file = tmp_path / "run" / "transfers.parquet"
    rows = pd.concat([pd.read_parquet(file)] * often)
    rows["end"] = rows["delivered"] = rows["begin"] + np.linspace(9.0e-3, 9.1e-3, len(rows))
    if often > 1:
        rows.iloc[0, rows.columns.get_indexer(["end", "delivered"])] = rows["begin"].iloc[0] + 1e-6
    rows.to_parquet(file)
    figures.plot_completion_times(group_runs([run]), tmp_path / "figure.png")
    axes = drawn[0].axes[0]
    assert axes.get_xscale() == scale
    assert axes.get_xlim() == pytest.approx(limits)


def test_a_logarithmic_axis_omits_the_shortest_hundredth(tmp_path, drawn):
    run = made_up_run(tmp_path / "run", lossy=True)
    file = tmp_path / "run" / "transfers.parquet"
    rows = pd.concat([pd.read_parquet(file)] * 10, ignore_index=True)
    rows["delivered"] = rows["begin"] + np.where(np.arange(len(rows)) < 3, 1e-6, np.linspace(0.01, 0.1, len(rows)))
    rows["end"] = rows["delivered"]
    rows.to_parquet(file)
    figures.plot_completion_times(group_runs([run]), tmp_path / "figure.png")
    axes = drawn[0].axes[0]
    assert axes.get_xscale() == "log"
    assert axes.get_xlim()[0] > 8
    assert "not shown: up to 1 %" in drawn[0].legends[0].get_title().get_text()


def test_runs_without_rows_are_drawn_or_refused(tmp_path):
    groups = group_runs([made_up_run(tmp_path / "run", (), every=0.0, status="interrupted")])
    for kind in ("accuracies", "deviation"):
        assert KINDS[kind](groups, tmp_path / "figure.png").exists()
    figures.plot_batch_sizes(groups[0].runs[0], tmp_path / "figure.png")
    with pytest.raises(InputError, match="has sent nothing"):
        figures.plot_links(groups[0].runs[0], tmp_path / "figure.png")
    with pytest.raises(InputError, match="has no record of messages"):
        figures.plot_completion_times(groups, tmp_path / "figure.png")
    with pytest.raises(InputError, match="has no queues"):
        figures.plot_queues(groups[0].runs[0], tmp_path / "figure.png")
    with pytest.raises(InputError, match="no worker did anything"):
        figures.plot_timeline(groups[0].runs[0], tmp_path / "figure.png")


def test_the_window_of_a_timeline_can_be_chosen(groups, tmp_path):
    run = groups[0].runs[0]
    figures.plot_timeline(run, tmp_path / "figure.png", 3.0, 5.0)
    with pytest.raises(InputError, match="no worker did anything from 50 s to 60 s"):
        figures.plot_timeline(run, tmp_path / "figure.png", 50.0, 60.0)


def drawn_bars(monkeypatch, run, *window):
    """Begin, end and top of each bar, by colour."""
    figures_drawn = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, *_, **__: figures_drawn.append(figure))
    figures.plot_timeline(run, Path("figure.png"), *window)
    bars = {}
    for collection in figures_drawn[0].axes[0].collections:
        for path, edge in zip(collection.get_paths(), collection.get_linewidths(), strict=True):
            box = path.get_extents()
            bars.setdefault(to_hex(collection.get_facecolor()[0]), []).append((box.x0, box.x1, box.y0, box.y1, edge))
    return bars


def of_one_worker(folder, *rows, transfers=()):
    writer = RunWriter.create(folder, scenario_yaml="", manifest={"workers": ["a/0"]})
    for row in rows:
        writer.append(row)
    for row in transfers:
        writer.append(row)
    writer.finish({"status": "completed"})
    return Run.open(folder)


def test_timelines_have_profiling_unfinished_waits_and_lanes(tmp_path, monkeypatch):
    rows = [
        MetricsRow(2.0, 0.0, 0, "profile", 0, compute_seconds=2.0, wait_seconds=0.0),
        MetricsRow(50.0, 0.0, 0, "unfinished", 1, compute_seconds=3.0, wait_seconds=45.0),
    ]
    sent = [
        TransfersRow(begin, end, 0, 1, "data", "contribution", 9)
        for begin, end in ((5, 35), (6, 10), (20, 21), (40, None))
    ]
    run = of_one_worker(tmp_path / "run", *rows, transfers=sent)
    bars = drawn_bars(monkeypatch, run, 0.0, 50.0)
    assert [bar[:2] for bar in bars[PROFILE.lower()]] == [(0, 2)]
    assert [bar[:2] for bar in bars[WAIT.lower()]] == [(5, 50)]
    lanes = {}
    for begin, end, top, *_ in bars[SEND.lower()]:
        lanes.setdefault(round(top, 6), []).append((begin, end))
    assert [lanes[top] for top in sorted(lanes)] == [[(5, 35), (40, 50)], [(6, 10), (20, 21)]]
    monkeypatch.undo()
    with matplotlib.rc_context({"svg.fonttype": "none"}):
        svg = figures.plot_timeline(run, tmp_path / "figure.svg", 0.0).read_text()
    assert "profiling" in svg
    assert "sending, a line for each message" in svg


def test_heat_maps_need_two_distinguishing_labels(groups, tmp_path):
    file = tmp_path / "figure.png"
    with pytest.raises(InputError, match="`x` seed: the runs don't differ in that"):
        figures.plot_heatmap(groups, file, "accuracy", 0.5, x="seed")
    with pytest.raises(InputError, match="differ in nothing but their seeds"):
        figures.plot_heatmap(groups[:1], file, "accuracy", 0.5)
    assert figures.plot_heatmap(groups, file, "bytes", 0.5, x="system", y="cluster.wan.bandwidth") == file
    assert figures.plot_heatmap(groups[:2], file, "time", 0.5) == file


def test_many_bars_are_drawn_across_both_columns(tmp_path):
    groups = group_runs(
        made_up_run(tmp_path / str(number), extra=str(number), point={"workload.batch_size": str(number)})
        for number in range(30)
    )
    wide = matplotlib.image.imread(figures.plot_accuracy_at(groups, tmp_path / "wide.png", 10.0))
    assert wide.shape[1] == int(7.16 * 300)
    # More links than can be told apart.
    run = made_up_run(tmp_path / "many", workers=20)
    assert figures.plot_links(run, tmp_path / "links.png").exists()


def test_figures_of_bytes_are_over_the_wan(tmp_path, drawn):
    """Two of three links cross the WAN; DLion's workers are in one micro-cloud."""
    runs = [
        made_up_run(tmp_path / "a", system="ako", workers=3, clouds=("east", "east", "west")),
        made_up_run(tmp_path / "d", workers=3),
    ]
    groups = group_runs(runs)
    figures.plot_trade_off(groups, tmp_path / "a.png")
    figures.plot_heatmap(groups, tmp_path / "a.png", "bytes", 0.5)
    trade_off, heatmap = drawn
    assert {text.get_text() for text in trade_off.findobj(Text)} >= {"Sent over the WAN by all workers (MB)"}
    assert {text.get_text() for text in heatmap.findobj(Text)} >= {"Sent over the WAN by all workers (MB)"}
    assert sorted(np.asarray(heatmap.axes[0].images[0].get_array()).ravel()) == [0, 4]


def test_runs_without_an_exchange_and_diverged_runs_are_not_on_the_front(tmp_path, drawn):
    """They may have sent nothing."""
    runs = [
        made_up_run(tmp_path / "a", (0.1, 0.7, 0.7), system="diloco", exchanging=False),
        made_up_run(tmp_path / "b", (0.1, 0.1, 0.1), system="ako", diverged=True),
        made_up_run(tmp_path / "c", (0.1, 0.9, 0.9), workers=3),
    ]
    figures.plot_trade_off(group_runs(runs), tmp_path / "a.png")
    (legend,) = drawn[0].legends
    assert {text.get_text() for text in legend.get_texts()} == {
        "diloco (no exchange)",
        "ako (diverged)",
        "dlion",
    }
    assert "Pareto" not in legend.get_title().get_text()


def test_incomplete_groups_are_noted(tmp_path, drawn):
    runs = [made_up_run(tmp_path / "a", status="interrupted"), made_up_run(tmp_path / "b", system="ako")]
    figures.plot_trade_off(group_runs(runs), tmp_path / "a.png")
    figures.plot_trade_off(group_runs(runs[1:]), tmp_path / "b.png")
    told = [figure.legends[0].get_title().get_text() if figure.legends else "" for figure in drawn]
    assert ["not shown: 1 of 2 groups without a completed run" in text for text in told] == [True, False]
