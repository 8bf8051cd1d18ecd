"""The sites and the paths between them, from a file of measured links."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from itertools import permutations
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from pydantic import ValidationError

from dlion_sim.errors import InputError, did_you_mean
from dlion_sim.scenario import BANDWIDTH, DURATION, UNLIMITED, Cluster, Network
from dlion_sim.scenario.faults import as_input_error
from dlion_sim.scenario.model import Model
from dlion_sim.scenario.units import Unit
from dlion_sim.scenario.wan import MATRICES
from dlion_sim.yaml_text import read_file, read_text

Mirrored = Sequence[tuple[str, str, str]]
"""Matrix, sender and receiver of each value that is the opposite direction's."""
M = TypeVar("M", bound=Model)
_QUANTITIES: Mapping[str, Unit] = {"bandwidth": BANDWIDTH, "rtt": DURATION}
_CELLS = {"from": "gpu1", "to": "lab", "bandwidth": "40 Mbps", "rtt": "60 ms"}
_COLUMNS = "from,to,bandwidth,rtt, or with units in the names, e.g. from,to,bandwidth_mbps,rtt_ms"


class Links(NamedTuple):
    """What is between sites."""

    cluster: Cluster
    """One worker at each site."""
    network: Network | None = None
    """Its model, if one was measured."""
    mirrored: Mirrored = ()


def read_links(file: Path) -> Links:
    """The links of YAML, its `cluster` and `network`, or those of a CSV file with a row for each path.

    In a CSV file a direction without a row, or with an empty cell, is like the opposite one.

    Raises:
        InputError: The file is neither, or between some two sites there is nothing.
    """
    return _of_yaml(file) if file.suffix in (".yaml", ".yml") else _of_csv(file)


def _of_yaml(file: Path) -> Links:
    data = read_file(file)
    if not isinstance(data, dict) or "cluster" not in data:
        allowed = f"a scenario or its network, or a CSV file with the columns {_COLUMNS}"
        raise InputError("has no cluster", file=file, allowed=allowed)
    network = _checked(Network, "network", data["network"], file) if "network" in data else None
    return Links(_checked(Cluster, "cluster", data["cluster"], file), network)


def _checked(model: type[M], key: str, value: object, file: Path) -> M:
    """The value of a scenario's key."""
    try:
        return model.model_validate(value, context={"folder": file.parent})
    except ValidationError as error:
        fault = as_input_error(error, value, file).below(key)
        raise InputError(fault.problem, file=file, path=fault.path, allowed=fault.allowed) from None


def _of_csv(file: Path) -> Links:
    rows = _rows(file)
    names = list(dict.fromkeys(name for ends in rows for name in ends))
    wan: dict[str, Any] = {}
    mirrored = []
    for a, b, key in ((*ends, key) for key in MATRICES for ends in permutations(names, 2)):
        there, back = rows.get((a, b), {}), rows.get((b, a), {})
        value = there.get(key) or back.get(key)
        if value is None:
            problem = f"has no {key} between '{a}' and '{b}'"
            example = ",".join({**_CELLS, "from": a, "to": b}.values())
            raise InputError(problem, file=file, allowed=f"one for every two sites, e.g. {example}")
        if key not in there:
            mirrored.append((MATRICES[key], a, b))
        wan.setdefault(MATRICES[key], {}).setdefault(a, {})[b] = value
    cluster = {"clouds": [{"name": name, "workers": [{}]} for name in names], "wan": wan}
    return Links(_checked(Cluster, "cluster", cluster, file), mirrored=mirrored)


def _rows(file: Path) -> dict[tuple[str, str], dict[str, str]]:
    """The quantities of each row with their units, by sender and receiver."""
    reader = csv.reader(read_text(file).splitlines())
    try:
        read = [(f"line {reader.line_num}", [cell.strip() for cell in row]) for row in reader]
    except csv.Error as error:
        raise InputError(f"is no CSV file: {error}", file=file, path=f"line {reader.line_num}") from None
    (_, header), *lines = [(line, row) for line, row in read if any(row)] or [("", [])]
    columns = _columns(header, file)
    rows: dict[tuple[str, str], dict[str, str]] = {}
    for line, cells in lines:
        if len(cells) != len(columns):
            problem = f"has {len(cells)} cells"
            raise InputError(problem, file=file, path=line, allowed=f"{len(columns)}: {','.join(header)}")
        row = {key: (cell, unit) for cell, (key, unit) in zip(cells, columns, strict=True)}
        a, b = row.pop("from")[0], row.pop("to")[0]
        if not a or not b or a == b or (a, b) in rows:
            which = "is a second one" if (a, b) in rows else "does not lead from one site to another"
            allowed = "one row for each direction, e.g. gpu1,lab,... and lab,gpu1,..."
            raise InputError(f"{which} ('{a}' to '{b}')", file=file, path=line, allowed=allowed)
        rows[a, b] = {key: _value(key, *cell, file, line) for key, cell in row.items() if cell[0]}
    if not rows:
        raise InputError("has no paths", file=file, allowed=f"rows such as {','.join(_CELLS.values())}")
    return rows


def _columns(header: Sequence[str], file: Path) -> list[tuple[str, str]]:
    """The key and the unit of each column."""
    columns = []
    for name in map(str.lower, header):
        key, _, suffix = name.partition("_")
        factors = _QUANTITIES[key].factors if key in _QUANTITIES else {}
        units = {unit.lower(): unit for unit in factors if "B" not in unit}  # mB/s and mb/s would differ by eight
        if key not in _CELLS or (suffix and suffix not in units):
            allowed = f"{_COLUMNS}" + (f" (units: {', '.join(units)})" if units else "")
            problem = f"there is no column '{name}'{did_you_mean(name, _CELLS)}"
            raise InputError(problem, file=file, path="line 1", allowed=allowed)
        columns.append((key, units.get(suffix, "")))
    if sorted(key for key, _ in columns) != sorted(_CELLS):
        problem = f"its columns are {','.join(header) or 'missing'}"
        raise InputError(problem, file=file, path="line 1", allowed=f"each of {_COLUMNS}")
    return columns


def _value(key: str, cell: str, unit: str, file: Path, line: str) -> str:
    if key == "bandwidth" and cell == UNLIMITED:
        return cell
    quantity = _QUANTITIES[key]
    try:
        value = quantity.parse(f"{cell} {unit}".strip())
    except ValueError as error:
        named = "bandwidth_mbps" if key == "bandwidth" else "rtt_ms"
        example = "40" if unit else f"{_CELLS[key]}; or name the column {named}"
        raise InputError(str(error), file=file, path=f"{line}, {key}", allowed=f"e.g. {example}") from None
    if key == "bandwidth" and not value:
        raise InputError(f"'{cell}' is no bandwidth", file=file, path=line, allowed="more than 0, e.g. 40 Mbps")
    return quantity.format(value)
