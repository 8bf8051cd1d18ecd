"""Bands of outages in figures."""

import pytest
from matplotlib.patches import Rectangle

from dlion_sim.analysis import group_runs
from dlion_sim.figures import plot_accuracies, plot_accuracy, plot_deviation, plot_links, plot_online, plot_timeline
from tests.made_up import made_up_run

GREY = (0.86, 0.86, 0.86, 1.0)


def bands(axes):
    """From when to when."""
    spans = [patch for patch in axes.patches if isinstance(patch, Rectangle) and patch.get_facecolor() == GREY]
    return [(band.get_x(), band.get_x() + band.get_width()) for band in spans]


def words(figure):
    return [text.get_text() for legend in figure.legends for text in legend.get_texts()]


def test_outages_are_bands_with_one_legend_entry(tmp_path, drawn):
    run = made_up_run(tmp_path / "run", absent=True)
    run.manifest["paths_down"] = [{"sender": "east", "receiver": "west", "begin": 18.0, "end": None}]
    plot_accuracy(run, tmp_path / "a.png")
    assert [bands(axes) for axes in drawn[0].axes] == [[(1, 3), (18, 20)]] * 2
    assert words(drawn[0]) == ["east/0", "east/1", "down"]


def test_without_outages_there_are_no_bands(tmp_path, drawn):
    plot_accuracy(made_up_run(tmp_path / "run"), tmp_path / "a.png")
    assert [bands(axes) for axes in drawn[0].axes] == [[], []]
    assert words(drawn[0]) == ["east/0", "east/1"]


@pytest.mark.parametrize("plot", [plot_accuracies, plot_deviation])
@pytest.mark.parametrize("others_too", [True, False])
def test_a_panel_has_the_common_bands_of_its_runs(tmp_path, drawn, plot, others_too):
    runs = [
        made_up_run(
            tmp_path / f"{system}-{rtt}",
            system=system,
            extra=rtt,
            point={"cluster.wan.rtt": rtt, "system": system},
            absent=absent,
        )
        for system, absent in (("baseline", True), ("dlion", others_too))
        for rtt in ("1 ms", "2 ms")
    ]
    plot(group_runs(runs), tmp_path / "a.png")
    assert [bands(axes) for axes in drawn[0].axes] == [[(1, 3)] * others_too] * 2
    assert words(drawn[0])[2:] == ["down"] * others_too


def test_bands_are_only_over_time_without_a_stream(tmp_path, drawn):
    groups = group_runs([made_up_run(tmp_path / "run", absent=True, streamed=True)])
    plot_accuracies(groups, tmp_path / "a.png", "iterations")
    plot_online(groups, tmp_path / "a.png")
    assert all(not bands(figure.axes[0]) for figure in drawn)


def test_timelines_have_bands_in_rows(tmp_path, drawn):
    run = made_up_run(tmp_path / "run", absent=True)
    for window in (0.0, 10.0), (2.0, 2.5), (5.0, 10.0):
        plot_timeline(run, tmp_path / "a.png", *window)
    shaded = [
        path.get_extents()
        for figure in drawn
        for bars in figure.axes[0].collections
        if tuple(bars.get_facecolor()[0]) == GREY
        for path in bars.get_paths()
    ]
    assert [(box.x0, box.x1, box.y0) for box in shaded] == [(1, 3, 0), (2, 2.5, 0)]
    assert 0.5 < shaded[0].y1 < 1
    assert ["down" in words(figure) for figure in drawn] == [True, True, False]


def test_rows_of_links_have_bands_of_sender_and_paths(tmp_path, drawn):
    run = made_up_run(tmp_path / "run", workers=3, absent=True)
    run.manifest["clouds"] = ["east", "east", "west"]
    run.manifest["paths_down"] = [
        {"sender": sender, "receiver": receiver, "begin": begin, "end": begin + 2}
        for sender, receiver, begin in (("east", "west", 5.0), ("west", "east", 12.0), ("west", "south", 15.0))
    ]
    plot_links(run, tmp_path / "a.png", senders=["east"])
    of_rows = [(1, 3), (5, 7)], [(5, 7)], [(12, 14)]
    assert [bands(axes) for axes in drawn[0].axes] == [each for each in of_rows for _ in range(2)]
    assert words(drawn[0])[-1] == "down"


def test_an_idle_interval_of_a_link_is_zero(tmp_path, drawn):
    run = made_up_run(tmp_path / "run")
    links = run.links()
    object.__setattr__(run, "links", lambda: links.query("sender == 0 or virtual_time < 20"))
    plot_links(run, tmp_path / "a.png")
    rates = [axes.lines[0].get_xydata().tolist() for axes in drawn[0].axes[1::2]]
    assert rates == [[[10, 0.8], [20, 0.8]], [[10, 0.8], [20, 0]]]
