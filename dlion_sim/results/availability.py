"""The summary's part on availability: outages, detection, rejoining."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

from dlion_sim.results.json_document import Fraction, Seconds
from dlion_sim.results.manifest import Count


class Delays(TypedDict):
    """How long something took (s); None if it never happened."""

    mean: Seconds | None
    most: Seconds | None


class Messages(TypedDict):
    """Messages by outcome: all that were sent are delivered, cut, refused or, at the run's end, in transit."""

    sent: Count
    delivered: Count
    cut: Count
    """Lost with a participant or link, in a queue or in transit."""
    refused: Count
    """Sent to a lost participant before the sender detected it."""
    under_way: Count


class Availability(TypedDict, total=False):
    """Availability of the participants, and the cost of outages."""

    up: list[Fraction]
    """The share of the run in which each worker's process ran."""
    computed: Count
    """Samples, with those of iterations that were lost with their worker."""
    useful: Count
    """Of these, those in a worker's state: not of lost iterations, nor from before all state was lost."""
    lost_seconds: Seconds
    """Computed in lost iterations."""
    state_bytes: Count
    """Transferred to joining workers."""
    to_notice: Delays
    """From a loss until a peer detects it."""
    to_join: Delays
    """From the start of a process until it is a member."""
    messages: Messages
    """Of simulations."""


def columns(availability: Mapping[str, Any]) -> dict[str, Any]:
    """The same in a table's columns: shares, and means."""
    up, computed = availability.get("up"), availability.get("computed")
    return {
        "up_share": sum(up) / len(up) if up else None,
        "useful_share": availability.get("useful", 0) / computed if computed else None,
        **{name: availability.get(name, {}).get("mean") for name in ("to_notice", "to_join")},
    }
