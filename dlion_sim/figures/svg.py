"""Matplotlib's SVG pictures without what nobody sees: half the size, the same picture."""

from __future__ import annotations

import re

_PATH = re.compile(r' d="([^"]*)"')
_PLACE = re.compile(r'(?<= [xy]=")-?\d+\.\d+|(?<=translate\()-?[\d.]+ -?[\d.]+')
_SEGMENT = re.compile(r"([A-Za-z])([^A-Za-z]*)")
_STYLE = re.compile(r' style="[^"]*"')
_ZERO = re.compile(r"(?<![\d.])0(?=\.)")
_UNSEEN = re.compile(r"<metadata>.*?</metadata>\s*|(?<=<g) id=\"[^\"]*\"|^ +", re.DOTALL | re.MULTILINE)


def compact(picture: str) -> str:
    """The picture with coordinates in tenths of a point, those of curves in hundredths, and without metadata."""
    picture = _UNSEEN.sub("", picture)
    picture = _PLACE.sub(lambda place: " ".join(f"{round(float(number), 2):g}" for number in place[0].split()), picture)
    picture = _STYLE.sub(lambda style: re.sub(r"(?<=[:;]) ", "", style[0]), picture)
    return _PATH.sub(lambda path: f' d="{_rounded(path[1])}"', picture)


def _rounded(path: str) -> str:
    """A path of M, L, C, Q and z with coordinates relative to the segment's rounded start, so that errors don't add up.

    A line to where it starts is left out.
    """
    if "." not in path:  # a letter, in units of its font
        return path.replace("\n", "")
    unit = 100 if re.search("[CQ]", path) else 10
    written, at = [], (0, 0)
    for kind, numbers in _SEGMENT.findall(path):
        ends = [round(float(number) * unit) for number in numbers.split()]
        steps = [end - at[place % 2] for place, end in enumerate(ends)]
        if kind == "L" and not any(steps):
            continue
        relative = kind if kind in "Mz" else kind.lower()
        written.append(relative + " ".join(f"{each / unit:g}" for each in (ends if kind == "M" else steps)))
        at = (ends[-2], ends[-1]) if ends else at
    return _ZERO.sub("", "".join(written).replace(" -", "-"))
