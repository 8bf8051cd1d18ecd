"""Compact SVG pictures: the same places, fewer bytes."""

import re

import numpy as np
from matplotlib.figure import Figure
from matplotlib.path import Path as Outline

from dlion_sim.figures.svg import compact


def points(path):
    """The ends of a path's segments, absolute."""
    at, found = np.zeros(2), []
    for kind, numbers in re.findall(r"([A-Za-z])([^A-Za-z]*)", path):
        values = np.array(re.findall(r"-?[\d.]+", numbers), float).reshape(-1, 2)
        if len(values):
            at = (at if kind.islower() else 0) + values[-1]
            found.append(at)
    return np.array(found)


def test_a_line_of_many_points_stays_in_place_with_less_than_half_of_the_bytes():
    step = np.random.default_rng(0).normal(0, 3, (5000, 2))
    ends = np.cumsum(step, axis=0)
    written = "M" + "\nL".join(f" {x:.6f} {y:.6f} " for x, y in ends)
    short = compact(f'<svg><path d="{written}" style="fill: none; stroke: #e6e6e6"/></svg>')
    assert len(short) < len(written) / 2
    there = points(re.findall(r' d="([^"]*)"', short)[0])
    assert np.abs(there[-1] - ends[-1]).max() <= 0.051
    assert max(np.abs(there - end).max(axis=1).min() for end in ends[::100]) <= 0.051


def test_curves_keep_hundredths_and_equal_points_are_left_out():
    eighth = Outline.unit_circle().vertices[:4]
    curve = "M {:.6f} {:.6f} \nC {:.6f} {:.6f} {:.6f} {:.6f} {:.6f} {:.6f} \n".format(*eighth.ravel())
    there = points(re.findall(r' d="([^"]*)"', compact(f'<path d="{curve}"/>'))[0])
    assert np.abs(there[-1] - eighth[-1]).max() < 0.011
    assert compact('<path d="M 1.01 1.01 L 1.02 1.02 L 3.0 1.0 z"/>') == '<path d="M1 1l2 0z"/>'


def test_identifiers_that_are_referred_to_stay(tmp_path):
    figure = Figure()
    axes = figure.subplots()
    axes.plot([0, 1, 2], [0, 1, 0], "o-")
    axes.set_title("a -- b   c")
    figure.savefig(tmp_path / "whole.svg")
    whole = (tmp_path / "whole.svg").read_text()
    short = compact(whole)
    referred = set(re.findall(r'(?:href="#|url\(#)([^")]*)', whole))
    assert referred == set(re.findall(r'(?:href="#|url\(#)([^")]*)', short))
    assert referred <= set(re.findall(r'id="([^"]*)"', short))
    assert "<metadata>" not in short
