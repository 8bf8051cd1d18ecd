"""A system looks the same in every figure, whoever else is drawn."""

from itertools import combinations

import numpy as np
import pytest
from matplotlib.colors import to_hex, to_rgb

from dlion_sim import figures
from dlion_sim.analysis import group_runs
from dlion_sim.figures.looks import look_in_order, system_look
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


@pytest.mark.parametrize("reader", SEEN_BY)
def test_every_reader_tells_the_named_systems_colours_apart(reader):
    colours = [oklab(system_look(system).colour, np.array(SEEN_BY[reader])) for system in SYSTEMS]
    # 0.02 is just noticeable side by side.
    assert min(np.linalg.norm(one - other) for one, other in combinations(colours, 2)) > 0.06


def test_every_named_system_has_its_own_colour_and_marker():
    looks = [system_look(system) for system in SYSTEMS]
    assert len({look.colour for look in looks}) == len({look.marker for look in looks}) == len(SYSTEMS)


def test_a_system_with_something_replaced_has_a_look_of_its_own_that_shows_whose_it_is():
    labels = ["baseline, exchange gossip:Gossip", "dlion, weights share", "dlion, knowledge transfer none", "mine"]
    looks = [system_look(label) for label in labels]
    assert looks == [system_look(label) for label in labels]
    assert len({(look.colour, look.dashes) for look in looks}) == len(labels)
    assert [look.marker for look in looks[:3]] == [system_look(name).marker for name in ("baseline", "dlion", "dlion")]
    assert [look.filled for look in looks] == [False, False, False, True]
    assert not {look.colour for look in looks} & {system_look(system).colour for system in SYSTEMS}


def test_what_goes_by_order_is_told_apart():
    looks = [look_in_order(number) for number in range(32)]
    assert len({str(look.line()) for look in looks}) == len({str(look.bar()) for look in looks}) == len(looks)


def line_looks(axes):
    return [(to_hex(line.get_color()), line.get_marker()) for line in axes.lines]


def own(label):
    return to_hex(system_look(label).colour), system_look(label).marker


def test_lines_look_the_same_whoever_else_is_drawn(tmp_path, drawn):
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
            expected = [own(group.labels["system"]) for group in groups]
            assert line_looks(drawn[-1].axes[0]) == expected


def test_most_variants_of_a_study_are_told_apart_by_their_order(tmp_path, drawn):
    """Looks that follow from labels alone may be alike."""
    labels = ["baseline", "p1", "p2", "p4", "p8"]
    runs = [made_up_run(tmp_path / label, system="baseline", extra=label, point={"system": label}) for label in labels]
    figures.plot_accuracies(group_runs(runs), tmp_path / "a.png")
    colours = [colour for colour, _ in line_looks(drawn[0].axes[0])]
    assert colours == [own("baseline")[0], *(to_hex(look_in_order(number).colour) for number in range(4))]


def test_bars_and_the_accuracy_of_one_run_have_the_systems_colour_too(tmp_path, drawn):
    run = made_up_run(tmp_path / "run", system="baseline", replaced=GOSSIP)
    look = system_look("baseline, exchange gossip:Gossip")
    figures.plot_accuracy(run, tmp_path / "a.png")
    assert drawn[0].axes[0].lines[-1].get_color() == look.colour
    figures.plot_accuracy_at(group_runs([run]), tmp_path / "a.png", 10.0)
    (bar,) = drawn[1].axes[0].patches
    assert (to_hex(bar.get_facecolor()), bar.get_hatch()) == (look.colour, look.hatch)
