"""What machines and traffic cost."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from dlion_sim.scenario.model import Model
from dlion_sim.scenario.units import Duration, PositiveDuration

Price = Annotated[float, Field(ge=0, le=1e6)]


class Billing(Model):
    """How machines' time is billed; by default as Amazon EC2 does."""

    step: PositiveDuration = 1.0
    """Time is billed in steps of so long, a begun one as a whole."""
    least: Duration = 60.0
    """So much is billed in any case."""


class Prices(Model):
    """What machines and traffic cost, in dollars or whatever the prices are in."""

    catalog: str | None = None
    """What tells of the instances that workers name: a catalog that ships, or a CSV file with
    SkyPilot's columns, relative to the scenario file's folder. It is read when the scenario is."""
    spot: bool = False
    """Whether all machines that do not say so themselves have spot prices: the catalog's, or the `price` beside them.
    When they are taken away is for `availability` to say; they are paid only while they are there, from the start
    of the machine, not of its process (`availability.restart`)."""
    egress: Price | dict[str, Price | dict[str, Price]] | None = None
    """What a GB (1e9 bytes) costs that leaves one cloud for another: one price; or by sending cloud, {east: 0.02, west:
    0.09}; or of some by receiving one too, {east: {west: 0.02, north: 0.05}}. By default traffic has no price."""
    billing: Billing = Billing()
    """How machines' time is billed."""

    def egress_price(self, sender: str, receiver: str) -> float | None:
        """Of a GB from one cloud to another; None where it has none."""
        price = self.egress.get(sender) if isinstance(self.egress, dict) else self.egress
        return price.get(receiver) if isinstance(price, dict) else price
