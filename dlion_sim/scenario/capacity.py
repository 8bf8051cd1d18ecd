"""Capacities in YAML: a quantity, steps over time, or a measured trace."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BeforeValidator, PlainSerializer, PlainValidator, ValidationInfo, WithJsonSchema

from dlion_sim.scenario.devices import cores_of
from dlion_sim.scenario.faults import RuleError
from dlion_sim.scenario.model import Model
from dlion_sim.scenario.schedule import Schedule
from dlion_sim.scenario.trace import read_trace
from dlion_sim.scenario.units import (
    BANDWIDTH,
    CORES,
    DURATION,
    RATE,
    Bandwidth,
    Cores,
    Duration,
    PositiveDuration,
    Rate,
    Unit,
)

Value = TypeVar("Value")


class Steps(Model):
    """A capacity that changes at given times."""

    steps: dict[Duration, Any]
    """Capacity from each time on. The first time is 0; a capacity of 0 is an outage."""
    repeat: PositiveDuration | None = None
    """Period after which the steps repeat. None: the last step applies until the end."""


class BandwidthSteps(Steps):
    """A bandwidth that changes at given times, e.g. {steps: {0 s: 50 Mbps, 500 s: 20 Mbps}}."""

    steps: dict[Duration, Bandwidth]
    """Bandwidth from each time on. The first time is 0; a bandwidth of 0 is an outage."""


class CoresSteps(Steps):
    """Cores whose number changes at given times, e.g. {steps: {0 s: 24 cores, 500 s: 12 cores}}."""

    steps: dict[Duration, Annotated[Cores, BeforeValidator(cores_of)]]
    """Cores, or a device's name, from each time on. The first time is 0; 0 cores are an outage."""


class RateSteps(Steps):
    """A rate that changes at given times, e.g. {steps: {0 s: 50/s, 60 s: 0/s}}."""

    steps: dict[Duration, Rate]
    """Samples per second from each time on. The first time is 0, with a rate above 0."""


class Trace(Model):
    """A measured capacity. It is read with the scenario, and becomes steps."""

    trace: str
    """CSV file, perhaps compressed (.csv.gz), with a column `time_s`."""
    series: str | None = None
    """The series in the file's column `trace`; required if there are several."""
    value: str | None = None
    """The column of the capacity; required if several are numeric."""
    unit: str | None = None
    """Unit of the file's values; by default Mbps for a bandwidth, cores for a machine, samples/s for a rate."""
    repeat: bool = True
    """Whether the trace repeats after its last sample, which then lasts as long as the one before it."""
    offset: Duration = 0.0
    """Time in the trace at which the run starts."""


def is_capacity(given: object) -> bool:
    """Whether it is a mapping that describes one capacity (`steps` or `trace`), rather than a mapping of capacities."""
    return isinstance(given, Mapping) and ("steps" in given or "trace" in given)


def _read(given: object, info: ValidationInfo, *, unit: Unit, steps: type[Steps], trace_unit: str) -> Schedule:
    if isinstance(given, Schedule):
        return given
    if not isinstance(given, Mapping):
        return Schedule.constant(unit.parse(given))
    if "trace" in given:
        folder = Path((info.context or {}).get("folder", ""))
        return _from_trace(Trace.model_validate(given), folder, unit, trace_unit)
    written = steps.model_validate(given)
    if len(written.steps) < len(given["steps"]):
        raise RuleError("two steps are at the same time", at=("steps",))
    return Schedule(tuple(written.steps.items()), written.repeat)


def _from_trace(written: Trace, folder: Path, unit: Unit, trace_unit: str) -> Schedule:
    suffix = written.unit or trace_unit
    if suffix not in unit.factors:
        raise RuleError(f"'{suffix}' is not a unit of a {unit.quantity}", allowed=", ".join(unit.factors), at=("unit",))
    samples = read_trace(folder / written.trace, series=written.series, value=written.value)
    steps = tuple((time, unit.parse(f"{value!r} {suffix}")) for time, value in samples)
    lasts = 2 * steps[-1][0] - steps[-2][0] if written.repeat and len(steps) > 1 else None
    if lasts is None and written.offset > steps[-1][0]:
        last = DURATION.format(steps[-1][0])
        raise RuleError(f"the trace's last sample is at {last}", allowed=f"0 s to {last}", at=("offset",))
    return Schedule(*from_offset(steps, lasts, written.offset))


def from_offset(
    steps: tuple[tuple[float, Value], ...], lasts: float | None, offset: float
) -> tuple[tuple[tuple[float, Value], ...], float | None]:
    """The steps from `offset` on, which becomes 0; with a period, earlier steps move to its end."""
    offset = offset if lasts is None else offset % lasts
    first = sum(time <= offset for time, _ in steps) - 1
    later = [(time - offset, value) for time, value in steps[first + 1 :]]
    again = (
        [] if lasts is None else [(time + lasts - offset, value) for time, value in steps[: first + 1] if offset > time]
    )
    return ((0.0, steps[first][1]), *later, *again), lasts


def _write(schedule: Schedule, *, unit: Unit) -> str | dict[str, Any]:
    if len(schedule.steps) == 1 and schedule.repeat is None:
        return unit.format(schedule.steps[0][1])
    written: dict[str, Any] = {
        "steps": {DURATION.format(time): unit.format(value) for time, value in schedule.steps},
    }
    return written if schedule.repeat is None else {**written, "repeat": DURATION.format(schedule.repeat)}


def _json_schema(unit: Unit, steps: type[Steps], *others: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [*others, unit.json_schema(), steps.model_json_schema(), Trace.model_json_schema()]}


BandwidthSchedule = Annotated[
    Schedule,
    PlainValidator(partial(_read, unit=BANDWIDTH, steps=BandwidthSteps, trace_unit="Mbps")),
    PlainSerializer(partial(_write, unit=BANDWIDTH), when_used="json"),
    WithJsonSchema(_json_schema(BANDWIDTH, BandwidthSteps)),
]
"""Bits per second over virtual time."""

UNLIMITED = "unlimited"
"""No limit of the path's own: only other links limit it."""


def _read_or_none(given: object, info: ValidationInfo) -> Schedule | Literal["unlimited"]:
    if given == UNLIMITED:
        return "unlimited"
    try:
        return _read(given, info, unit=BANDWIDTH, steps=BandwidthSteps, trace_unit="Mbps")
    except ValueError as error:
        if isinstance(given, str):
            raise ValueError(f"{error}, or 'unlimited'") from None
        raise


PathBandwidth = Annotated[
    Schedule | Literal["unlimited"],
    PlainValidator(_read_or_none),
    PlainSerializer(
        lambda bandwidth: bandwidth if bandwidth == UNLIMITED else _write(bandwidth, unit=BANDWIDTH), when_used="json"
    ),
    WithJsonSchema(_json_schema(BANDWIDTH, BandwidthSteps, {"const": UNLIMITED})),
]
"""Bits per second over virtual time, or `UNLIMITED`."""

CoresSchedule = Annotated[
    Schedule,
    PlainValidator(partial(_read, unit=CORES, steps=CoresSteps, trace_unit="cores")),
    PlainSerializer(partial(_write, unit=CORES), when_used="json"),
    WithJsonSchema(_json_schema(CORES, CoresSteps)),
]
"""Cores over virtual time."""

RateSchedule = Annotated[
    Schedule,
    PlainValidator(partial(_read, unit=RATE, steps=RateSteps, trace_unit="samples/s")),
    PlainSerializer(partial(_write, unit=RATE), when_used="json"),
    WithJsonSchema(_json_schema(RATE, RateSteps)),
]
"""Samples per second over virtual time."""
