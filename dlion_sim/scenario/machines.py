"""Workers' machines: compute, NIC and price."""

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
    """Number of cores, or a device's name."""
    noise: Annotated[float, Field(ge=0, le=3)] = 0.0
    """Sigma of the lognormal factor (median 1) on the time of each computation."""

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
    """Bandwidth for sending."""
    down: BandwidthSchedule
    """Bandwidth for receiving."""

    @classmethod
    def expand(cls, given: object) -> object:
        holds_fields = isinstance(given, Mapping) and not is_capacity(given)
        return given if holds_fields or isinstance(given, Nic) else {"up": given, "down": given}


GIGABIT = Nic(up=Schedule.constant(1e9), down=Schedule.constant(1e9))
"""The default NIC."""


class Rented(Model):
    """The cost of a machine."""

    instance: str | None = None
    """Name in `prices.catalog`, which has compute, NIC and price unless they are given here."""
    price: Annotated[float, Field(ge=0, le=1e6)] | None = None
    """Price per hour; 0: free."""
    watts: Annotated[float, Field(ge=0, le=1e6)] | None = None
    """Average power during a run."""
    carbon: Annotated[float, Field(ge=0, le=1e6)] | None = None
    """Grams of CO2 per kWh at its place."""
    spot: bool | None = None
    """Whether cost and energy count only while it is up (spot). By default `prices.spot`."""


class WorkerGroup(Rented):
    """Equal workers, each on its own machine. An instance has the cores of all its GPUs, or its vCPUs."""

    count: Annotated[int, Field(ge=1, le=100_000)] = 1
    """Number of workers in the group."""
    compute: Compute = Compute()
    """Compute speed of each."""
    nic: Nic = GIGABIT
    """Bandwidths of each."""
