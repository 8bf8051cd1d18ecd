"""Workers' machines: how fast they compute and how fast they send."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import Field, field_validator

from dlion_sim.scenario.capacity import BandwidthSchedule, CoresSchedule, is_capacity
from dlion_sim.scenario.devices import DEVICES, cores_of
from dlion_sim.scenario.model import Model, ShortForm
from dlion_sim.scenario.schedule import Schedule


class Compute(ShortForm):
    """A machine's speed; "24 cores", a device's name or a schedule is short for {cores: ...}."""

    short_form: ClassVar[dict[str, Any]] = {"type": ["string", "number", "object"], "examples": ["24 cores", *DEVICES]}

    cores: CoresSchedule = Schedule.constant(8.0)
    """How many cores the machine is worth, or a device's name; may change over time."""
    noise: Annotated[float, Field(ge=0, le=3)] = 0.0
    """Sigma of the lognormal factor, of median 1, by which the time of each computation varies."""

    @classmethod
    def expand(cls, given: object) -> object:
        holds_fields = isinstance(given, Mapping) and not is_capacity(given)
        return given if holds_fields or isinstance(given, Compute) else {"cores": given}

    @field_validator("cores", mode="before")
    @classmethod
    def _of_device(cls, given: object) -> object:
        return cores_of(given)


class Nic(ShortForm):
    """A machine's network card; "50 Mbps" or a schedule is short for both directions."""

    short_form: ClassVar[dict[str, Any]] = {"type": ["string", "object"], "examples": ["50 Mbps"]}

    up: BandwidthSchedule
    """The bandwidth at which the machine sends."""
    down: BandwidthSchedule
    """The bandwidth at which the machine receives."""

    @classmethod
    def expand(cls, given: object) -> object:
        holds_fields = isinstance(given, Mapping) and not is_capacity(given)
        return given if holds_fields or isinstance(given, Nic) else {"up": given, "down": given}


GIGABIT = Nic(up=Schedule.constant(1e9), down=Schedule.constant(1e9))
"""The network card of a machine that states none."""


class Rented(Model):
    """What is known of the cost of a machine."""

    instance: str | None = None
    """Its name in `prices.catalog`, which tells what it is and costs, where nothing beside this does."""
    price: Annotated[float, Field(ge=0, le=1e6)] | None = None
    """What an hour of it costs; 0 if nothing."""
    watts: Annotated[float, Field(ge=0, le=1e6)] | None = None
    """The power that it draws, on average over a run."""
    carbon: Annotated[float, Field(ge=0, le=1e6)] | None = None
    """Grams of CO2 for each kWh where it is."""
    spot: bool | None = None
    """Whether it has the catalog's spot price or its own `price` is one: it is paid and draws power only while it is
    there. By default as `prices.spot`."""


class WorkerGroup(Rented):
    """Workers that are alike, one to a machine. An instance's cores are those of its GPUs, as devices have them,
    together; or its vCPUs, where it has none."""

    count: Annotated[int, Field(ge=1, le=100_000)] = 1
    """How many workers there are of the kind."""
    compute: Compute = Compute()
    """How fast each computes."""
    nic: Nic = GIGABIT
    """How fast each sends and receives."""
