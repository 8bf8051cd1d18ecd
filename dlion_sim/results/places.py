"""Names and micro-clouds of participants, and WAN bytes: those between micro-clouds, which cost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from dlion_sim.results.tables import INDEX

if TYPE_CHECKING:
    from dlion_sim.results.reading import Run


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


def wan_path(manifest: Mapping[str, Any], sender: int, receiver: int) -> tuple[str, str] | None:
    """The two micro-clouds of a link, from and to; None for a link inside one."""
    clouds = clouds_of(manifest)
    path = clouds[sender], clouds[receiver]
    return None if path[0] == path[1] else path


def with_wan_bytes(links: pd.DataFrame) -> pd.DataFrame:
    """Rows of links with `wan_bytes`: their `bytes` between micro-clouds, 0 elsewhere."""
    crosses = links["sender_cloud"].astype(object) != links["receiver_cloud"].astype(object)
    return links.assign(wan_bytes=links["bytes"].where(crosses, 0))


@dataclass(frozen=True)
class Traffic:
    """The bytes by which runs are compared: their columns and their name."""

    name: Literal["WAN", "LAN"]
    links: Literal["wan_bytes", "bytes"]
    """Their column of links."""
    total: Literal["wan_bytes", "bytes_sent"]
    """Their key of summaries, and their column of comparisons."""

    @property
    def title(self) -> str:
        """Of an axis."""
        return f"Sent over the {self.name} by all workers"

    @property
    def to_target(self) -> str:
        """Their column of comparisons, sent until the target was reached."""
        return f"{self.total}_to_target"


WAN, LAN = Traffic("WAN", "wan_bytes", "wan_bytes"), Traffic("LAN", "bytes", "bytes_sent")


def traffic_of(runs: Iterable[Run]) -> Traffic:
    """Bytes over the WAN, or over the LAN if no run has more than one micro-cloud."""
    return WAN if any(run.has_wan for run in runs) else LAN
