"""Availability traces: a published file is read into an entry that holds its times."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, model_validator

from dlion_sim.scenario import availability_files as files
from dlion_sim.scenario.capacity import from_offset
from dlion_sim.scenario.faults import RuleError
from dlion_sim.scenario.outages import (
    AnyOutageModel,
    Counts,
    Down,
    EmpiricalTimes,
    Interval,
    Lasting,
    Machines,
    OutageModel,
)
from dlion_sim.scenario.units import DURATION, Duration

_OPTIONS = {
    "nodes": {"unit", "repeat", "offset"},
    "counts": {"unit", "repeat", "offset"},
    "simgrid": {"repeat", "offset"},
    "fedscale": {"repeat", "offset"},
    "skypilot": {"repeat", "offset"},
    "intervals": {"repeat", "offset", "where"},
    "lifetimes": {"where", "down"},
}


class AvailabilityTrace(OutageModel):
    """Outages from a trace file. A trace of several machines applies to all participants of the entry; the seed
    determines which participant gets which machine's outages."""

    trace: str
    """The file; may be compressed (.gz)."""
    format: Literal["nodes", "counts", "simgrid", "fedscale", "skypilot", "intervals", "lifetimes"]
    """The format. nodes: lines `time,add,node` and `time,remove,node` (Oobleck). counts: lines `time,count`, the number
    up (Bamboo, Parcae). simgrid: a state profile. fedscale: JSON of client_behave_trace. skypilot: JSON of a spot
    trace. intervals: a CSV table of start_s, end_s and value, the number up. lifetimes: a CSV table of lifetime_s, from
    which times up are drawn."""
    unit: Literal["us", "ms", "s", "min", "h"] | None = None
    """Unit of the times of nodes (default: ms) and counts (default: s)."""
    where: dict[str, str | int | float] = Field(default_factory=dict)
    """Selects rows of a table: {column: value}."""
    repeat: Lasting | None = None
    """Period after which the trace repeats; by default the file's."""
    offset: Duration = 0.0
    """Time in the trace at which the run starts."""
    down: Lasting | None = None
    """Time between the end of a lifetime and the next machine's start."""

    @model_validator(mode="after")
    def _has_its_options(self) -> Self:
        own = {"trace", "format", *OutageModel.model_fields}
        for name in self.model_fields_set - _OPTIONS[self.format] - own:
            raise RuleError(f"{name} does not apply to {self.format}", allowed=", ".join(sorted(_OPTIONS[self.format])))
        if self.format == "lifetimes" and self.down is None:
            raise RuleError("lifetimes do not say when the next machine starts", allowed="e.g. down: 10 min")
        return self

    def read(self, folder: Path) -> AnyOutageModel:
        """The entry with the file's times. Raises RuleError if the file cannot be read or has another format."""
        file = folder / self.trace
        given = {"kind": self.kind, "notice": None if self.notice is None else DURATION.format(self.notice)}
        match self.format:
            case "nodes":
                machines = self._timetables(files.read_nodes(file, self.unit or "ms"))
                return Machines.model_validate({**given, "machines": machines})
            case "fedscale":
                return Machines.model_validate({**given, "machines": self._timetables(files.read_fedscale(file))})
            case "simgrid":
                [alone] = self._timetables([files.read_simgrid(file)])
                return Down.model_validate({**given, **alone})
            case "counts":
                return self._counts(given, files.read_counts(file, self.unit or "s"))
            case "skypilot":
                return self._counts(given, files.read_skypilot(file))
            case "intervals":
                return self._counts(given, files.read_intervals(file, self.where))
            case "lifetimes":
                up = [DURATION.format(each) for each in files.read_lifetimes(file, self.where)]
                assert self.down is not None
                times = {"process": "empirical", "up": up, "down": [DURATION.format(self.down)]}
                return EmpiricalTimes.model_validate({**given, **times})

    def _timetables(self, machines: Sequence[files.Times]) -> list[dict[str, object]]:
        return [_timetable(*_begun(times, self.repeat or period, self.offset)) for times, period in machines]

    def _counts(self, given: Mapping[str, object], counts: Mapping[float, int]) -> Counts:
        last = max(counts)
        if self.repeat is not None and self.repeat <= last:
            problem = f"the trace's last count is at {DURATION.format(last)}"
            raise RuleError(problem, allowed="a longer period", at=("repeat",))
        steps, period = from_offset(tuple(counts.items()), self.repeat, self.offset)
        told = {DURATION.format(time): count for time, count in steps}
        return Counts.model_validate({**given, "counts": told, **_repeated(period)})


def _begun(times: Sequence[Interval], period: float | None, offset: float) -> tuple[list[Interval], float | None]:
    """The times from `offset` on, which becomes 0; if they repeat, one period of them."""
    if period is None or not offset:
        later = [(max(begin - offset, 0.0), end - offset) for begin, end in times if end > offset]
        return later, period
    around = [
        (max(begin + turn - offset % period, 0.0), min(end + turn - offset % period, period))
        for turn in (-period, 0.0, period)
        for begin, end in times
    ]
    return [(begin, end) for begin, end in around if begin < end], period


def _timetable(times: Sequence[Interval], period: float | None) -> dict[str, object]:
    return {"down": list(times), **_repeated(period if times and not math.isinf(times[-1][1]) else None)}


def _repeated(period: float | None) -> dict[str, str]:
    return {} if period is None else {"repeat": DURATION.format(period)}
