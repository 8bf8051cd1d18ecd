"""What comes to the workers while they learn: how fast, what they keep of it, and how it changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
from pydantic import Field, field_validator, model_validator

from dlion_sim.scenario.capacity import RateSchedule, is_capacity
from dlion_sim.scenario.faults import RuleError
from dlion_sim.scenario.model import Model, ShortForm
from dlion_sim.scenario.schedule import Schedule
from dlion_sim.scenario.units import Duration, PositiveDuration

Floats = npt.NDArray[np.float64]
ClassNumber = Annotated[int, Field(ge=0)]


class ArrivalRates(ShortForm):
    """How fast samples come to the workers; "50/s" or a schedule is short for {rate: ...}."""

    short_form: ClassVar[dict[str, Any]] = {"type": ["string", "object"], "examples": ["50/s"]}

    rate: RateSchedule
    """Samples that come to each worker in a second; may change over time, as a capacity."""
    of: dict[str, RateSchedule] = Field(default_factory=dict)
    """The rates of workers that differ, by the name of their micro-cloud, or of the worker: {west: 10/s, west/0: 5/s}.
    """

    @classmethod
    def expand(cls, given: object) -> object:
        holds_fields = isinstance(given, dict) and not is_capacity(given)
        return given if holds_fields or isinstance(given, ArrivalRates) else {"rate": given}

    def at(self, cloud: str, worker: str) -> Schedule:
        """That of a worker, by the name of its micro-cloud and its own."""
        return self.of.get(worker, self.of.get(cloud, self.rate))


class Keep(ShortForm):
    """What a worker keeps of what has come, to train on: one of these, or all."""

    short_form: ClassVar[dict[str, Any]] = {"const": "all"}

    window: Annotated[int, Field(ge=1)] | None = None
    """The newest so many samples."""
    reservoir: Annotated[int, Field(ge=1)] | None = None
    """So many samples, each that has come with equal probability (Vitter's algorithm R, TOMS 1985)."""

    @classmethod
    def expand(cls, given: object) -> object:
        if isinstance(given, str) and given != "all":
            raise RuleError(f"{given!r} is no way to keep samples", allowed="all, {window: 2000}, {reservoir: 2000}")
        return {} if given == "all" else given

    @property
    def most(self) -> int | None:
        """Samples that are kept, at most; None: no bound."""
        return self.reservoir if self.window is None else self.window

    @model_validator(mode="after")
    def _keeps_in_one_way(self) -> Self:
        if self.window is not None and self.reservoir is not None:
            raise RuleError("window and reservoir are two ways to keep samples", allowed="all, or one of them")
        return self


class _OfClasses(Model):
    """Changes how often classes come."""

    clouds: list[str] = Field(default_factory=list)
    """Only at workers of these micro-clouds. None: at all."""

    def concerns(self, cloud: str) -> bool:
        """Whether it changes what comes to workers of a micro-cloud."""
        return not self.clouds or cloud in self.clouds


class LabelShift(_OfClasses):
    """Classes come more or less often than the workers' shards have them, and that changes."""

    kind: Literal["label_shift"] = "label_shift"
    classes: Annotated[list[ClassNumber], Field(min_length=1)]
    """Which ones."""
    weight: Annotated[dict[Duration, Annotated[float, Field(ge=0, le=1e6)]], Field(min_length=1)]
    """By what their share is multiplied, before the shares are made to sum to one again: at each of these times, along
    a line between two of them, e.g. {60 s: 1, 120 s: 0.1}. Before the first and after the last it stays."""

    @field_validator("weight", mode="wrap")
    @classmethod
    def _has_each_time_once(cls, given: object, read: Callable[[object], dict[float, float]]) -> dict[float, float]:
        weight = read(given)
        if isinstance(given, dict) and len(weight) < len(given):
            raise RuleError("two weights are at the same time")
        return dict(sorted(weight.items()))

    @property
    def what(self) -> str:
        """What happens, in words."""
        return "labels shift"

    @property
    def span(self) -> tuple[float, float]:
        """From when to when (s)."""
        return min(self.weight), max(self.weight)

    @property
    def changing(self) -> Sequence[int]:
        """The classes that it changes."""
        return self.classes

    def weight_at(self, times: Floats) -> Floats:
        """By what the classes' share is multiplied at some times (s) [N]."""
        return np.interp(times, list(self.weight), list(self.weight.values()))


class LateClass(_OfClasses):
    """A class of which nothing comes until some time."""

    kind: Literal["late_class"] = "late_class"
    late: Annotated[ClassNumber, Field(alias="class")]
    """Which one."""
    since: Annotated[PositiveDuration, Field(alias="from")]
    """When it begins to come."""

    @property
    def what(self) -> str:
        """What happens, in words."""
        return f"class {self.late} comes"

    @property
    def span(self) -> tuple[float, float]:
        """A moment: from when to when (s)."""
        return self.since, self.since

    @property
    def changing(self) -> Sequence[int]:
        """The class."""
        return [self.late]

    def weight_at(self, times: Floats) -> Floats:
        """By what the class's share is multiplied at some times (s) [N]."""
        return (times >= self.since).astype(np.float64)


class _OfInputs(Model):
    """Changes inputs, evenly over a time; what has come stays as it came."""

    kind: str
    since: Annotated[Duration, Field(alias="from")] = 0.0
    """When the change begins."""
    until: Annotated[PositiveDuration, Field(alias="to")]
    """When it is complete, and stays."""

    @property
    def what(self) -> str:
        """What happens, in words."""
        return self.kind

    @property
    def span(self) -> tuple[float, float]:
        """From when to when (s)."""
        return self.since, self.until

    @model_validator(mode="after")
    def _takes_time(self) -> Self:
        if self.until <= self.since:
            raise RuleError("the change must end after it begins", allowed="more than `from`", at=("to",))
        return self

    def part_at(self, times: Floats) -> Floats:
        """How much of the change there is at some times (s) [N], from 0 to 1."""
        return np.interp(times, [self.since, self.until], [0.0, 1.0])


class Brightness(_OfInputs):
    """Images become brighter, or darker."""

    kind: Literal["brightness"] = "brightness"
    by: Annotated[float, Field(ge=-1, le=1)]
    """What is added in the end to each entry, as a part of the range that entries have; they stay in that range."""


class Rotation(_OfInputs):
    """Images turn."""

    kind: Literal["rotation"] = "rotation"
    by: Annotated[float, Field(ge=-360, le=360)]
    """Degrees by which they have turned in the end, counter-clockwise."""


Drift = Annotated[LabelShift | LateClass | Brightness | Rotation, Field(discriminator="kind")]


class Stream(Model):
    """Samples come to the workers while they learn: a worker trains on those of its shard that have come by then.
    Each is tested before it is trained on; what comes may change."""

    arrivals: ArrivalRates
    """How fast samples come."""
    initial: Annotated[int, Field(ge=1)] = 500
    """Samples that each worker has from the start: a batch, at least."""
    keep: Keep = Keep()
    """What of it a worker trains on, e.g. {window: 2000} or {reservoir: 2000}. By default all."""
    drift: list[Drift] = Field(default_factory=list)
    """How what comes changes; changes of one kind add up, and weights of one class multiply."""

    @property
    def of_classes(self) -> list[tuple[int, LabelShift | LateClass]]:
        """The changes of classes, with their places in the list."""
        return [(place, each) for place, each in enumerate(self.drift) if isinstance(each, LabelShift | LateClass)]

    @property
    def of_inputs(self) -> list[tuple[int, Brightness | Rotation]]:
        """The changes of inputs, with their places in the list."""
        return [(place, each) for place, each in enumerate(self.drift) if isinstance(each, Brightness | Rotation)]
