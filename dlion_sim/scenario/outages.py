"""Outages in YAML: intervals, counts, machines, or a random process."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import Annotated, Any, Literal, Self

from pydantic import Field, PlainSerializer, PlainValidator, WithJsonSchema, model_validator

from dlion_sim.scenario.faults import RuleError
from dlion_sim.scenario.model import Model
from dlion_sim.scenario.units import DURATION, Duration

LEAST = 0.001
"""Minimum in seconds of mean times up and down, and of a period."""

Kind = Literal["crash", "preemption", "leave"]
Lasting = Annotated[Duration, Field(ge=LEAST)]


def _read(given: object) -> tuple[float, float]:
    if isinstance(given, tuple):
        return given
    if not isinstance(given, list) or len(given) != 2:
        raise RuleError("must be a pair of times", allowed="[10 s, 20 s]; [10 s, null] for a permanent outage")
    begin, end = DURATION.parse(given[0]), math.inf if given[1] is None else DURATION.parse(given[1])
    if end <= begin:
        raise RuleError(f"ends at {DURATION.format(end)}, which is not after {DURATION.format(begin)}")
    return begin, end


def _write(interval: tuple[float, float]) -> list[str | None]:
    begin, end = interval
    return [DURATION.format(begin), None if math.isinf(end) else DURATION.format(end)]


Interval = Annotated[
    tuple[float, float],
    PlainValidator(_read),
    PlainSerializer(_write, when_used="json"),
    WithJsonSchema(
        {
            "type": "array",
            "items": {"anyOf": [DURATION.json_schema(), {"type": "null"}]},
            "minItems": 2,
            "maxItems": 2,
        }
    ),
]
"""[from, to) in seconds; written as two times, the second null for a permanent outage."""


class Timetable(Model):
    """A list of outages."""

    down: list[Interval]
    """Outages as [from, to], in order; to null: permanent."""
    repeat: Lasting | None = None
    """Period after which the outages repeat."""

    @model_validator(mode="after")
    def _is_in_order(self) -> Self:
        for (_, end), (begin, _) in pairwise(self.down):
            if begin < end:
                late = "is permanent" if math.isinf(end) else f"lasts until {DURATION.format(end)}"
                problem = f"one begins at {DURATION.format(begin)}, and the previous one {late}"
                raise RuleError(f"times must be one after another: {problem}", at=("down",))
        if self.repeat is None or not self.down:
            return self
        if self.down[-1][1] - self.down[0][0] > self.repeat:
            problem = f"the last outage ends after the first one repeats, {DURATION.format(self.repeat)} later"
            raise RuleError(problem, at=("down",))
        if sum(end - begin for begin, end in self.down) >= self.repeat:
            raise RuleError("is down at all times", allowed="down: [[0 s, null]]", at=("down",))
        return self


class OutageModel(Model):
    """Keys of all entries."""

    kind: Kind | None = None
    """Their kind; by default `availability.kind`."""
    notice: Duration | None = None
    """Their notice; by default `availability.notice`."""

    @property
    def is_endless(self) -> bool:
        """Whether the outages repeat without end."""
        return getattr(self, "repeat", None) is not None


class Down(Timetable, OutageModel):
    """Outages at given times, e.g. {down: [[10 s, 20 s], [50 s, null]]}."""


class Counts(OutageModel):
    """Number of machines up over time, e.g. {counts: {0 s: 8, 100 s: 6}}, of a fleet as large as the highest count or
    the entry's participants. The seed determines which ones leave and return."""

    counts: dict[Duration, Annotated[int, Field(ge=0, le=10_000)]]
    """Number up from each time on; the first is 0."""
    repeat: Lasting | None = None
    """Period after which the counts repeat."""

    @model_validator(mode="after")
    def _is_in_order(self) -> Self:
        times = list(self.counts)
        if not times or times[0] != 0:
            raise RuleError("the first count must be at 0 s", at=("counts",))
        for earlier, later in pairwise([*times, *([self.repeat] if self.repeat is not None else [])]):
            if later <= earlier:
                late, early = DURATION.format(later), DURATION.format(earlier)
                raise RuleError(f"times must increase, but {late} comes after {early}", at=("counts",))
        return self


