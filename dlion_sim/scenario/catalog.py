"""Catalogs of instances: the machines that clouds rent out, and their prices per hour."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from dlion_sim.errors import did_you_mean
from dlion_sim.scenario.csv_file import csv_table
from dlion_sim.scenario.faults import RuleError, listed

if TYPE_CHECKING:
    import pandas as pd

FOLDER = Path(__file__).with_name("catalogs")
_MOST_BYTES = 32_000_000
"""Of a file; SkyPilot's largest has 4 million."""
_NEEDED = ("InstanceType", "AcceleratorName", "AcceleratorCount", "vCPUs", "Price", "SpotPrice", "Region")
_NUMBERS = ("AcceleratorCount", "vCPUs", "Price", "SpotPrice", "NetworkGbps", "Watts", "CarbonIntensity")
_MOST = 1e5
"""Of any of these numbers."""


@dataclass(frozen=True)
class Shipped:
    """Date and source of a catalog that ships."""

    date: str
    source: str


CATALOGS: Mapping[str, Shipped] = {
    "aws-2020-p2p3": Shipped(
        "2020",
        "On-demand prices and GPUs as in Stash's published profiler (arXiv 2208.14344). "
        "Values named in the column `recalled` are from memory, unchecked.",
    ),
    "aws-skypilot": Shipped(
        "between September 2025 and November 2026",
        "From SkyPilot's catalog v8 of AWS, commit 00148f2af; of spot prices the lowest of a region then. "
        "Prices change: check them before you rent. NICs are from memory, unchecked.",
    ),
}
"""The catalogs that ship, by name."""


@dataclass(frozen=True)
class Instance:
    """A type of machine in a region; None where its catalog has no value."""

    gpu: str | None
    gpus: float
    vcpus: float | None
    price: float
    """Per hour."""
    network_bps: float | None
    watts: float | None
    carbon: float | None
    """Grams of CO2 per kWh."""


@dataclass(frozen=True)
class Catalog:
    """Instances by name and region, a row for each zone."""

    name: str
    rows: pd.DataFrame
    """The columns of SkyPilot's `vms.csv`: text, or numbers with NaN for empty cells."""

    @classmethod
    def read(cls, name: str, folder: Path) -> Self:
        """The catalog that ships by that name, or else the CSV file, relative to `folder`.

        Raises:
            RuleError: There is neither, or a cell is invalid; with its line.
        """
        file = FOLDER / f"{name}.csv" if name in CATALOGS else folder / name
        if name not in CATALOGS and not file.exists():
            near = did_you_mean(name, CATALOGS)
            raise RuleError(
                f"there is no catalog '{name}', nor a file{near}", allowed=f"{', '.join(CATALOGS)}, or a CSV file"
            )
        return cls(name, _read(file))

    def instance(self, name: str, region: str | None, *, spot: bool) -> Instance:
        """The instance of that name, in the cheapest of several zones.

        Raises:
            RuleError: It is not in the catalog or the region, has no such price, or is in several regions and none is
                given.
        """
        rows = self.rows[self.rows["InstanceType"] == name]
        if rows.empty:
            names = list(dict.fromkeys(self.rows["InstanceType"]))
            raise RuleError(
                f"catalog {self.name} has no instance '{name}'{did_you_mean(name, names)}", allowed=listed(names)
            )
        regions = list(dict.fromkeys(rows["Region"]))
        if region is None and len(regions) > 1:
            raise RuleError(
                f"catalog {self.name} has '{name}' in several regions",
                allowed=f"region: {listed(regions)}, beside the cloud's name",
            )
        if region is not None and region not in regions:
            raise RuleError(
                f"catalog {self.name} has no '{name}' in region '{region}'{did_you_mean(region, regions)}",
                allowed=listed(regions),
            )
        priced = rows[(rows["Region"] == (region or regions[0])) & rows["SpotPrice" if spot else "Price"].notna()]
        if priced.empty:
            raise RuleError(f"catalog {self.name} has no {'spot' if spot else 'on-demand'} price of '{name}' there")
        row = priced.sort_values("SpotPrice" if spot else "Price").iloc[0]
        gpu, gpus = str(row["AcceleratorName"]), _known(row["AcceleratorCount"]) or 0.0
        network = _known(row["NetworkGbps"])
        return Instance(
            gpu=gpu if gpu and gpus else None,
            gpus=gpus,
            vcpus=_known(row["vCPUs"]),
            price=float(row["SpotPrice" if spot else "Price"]),
            network_bps=network * 1e9 if network else None,
            watts=_known(row["Watts"]),
            carbon=_known(row["CarbonIntensity"]),
        )


def _read(file: Path) -> pd.DataFrame:
    """The file's rows, checked."""
    import pandas as pd  # most of a second to import, and few scenarios have catalogs

    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)  # of a first row that is longer than the head
        as_text = {"dtype": str, "keep_default_na": False}
        table = csv_table("catalog", file, _MOST_BYTES, index_col=False, encoding="utf-8-sig", **as_text)
    missing = [column for column in _NEEDED if column not in table.columns]
    if missing:
        raise RuleError(f"catalog {file}, line 1: has no column '{missing[0]}'", allowed=f"{', '.join(_NEEDED)}, ...")
    for column in _NUMBERS:
        written = table[column] if column in table.columns else pd.Series("", index=table.index)
        numbers = pd.to_numeric(written, errors="coerce").astype(float)
        wrong = (written != "") & ~numbers.between(0, _MOST)
        if wrong.any():
            row = int(wrong.to_numpy().argmax())
            raise RuleError(
                f"catalog {file}, line {row + 2}: {column} is {written.iloc[row]!r}",
                allowed=f"0 to {_MOST:.0f}, or none",
            )
        table[column] = numbers
    return table


def _known(number: float) -> float | None:
    return None if number != number else float(number)  # NaN
