"""Streams: samples that arrive during training, their rates, what workers keep of them, and drift."""

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
    """Arrival rates; "50/s" or a schedule is short for {rate: ...}."""

    short_form: ClassVar[dict[str, Any]] = {"type": ["string", "object"], "examples": ["50/s"]}

    rate: RateSchedule
    """Samples per second at each worker."""
    of: dict[str, RateSchedule] = Field(default_factory=dict)
    """Rates of other workers, by name of micro-cloud or worker: {west: 10/s, west/0: 5/s}."""

    @classmethod
    def expand(cls, given: object) -> object:
        holds_fields = isinstance(given, dict) and not is_capacity(given)
        return given if holds_fields or isinstance(given, ArrivalRates) else {"rate": given}

    def at(self, cloud: str, worker: str) -> Schedule:
        """The rate of a worker, by the names of its micro-cloud and its own."""
        return self.of.get(worker, self.of.get(cloud, self.rate))


class Keep(ShortForm):
    """Which arrived samples a worker trains on: a window, a reservoir, or all."""

    short_form: ClassVar[dict[str, Any]] = {"const": "all"}

    window: Annotated[int, Field(ge=1)] | None = None
    """Number of newest samples."""
    reservoir: Annotated[int, Field(ge=1)] | None = None
    """Size of a uniform random sample of all that arrived (Vitter's algorithm R, TOMS 1985)."""

    @classmethod
    def expand(cls, given: object) -> object:
        if isinstance(given, str) and given != "all":
            raise RuleError(f"{given!r} is not a way to keep samples", allowed="all, {window: 2000}, {reservoir: 2000}")
        return {} if given == "all" else given

    @property
    def most(self) -> int | None:
        """Maximum number of samples kept; None: no limit."""
        return self.reservoir if self.window is None else self.window

    @model_validator(mode="after")
    def _keeps_in_one_way(self) -> Self:
        if self.window is not None and self.reservoir is not None:
            raise RuleError("window and reservoir exclude each other", allowed="all, or one of them")
        return self


class _OfClasses(Model):
    """A change of class frequencies."""

    clouds: list[str] = Field(default_factory=list)
    """Micro-clouds whose workers it applies to. By default all."""

    def concerns(self, cloud: str) -> bool:
        """Whether it applies to workers of a micro-cloud."""
        return not self.clouds or cloud in self.clouds


class LabelShift(_OfClasses):
    """The frequency of classes changes, relative to the workers' shards."""

    kind: Literal["label_shift"] = "label_shift"
    classes: Annotated[list[ClassNumber], Field(min_length=1)]
    """The classes."""
    weight: Annotated[dict[Duration, Annotated[float, Field(ge=0, le=1e6)]], Field(min_length=1)]
    """Factor on their share over time, interpolated linearly, e.g. {60 s: 1, 120 s: 0.1}. Shares are then
    normalized."""

    @field_validator("weight", mode="wrap")
    @classmethod
    def _has_each_time_once(cls, given: object, read: Callable[[object], dict[float, float]]) -> dict[float, float]:
        weight = read(given)
        if isinstance(given, dict) and len(weight) < len(given):
            raise RuleError("two weights are at the same time")
        return dict(sorted(weight.items()))

    @property
    def what(self) -> str:
        """Description of the change."""
        return "labels shift"

    @property
    def span(self) -> tuple[float, float]:
        """Start and end (s)."""
        return min(self.weight), max(self.weight)

    @property
    def changing(self) -> Sequence[int]:
        """The affected classes."""
        return self.classes

    def weight_at(self, times: Floats) -> Floats:
        """Factor on the classes' share at some times (s) [N]."""
        return np.interp(times, list(self.weight), list(self.weight.values()))


class LateClass(_OfClasses):
    """A class whose samples arrive only from some time on."""

    kind: Literal["late_class"] = "late_class"
    late: Annotated[ClassNumber, Field(alias="class")]
    """The class."""
    since: Annotated[PositiveDuration, Field(alias="from")]
    """Time of its first arrivals."""

    @property
    def what(self) -> str:
        """Description of the change."""
        return f"class {self.late} comes"

    @property
    def span(self) -> tuple[float, float]:
        """Start and end (s), which are equal."""
        return self.since, self.since

    @property
    def changing(self) -> Sequence[int]:
        """The affected class."""
        return [self.late]

    def weight_at(self, times: Floats) -> Floats:
        """Factor on the class's share at some times (s) [N]."""
        return (times >= self.since).astype(np.float64)


class _OfInputs(Model):
    """A gradual change of inputs; samples that arrived earlier are unchanged."""

    kind: str
    since: Annotated[Duration, Field(alias="from")] = 0.0
    """Start of the change."""
    until: Annotated[PositiveDuration, Field(alias="to")]
    """End of the change, which then stays complete."""

    @property
    def what(self) -> str:
        """Description of the change."""
        return self.kind

    @property
    def span(self) -> tuple[float, float]:
        """Start and end (s)."""
        return self.since, self.until

    @model_validator(mode="after")
    def _takes_time(self) -> Self:
        if self.until <= self.since:
            raise RuleError("the change must end after it begins", allowed="more than `from`", at=("to",))
        return self

    def part_at(self, times: Floats) -> Floats:
        """Progress of the change at some times (s) [N], from 0 to 1."""
        return np.interp(times, [self.since, self.until], [0.0, 1.0])


class Brightness(_OfInputs):
    """Images become brighter or darker."""

    kind: Literal["brightness"] = "brightness"
    by: Annotated[float, Field(ge=-1, le=1)]
    """Final addition to each entry, as a share of their range, to which they are clipped."""


class Rotation(_OfInputs):
    """Images are rotated."""

    kind: Literal["rotation"] = "rotation"
    by: Annotated[float, Field(ge=-360, le=360)]
    """Final rotation in degrees, counter-clockwise."""


Drift = Annotated[LabelShift | LateClass | Brightness | Rotation, Field(discriminator="kind")]


class Stream(Model):
    """A worker trains on the samples of its shard that have arrived. Each is tested before it is trained on
    (prequential)."""

    arrivals: ArrivalRates
    """Arrival rates."""
    initial: Annotated[int, Field(ge=1)] = 500
    """Samples of each worker at the start, at least a batch."""
    keep: Keep = Keep()
    """Which arrived samples a worker trains on, e.g. {window: 2000} or {reservoir: 2000}; by default all."""
    drift: list[Drift] = Field(default_factory=list)
    """Changes of the arriving samples; changes of one kind add up, weights of one class multiply."""

    @property
    def of_classes(self) -> list[tuple[int, LabelShift | LateClass]]:
        """The changes of classes, with their places in the list."""
        return [(place, each) for place, each in enumerate(self.drift) if isinstance(each, LabelShift | LateClass)]

    @property
    def of_inputs(self) -> list[tuple[int, Brightness | Rotation]]:
        """The changes of inputs, with their places in the list."""
        return [(place, each) for place, each in enumerate(self.drift) if isinstance(each, Brightness | Rotation)]