class Machines(OutageModel):
    """Machines with outages of their own. The seed determines which participant gets which."""

    machines: Annotated[list[Timetable], Field(min_length=1)]
    """The outages of each machine."""

    @property
    def is_endless(self) -> bool:
        return any(each.repeat is not None for each in self.machines)


class Process(OutageModel):
    """Random outages by the run's seed, independent for each participant."""

    start: Literal["up", "down", "any"] = "up"
    """State at 0 s; any: drawn from the stationary distribution."""

    @property
    def is_endless(self) -> bool:
        return True


class ExponentialTimes(Process):
    """Times up and times down are exponential (memoryless)."""

    process: Literal["exponential"]
    up: Lasting
    """Mean time up."""
    down: Lasting
    """Mean time down."""


class WeibullTimes(Process):
    """Times up, and times down, have a Weibull distribution."""

    process: Literal["weibull"]
    up: Lasting
    """Mean time up."""
    down: Lasting
    """Mean time down."""
    shape: Annotated[float, Field(ge=0.1, le=100)] = 0.7
    """Shape of the times up. Below 1, the failure rate falls with the time up, as in clusters (Schroeder and Gibson,
    DSN 2006: 0.7 to 0.8)."""
    down_shape: Annotated[float, Field(ge=0.1, le=100)] = 1.0
    """Shape of the times down; 1: exponential."""


class MarkovTimes(Process):
    """A Markov chain: at each step, a machine that is up fails, and one that is down recovers, with fixed
    probabilities."""

    process: Literal["markov"]
    step: Lasting
    """Time between steps."""
    fail: Annotated[float, Field(gt=0, le=1)]
    """Probability to fail at a step."""
    recover: Annotated[float, Field(gt=0, le=1)]
    """Probability to recover at a step."""

    @model_validator(mode="after")
    def _lasts(self) -> Self:
        if self.step / min(self.fail, self.recover) > DURATION.most:
            raise RuleError(
                "times of this process are too long", allowed=f"{DURATION.format(DURATION.most)} on average"
            )
        return self


class EmpiricalTimes(Process):
    """Times up and times down are drawn from lists."""

    process: Literal["empirical"]
    up: Annotated[list[Lasting], Field(min_length=1)]
    """Times up, all equally likely."""
    down: Annotated[list[Lasting], Field(min_length=1)]
    """Times down, all equally likely."""


AnyProcess = ExponentialTimes | WeibullTimes | MarkovTimes | EmpiricalTimes
AnyOutageModel = Down | Counts | Machines | AnyProcess

_FORMS: Mapping[str, type[OutageModel]] = {"down": Down, "counts": Counts, "machines": Machines}
_PROCESSES: Mapping[object, type[Process]] = {
    "exponential": ExponentialTimes,
    "weibull": WeibullTimes,
    "markov": MarkovTimes,
    "empirical": EmpiricalTimes,
}


def outage_model_of(given: Mapping[str, Any]) -> OutageModel:
    """The entry of a mapping in YAML: a process by its name, other forms by their main key.

    Raises ValidationError or RuleError.
    """
    if "process" in given:
        process = given["process"]
        if not isinstance(process, str) or process not in _PROCESSES:
            raise RuleError(f"{process!r} is unknown", allowed=", ".join(map(str, _PROCESSES)), at=("process",))
        return _PROCESSES[process].model_validate(given)
    forms = [form for form in _FORMS if form in given]
    if len(forms) != 1:
        problem = "has several forms of outages" if forms else "has no outages"
        raise RuleError(problem, allowed=f"one of {', '.join([*_FORMS, 'trace', 'process'])}")
    found = _FORMS[forms[0]].model_validate(given)
    if isinstance(found, Counts) and len(found.counts) < len(given["counts"]):
        raise RuleError("two counts are at the same time", at=("counts",))
    return found
