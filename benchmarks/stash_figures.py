"""Figures of stalls of GPUs in instances."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from dlion_sim.figures.style import PALETTE, WIDE, drawing, legend_below, make_logarithmic

_BAR = 0.13
_MARKS = {"resnet": "o", "vgg": "^"}


def draw_stalls(file: Path, rows: pd.DataFrame) -> None:
    """Draw the share of an iteration that GPUs wait, by model and instances."""
    rows = rows[rows["waiting"] > 0]
    networks, places = (list(dict.fromkeys(rows[column])) for column in ("network", "instances"))
    with drawing(file, height=2.8, width=WIDE) as figure:
        axes = figure.subplots()
        for number, (place, each) in enumerate(rows.groupby("instances", sort=False)):
            at = [networks.index(name) + _BAR * (number - (len(places) - 1) / 2) for name in each["network"]]
            axes.bar(at, 100 * each["waiting"], 0.9 * _BAR, color=PALETTE[number], label=place)
        axes.set_xticks(range(len(networks)), [name.replace("_", "-") for name in networks])
        axes.set(ylabel="Waiting for messages\n(% of an iteration)", ylim=(0, 100))
        axes.grid(visible=False, axis="x")
        legend_below(figure, *axes.get_legend_handles_labels())


def draw_features(file: Path, families: pd.DataFrame) -> None:
    """Draw the wait of an iteration on one instance and on two, by the network's variables and parameters."""
    waits = families["iteration s"] - families["alone s"]
    rows = families.assign(wait=1e3 * waits, family=families["network"].str.extract(r"([a-z]+)", expand=False))
    rows["millions"] = rows["parameters"] / 1e6
    with drawing(file, height=2.8, width=WIDE) as figure:
        for panel, (column, label) in zip(
            figure.subplots(1, 2, sharey=True),
            {"variables": "Variables", "millions": "Parameters (millions)"}.items(),
            strict=True,
        ):
            for number, (place, of_place) in enumerate(rows.groupby("instances", sort=False)):
                for family, each in of_place.groupby("family"):
                    panel.plot(
                        *(each[column], each["wait"], _MARKS[str(family)]),
                        markersize=4,
                        color=PALETTE[number],
                        label=f"{str(family).replace('resnet', 'ResNets').replace('vgg', 'VGGs')} on {place}",
                    )
            panel.set_xlabel(label)
            make_logarithmic(panel, "x", rows[column].max() / rows[column].min())
            make_logarithmic(panel, "y", rows["wait"].max() / rows["wait"].min())
        figure.axes[0].set_ylabel("Waiting for messages\n(ms of an iteration)")
        legend_below(figure, *figure.axes[0].get_legend_handles_labels())
