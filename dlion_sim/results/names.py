"""Names of participants, beside their numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dlion_sim.results.tables import INDEX


def participants(manifest: Mapping[str, Any]) -> list[str]:
    """The names of all workers, then of the parameter servers, by number."""
    return [*manifest.get("workers", []), *manifest.get("servers", [])]


def clouds_of(manifest: Mapping[str, Any]) -> Sequence[str]:
    """The micro-cloud of each participant. Old manifests lack it, but workers' names begin with it."""
    clouds: Sequence[str] | None = manifest.get("clouds")
    return clouds or [name.rpartition("/")[0] for name in participants(manifest)]


def with_names(table: pa.Table, manifest: Mapping[str, Any]) -> pa.Table:
    """The table, with `worker_name` and `worker_cloud` for `worker`, and so on for each column of participants.

    Existing columns stay. Participants that are not in the manifest have null.
    """
    names = participants(manifest)
    clouds = clouds_of(manifest)
    different = list(dict.fromkeys(clouds))
    places = {cloud: place for place, cloud in enumerate(different)}
    cloud_of = [places[cloud] for cloud in clouds]
    for field in table.schema:
        if (field.metadata or {}).get(b"unit") == INDEX.encode() and f"{field.name}_name" not in table.column_names:
            numbers = table[field.name].combine_chunks()
            is_known = pc.and_(pc.greater_equal(numbers, 0), pc.less(numbers, min(len(names), len(clouds))))
            known = pc.if_else(is_known, numbers, None)
            in_clouds = pa.array(cloud_of, pa.int32()).take(known)
            table = _append(table, f"{field.name}_name", known, names)
            table = _append(table, f"{field.name}_cloud", in_clouds, different)
    return table


def _append(table: pa.Table, column: str, indices: pa.Array, values: Sequence[str]) -> pa.Table:
    return table.append_column(column, pa.DictionaryArray.from_arrays(indices, pa.array(values, pa.string())))
