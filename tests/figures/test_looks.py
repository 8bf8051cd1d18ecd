"""A system has the same look in every figure."""

from itertools import combinations

import numpy as np
import pytest
from matplotlib.colors import to_hex, to_rgb

from dlion_sim import figures
from dlion_sim.analysis import group_runs
from dlion_sim.figures.looks import system_look, system_looks
from dlion_sim.protocol.systems import SYSTEMS
from tests.made_up import made_up_run

GOSSIP = {"exchange": "gossip:Gossip"}

# Machado et al. (2009), severity 1, on linear RGB.
SEEN_BY = {
    "everyone": np.eye(3),
    "protanopes": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopes": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopes": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
LMS = [
    [0.4122214708, 0.5363325363, 0.0514459929],
    [0.2119034982, 0.6806995451, 0.1073969566],
    [0.0883024619, 0.2817188376, 0.6299787005],
]
OKLAB = [
    [0.2104542553, 0.7936177850, -0.0040720468],
    [1.9779984951, -2.4285922050, 0.4505937099],
    [0.0259040371, 0.7827717662, -0.8086757660],
]


def oklab(colour, seen):
    rgb = np.array(to_rgb(colour))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return OKLAB @ np.cbrt(LMS @ np.clip(seen @ linear, 0, 1))


OWN = [
    "mine",
    "yours",
    "baseline, exchange gossip:Gossip",
    "dlion, weights share",
    "dlion, period 20",
    "gaia, period 9",
]
ALL = [*SYSTEMS, *OWN]
NOTICED = {"everyone": 0.09, "protanopes": 0.055, "deuteranopes": 0.055, "tritanopes": 0.055}
"""Distances in Oklab, of which 0.02 is just noticeable side by side."""


@pytest.mark.parametrize("reader", SEEN_BY)
def test_colours_are_distinct_for_all_kinds_of_vision(reader):
    seen = {label: oklab(look.colour, np.array(SEEN_BY[reader])) for label, look in looks(ALL).items()}
    apart = {(one, other): np.linalg.norm(seen[one] - seen[other]) for one, other in combinations(ALL, 2)}
    assert {pair: distance for pair, distance in apart.items() if distance < NOTICED[reader]} == {}


@pytest.mark.parametrize("label", ALL)
def test_colours_are_visible_on_white_and_grey(label):
    lightness, *hue = oklab(looks(ALL)[label].colour, np.eye(3))
    assert lightness < 0.81
    assert lightness < 0.7 or np.hypot(*hue) > 0.08 or label == "local_sgd"


def looks(labels):
    return dict(zip(labels, system_looks(labels), strict=True))


def test_dashes_and_markers_are_distinct():
    assert len({(str(look.dashes), look.marker, look.filled) for look in system_looks(ALL)}) == len(ALL)


def test_own_systems_have_other_looks_than_named_ones():
    named, own = system_looks(list(SYSTEMS)), system_looks(OWN)
    for part in ("colour", "dashes"):
        assert not {str(getattr(look, part)) for look in own} & {str(getattr(look, part)) for look in named}
    assert not {(look.marker, look.filled) for look in own} & {(look.marker, look.filled) for look in named}


@pytest.mark.parametrize("count", [2, 6, 18, 100])
def test_looks_are_distinct_for_many_systems(count):
    labels = [f"system {number}" for number in range(count)]
    own = system_looks(labels)
    assert len(set(own)) == count
    assert len({look.colour for look in own}) == min(count, 6)
    assert len({str((look.colour, look.dashes)) for look in own}) == min(count, 18)
    assert system_looks(labels[::-1]) == own[::-1]


def test_a_replaced_choice_gives_a_hollow_marker():
    own = system_looks(["baseline, exchange gossip:Gossip", "dlion, weights share", "mine"])
    assert [look.marker for look in own[:2]] == [system_look(name).marker for name in ("baseline", "dlion")]
    assert [look.filled for look in own] == [False, False, True]


def line_looks(axes):
    return [(to_hex(line.get_color()), line.get_marker()) for line in axes.lines]


def test_looks_do_not_depend_on_other_lines(tmp_path, drawn):
    runs = {
        "dlion": made_up_run(tmp_path / "dlion"),
        "baseline": made_up_run(tmp_path / "baseline", system="baseline"),
        "mine": made_up_run(tmp_path / "mine", system="dlion", extra="a: 1", point={"system": "mine"}),
        "baseline, exchange gossip:Gossip": made_up_run(tmp_path / "gossip", system="baseline", replaced=GOSSIP),
    }
    for labels in (["mine", "dlion"], ["dlion"], ["baseline, exchange gossip:Gossip", "mine"], list(runs)):
        groups = group_runs([runs[label] for label in labels])
        for plot in (figures.plot_accuracies, figures.plot_deviation):
            plot(groups, tmp_path / "a.png")
            alone = [system_look(group.labels["system"]) for group in groups]
            assert line_looks(drawn[-1].axes[0]) == [(to_hex(look.colour), look.marker) for look in alone]


def test_bars_and_single_runs_have_the_systems_colour(tmp_path, drawn):
    run = made_up_run(tmp_path / "run", system="baseline", replaced=GOSSIP)
    look = system_look("baseline, exchange gossip:Gossip")
    figures.plot_accuracy(run, tmp_path / "a.png")
    assert drawn[0].axes[0].lines[-1].get_color() == look.colour
    figures.plot_accuracy_at(group_runs([run]), tmp_path / "a.png", 10.0)
    (bar,) = drawn[1].axes[0].patches
    assert (to_hex(bar.get_facecolor()), bar.get_hatch()) == (look.colour, look.hatch)
