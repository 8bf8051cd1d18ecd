"""How it is written in YAML when something is not there: intervals, how many there are, or a random process."""

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
"""Seconds that something is there, or is not, at least on average; and of a period."""

Kind = Literal["crash", "preemption", "leave"]
Lasting = Annotated[Duration, Field(ge=LEAST)]


def _read(given: object) -> tuple[float, float]:
    if isinstance(given, tuple):
        return given
    if not isinstance(given, list) or len(given) != 2:
        raise RuleError("must be a pair of times", allowed="[10 s, 20 s]; [10 s, null] for good")
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
"""[from, to) in seconds; written as two times, the second null for good."""


class Timetable(Model):
    """When something is down."""

    down: list[Interval]
    """From when until when it is down, in order; until null: for good."""
    repeat: Lasting | None = None
    """Period after which these times begin anew; none: they don't."""

    @model_validator(mode="after")
    def _is_in_order(self) -> Self:
        for (_, end), (begin, _) in pairwise(self.down):
            if begin < end:
                late = "is for good" if math.isinf(end) else f"lasts until {DURATION.format(end)}"
                problem = f"one begins at {DURATION.format(begin)}, and the one before it {late}"
                raise RuleError(f"times must be one after another: {problem}", at=("down",))
        if self.repeat is None or not self.down:
            return self
        if self.down[-1][1] - self.down[0][0] > self.repeat:
            problem = f"the last of these times ends after the first begins anew, {DURATION.format(self.repeat)} later"
            raise RuleError(problem, at=("down",))
        if sum(end - begin for begin, end in self.down) >= self.repeat:
            raise RuleError("is down at all times", allowed="down: [[0 s, null]]", at=("down",))
        return self


class OutageModel(Model):
    """What all entries may say."""

    kind: Kind | None = None
    """How it goes; by default as `availability.kind`."""
    notice: Duration | None = None
    """How long before a preemption it is told; by default `availability.notice`."""

    @property
    def is_endless(self) -> bool:
        """Whether it goes on for as long as the run."""
        return getattr(self, "repeat", None) is not None


class Down(Timetable, OutageModel):
    """It is down at given times, e.g. {down: [[10 s, 20 s], [50 s, null]]}."""


class Counts(OutageModel):
    """So many are up, e.g. {counts: {0 s: 8, 100 s: 6}}, of a fleet of the highest count, or of all that the entry
    names if these are more; which go, and which come back, is drawn by the seed."""

    counts: dict[Duration, Annotated[int, Field(ge=0, le=10_000)]]
    """How many are up from each time on; the first time is 0."""
    repeat: Lasting | None = None
    """Period after which these begin anew; none: the last one holds for ever."""

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
    """Machines that are down at given times, each at its own. Which of all that the entry names is which of these is
    drawn by the seed."""

    machines: Annotated[list[Timetable], Field(min_length=1)]
    """When each machine is down."""

    @property
    def is_endless(self) -> bool:
        return any(each.repeat is not None for each in self.machines)


class Process(OutageModel):
    """It goes and comes back at random, each that the entry names for itself, by the run's seed."""

    start: Literal["up", "down", "any"] = "up"
    """Whether it is there at 0 s; any: as at a time long after the process began."""

    @property
    def is_endless(self) -> bool:
        return True


class ExponentialTimes(Process):
    """Times up and times down are exponential (memoryless)."""

    process: Literal["exponential"]
    up: Lasting
    """Mean time until it goes."""
    down: Lasting
    """Mean time until it is back."""


class WeibullTimes(Process):
    """Times up, and times down, have a Weibull distribution."""

    process: Literal["weibull"]
    up: Lasting
    """Mean time until it goes."""
    down: Lasting
    """Mean time until it is back."""
    shape: Annotated[float, Field(ge=0.1, le=100)] = 0.7
    """Shape of the times up. Less than 1: what has just come is the likeliest to go, as in clusters (Schroeder and
    Gibson, DSN 2006: 0.7 to 0.8)."""
    down_shape: Annotated[float, Field(ge=0.1, le=100)] = 1.0
    """Shape of the times down; 1: exponential."""


class MarkovTimes(Process):
    """After each step of time, what is up goes with one probability, and what is down comes back with another."""

    process: Literal["markov"]
    step: Lasting
    """Time between steps."""
    fail: Annotated[float, Field(gt=0, le=1)]
    """Probability that it goes at a step."""
    recover: Annotated[float, Field(gt=0, le=1)]
    """Probability that it is back at a step."""

    @model_validator(mode="after")
    def _lasts(self) -> Self:
        if self.step / min(self.fail, self.recover) > DURATION.most:
            raise RuleError(
                "times of this process are too long", allowed=f"{DURATION.format(DURATION.most)} on average"
            )
        return self


class EmpiricalTimes(Process):
    """Times up, and times down, are drawn from lists of such."""

    process: Literal["empirical"]
    up: Annotated[list[Lasting], Field(min_length=1)]
    """Times until it goes, each as likely."""
    down: Annotated[list[Lasting], Field(min_length=1)]
    """Times until it is back, each as likely."""


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
    """The entry that a mapping of YAML writes: a process by its name, and others by their main key.

    Raises ValidationError or RuleError.
    """
    if "process" in given:
        process = given["process"]
        if not isinstance(process, str) or process not in _PROCESSES:
            raise RuleError(f"{process!r} is unknown", allowed=", ".join(map(str, _PROCESSES)), at=("process",))
        return _PROCESSES[process].model_validate(given)
    forms = [form for form in _FORMS if form in given]
    if len(forms) != 1:
        problem = "says in several ways when it is down" if forms else "says not when it is down"
        raise RuleError(problem, allowed=f"one of {', '.join([*_FORMS, 'trace', 'process'])}")
    found = _FORMS[forms[0]].model_validate(given)
    if isinstance(found, Counts) and len(found.counts) < len(given["counts"]):
        raise RuleError("two counts are at the same time", at=("counts",))
    return found
