"""The links' figure: lines where workers are few, maps where they are many, and those that were asked for."""

import numpy as np
import pandas as pd
import pytest

from dlion_sim.errors import InputError
from dlion_sim.figures import plot_links
from dlion_sim.results import Run
from dlion_sim.results.run_folder import SCENARIO
from tests.made_up import made_up_run


def run_of(folder, workers):
    """Of so many workers, in two micro-clouds, the second of which sends by thinner links."""
    east = workers - workers // 3
    made_up_run(folder, workers=workers)
    (folder / SCENARIO).write_text(
        "name: made-up\nduration: 20 s\nworkload: {dataset: digits}\nsystem: dlion\ncluster:\n  clouds:\n"
        f"    - {{name: east, workers: [{{count: {east}, nic: 8 Mbps}}]}}\n"
        f"    - {{name: west, workers: [{{count: {workers // 3}, nic: {{up: 1 Mbps, down: 8 Mbps}}}}]}}\n"
        "  wan: {bandwidth: unlimited, rtt: 10 ms}\n"
    )
    run = Run.open(folder)
    run.manifest["workers"] = [f"east/{n}" for n in range(east)] + [f"west/{n}" for n in range(workers // 3)]
    return run


def maps(figure):
    return {axes.get_title(loc="left"): axes for axes in figure.axes if axes.images and axes.get_title(loc="left")}


def tick_labels(axis):
    return [label.get_text() for label in axis.get_ticklabels()]


def test_few_links_are_lines_over_time(tmp_path, drawn):
    plot_links(run_of(tmp_path / "run", 6), tmp_path / "a.png")
    (figure,) = drawn
    assert len(figure.axes) == 2 * 6
    assert all(len(axes.lines) == 1 for axes in figure.axes)
    assert "highest utilization: uplink of west/0 (80 %)" in figure.legends[0].get_title().get_text()


def all_to_all(folder, workers):
    """The same with links from each to each, which carry the more, the higher both numbers are."""
    run = run_of(folder, workers)
    rows = [(10.0, a, b, 10_000 * (1 + a) * (1 + b), 1, 1, 80.0 + b) for a in range(workers) for b in range(workers)]
    names = ["virtual_time", "sender", "receiver", "bytes", "messages", "gradients", "n_percent"]
    table = pd.DataFrame([row for row in rows if row[1] != row[2]], columns=names)
    old = pd.read_parquet(folder / "links.parquet")
    table.reindex(columns=old.columns).fillna({"seconds": 0}).astype(old.dtypes).to_parquet(folder / "links.parquet")
    return run


def test_many_receivers_share_a_line_per_micro_cloud(tmp_path, drawn):
    plot_links(all_to_all(tmp_path / "run", 6), tmp_path / "a.png")
    names = [text.get_text() for text in drawn[0].legends[0].get_texts()]
    assert names == ["to east (4)", "to west (2)"]
    for axes in drawn[0].axes:
        widths = [line.get_linewidth() for line in axes.lines]
        assert widths == sorted(widths, reverse=True)
        assert len({*widths}) == len(widths) == 2
        assert axes.collections, "there is no band"
    # All N are from 80 to 85 %: an axis from 0 on would show flat lines.
    assert drawn[0].axes[0].get_ylim()[0] > 70
    assert drawn[0].axes[1].get_ylim()[0] == 0


def test_colours_of_maps_span_the_values(tmp_path, drawn):
    plot_links(all_to_all(tmp_path / "run", 16), tmp_path / "a.png")
    found = maps(drawn[0])
    rate, n_percent = (found[name].images[0] for name in ("Mean rate (Mbps)", "N of Max-N, mean (%)"))
    assert (n_percent.norm.vmin, n_percent.norm.vmax) == (80, 95)
    assert (rate.norm.vmin, rate.norm.vmax) == (pytest.approx(0.008), pytest.approx(0.96))
    assert rate.norm(0.08) == pytest.approx(0.48, abs=0.01), "is not logarithmic"
    scales = [tick_labels(axes.xaxis) for axes in drawn[0].axes[3:]]
    assert [(labels[0], labels[-1]) for labels in scales[1:]] == [("0.008", "0.96"), ("80", "95")]
    told = drawn[0].legends[0].get_title().get_text()
    assert "Mean rate (Mbps): 0.008 (east/0 to east/1) to 0.96 (west/3 to west/4)" in told


def test_eleven_workers_are_a_map_with_names(tmp_path, drawn):
    plot_links(run_of(tmp_path / "run", 11), tmp_path / "a.png")
    found = maps(drawn[0])
    assert list(found) == ["Utilization of the fullest NIC or path (%)", "Mean rate (Mbps)", "N of Max-N, mean (%)"]
    names = [f"east/{n}" for n in range(8)] + [f"west/{n}" for n in range(3)]
    assert tick_labels(drawn[0].axes[0].yaxis) == names
    for axes, filled in zip(found.values(), (80, 0.8, 7.5), strict=True):
        assert tick_labels(axes.xaxis) == names
        cells = np.ma.filled(axes.images[0].get_array(), np.nan)
        assert cells.shape == (11, 11)
        assert np.isfinite(cells).sum() == 11
        assert cells[8, 9] == pytest.approx(filled)
        # A line between the two micro-clouds.
        assert [line.get_ydata()[0] for line in axes.lines if len(set(line.get_ydata())) == 1] == [7.5]
    assert np.ma.filled(found["Utilization of the fullest NIC or path (%)"].images[0].get_array(), np.nan)[0, 1] == 10


def test_sixty_four_workers_are_a_map_with_clouds(tmp_path, drawn):
    plot_links(run_of(tmp_path / "run", 64), tmp_path / "a.png")
    axes = maps(drawn[0])["Utilization of the fullest NIC or path (%)"]
    assert tick_labels(axes.xaxis) == tick_labels(axes.yaxis) == ["east", "west"]
    assert axes.images[0].get_array().shape == (64, 64)


def test_a_map_without_known_capacities_has_rates(tmp_path, drawn):
    run = run_of(tmp_path / "run", 11)
    run.manifest["way"] = "live"
    plot_links(run, tmp_path / "a.png")
    assert list(maps(drawn[0])) == ["Mean rate (Mbps)", "N of Max-N, mean (%)"]
    assert "fullest" not in drawn[0].legends[0].get_title().get_text()


def test_senders_and_receivers_are_chosen_by_worker_or_micro_cloud(tmp_path, drawn):
    run = run_of(tmp_path / "run", 12)
    plot_links(run, tmp_path / "a.png", senders=["west", "east/0"])
    assert [axes.get_ylabel() for axes in drawn[0].axes[::2]] == [
        f"from\n{name}" for name in ("east/0", "west/0", "west/1", "west/2", "west/3")
    ]
    plot_links(run, tmp_path / "a.png", receivers=["west/1"])
    assert [axes.get_ylabel() for axes in drawn[1].axes[::2]] == ["from\nwest/0"]
    with pytest.raises(InputError, match=r"`receivers`: there is no worker or micro-cloud 'wset'; allowed: east, west"):
        plot_links(run, tmp_path / "a.png", receivers=["wset"])
    with pytest.raises(InputError, match="has sent nothing from these senders to these receivers"):
        plot_links(run, tmp_path / "a.png", senders=["east/0"], receivers=["east/0"])


def test_links_inside_clouds_are_omitted_unless_chosen(tmp_path, drawn):
    run = made_up_run(tmp_path / "run", workers=4, clouds=("east", "east", "west"))
    plot_links(run, tmp_path / "a.png")
    plot_links(run, tmp_path / "a.png", senders=["east/0"])
    over_wan, chosen = drawn
    assert [axes.get_title(loc="left") for axes in over_wan.axes[:2]] == ["N of Max-N (%)", "Over the WAN (Mbps)"]
    assert [axes.get_ylabel() for axes in over_wan.axes[::2]] == ["from\neast/1", "from\nwest/2"]
    assert "those inside micro-clouds carried 4 MB more" in over_wan.legends[0].get_title().get_text().replace(
        "\n", " "
    )
    assert chosen.axes[1].get_title(loc="left") == "Sent (Mbps)"
    assert [axes.get_ylabel() for axes in chosen.axes[::2]] == ["from\neast/0"]


def test_lines_over_the_wan_exclude_links_inside_clouds(tmp_path, drawn):
    run = made_up_run(tmp_path / "run", workers=4, clouds=("east", "east", "west"))
    links = run.links()
    inside = links[links["sender"] == 2].assign(receiver=2, wan_bytes=0, bytes=5_000_000)
    object.__setattr__(run, "links", lambda: pd.concat([links, inside], ignore_index=True))
    plot_links(run, tmp_path / "a.png")
    of_west = next(axes for axes in drawn[0].axes if axes.get_ylabel() == "from\nwest/2")
    assert len(of_west.lines) == 1
    assert "carried 14 MB more" in drawn[0].legends[0].get_title().get_text().replace("\n", " ")
