"""The page of many runs."""

from __future__ import annotations

from dlion_sim.report.many.data import Collected, many_data
from dlion_sim.report.page import Section, render

SECTIONS = (
    Section("overview", "Summary", "overview"),
    Section(
        "outcomes",
        "Results",
        "outcomes",
        "A row is all seeds of a setting: means and their 95 % t-intervals. >: a bound, as not all seeds reached the "
        "target, or none is completed yet (in italics). A click selects a row in all views.",
    ),
    Section(
        "curves",
        "Metric over time",
        "curves",
        "Means over seeds. Where at most six lines are drawn, a band is from the least to the greatest seed.",
    ),
    Section(
        "coordinates",
        "Parallel coordinates",
        "coordinates",
        "A line is a row of the table. Drag a box around a part of an axis to select what goes through it, with Shift "
        "for boxes on further axes; a double click lets go of them.",
    ),
    Section(
        "front",
        "Trade-off",
        "front",
        "The line is the Pareto front of the rows shown. Hollow: a bound, as in the table.",
    ),
    Section("unfinished", "Incomplete runs", "unfinished"),
)
SCRIPTS = tuple(f"many/{name}.js" for name in ("scale", "groups", "outcomes", "curves", "coordinates", "front"))


def many_page(collected: Collected, target: float | str | None = None, *, is_served: bool = False) -> str:
    """The HTML of a page of many runs; for `target` see `many_data`, for `is_served` `render`.

    Raises InputError for runs of several metrics, where what one has recorded cannot be read, and where plotly is not
    installed.
    """
    data = many_data(collected, target)
    return render(data["title"], SECTIONS, data, SCRIPTS, is_served=is_served)
