"""What the summary tells of machines that come and go."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

from dlion_sim.results.json_document import Fraction, Seconds
from dlion_sim.results.manifest import Count


class Delays(TypedDict):
    """How long something took (s); None where it never happened."""

    mean: Seconds | None
    most: Seconds | None


class Messages(TypedDict):
    """What became of messages. All that were sent are delivered, cut, refused or, at the run's end, under way."""

    sent: Count
    delivered: Count
    cut: Count
    """By the loss of an end or of the link, in a queue or on their way."""
    refused: Count
    """Sent to who was gone, of which the sender did not know yet."""
    under_way: Count


class Availability(TypedDict, total=False):
    """Who was there, and what it cost that others were not."""

    up: list[Fraction]
    """The part of the run that each worker's process ran."""
    computed: Count
    """Samples, those of iterations that a worker's loss cut included."""
    useful: Count
    """Of these, what is in the state of somebody: not those of iterations that were cut, or from before all state was
    lost."""
    lost_seconds: Seconds
    """That were computed in iterations which were cut."""
    state_bytes: Count
    """That newcomers have fetched."""
    to_notice: Delays
    """From a loss until a peer knows of it."""
    to_join: Delays
    """From the start of a process until it takes part."""
    messages: Messages
    """Of simulations."""


def columns(told: Mapping[str, Any]) -> dict[str, Any]:
    """The same in a table's columns: shares, and means."""
    up, computed = told.get("up"), told.get("computed")
    return {
        "up_share": sum(up) / len(up) if up else None,
        "useful_share": told.get("useful", 0) / computed if computed else None,
        **{name: told.get(name, {}).get("mean") for name in ("to_notice", "to_join")},
    }
