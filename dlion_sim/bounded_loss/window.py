"""A congestion window as DCTCP has it (Alizadeh et al., SIGCOMM'10; RFC 8257), compiled; in packets, times in seconds.

A round is over when what was sent at its beginning is answered. At its end, if packets of it were marked or lost, the
window shrinks by half of `alpha`, the smoothed part of packets that were. It grows by slow start up to the first such
packet or `threshold`, then by one packet a round; only while at least half of it is in use.

The functions take a record whose type has `FIELDS` among its own. Without congestion control the window is infinite.
"""

from __future__ import annotations

import numpy as np
from numba import njit

FIELDS = [
    ("window", np.float64),  # packets that may be under way
    ("threshold", np.float64),  # where slow start ends
    ("alpha", np.float64),  # smoothed part of packets that are marked or lost
    ("round_end", np.int64),  # the round is over when as many packets as this are answered; NO_ROUND
    ("left", np.int64),  # packets that have left the network in this round
    ("congested", np.int64),  # of those, marked or lost
    ("round_trip", np.float64),  # smoothed (RFC 6298)
    ("variation", np.float64),  # of round trips, smoothed
    ("measured", np.int64),  # whether any has been
    ("least_timeout", np.float64),  # beyond a round trip
    ("backoff", np.int64),  # timeouts in a row
]
NO_ROUND = -1
LEAST_WINDOW = 3
"""Packets. With a window of two, no feedback would come if the second packet is lost, as every second one has it."""
GAIN = 1 / 16
"""Of alpha (RFC 8257)."""
_MOST_TIMEOUT = 60.0
_MOST_BACKOFF = 10


@njit(cache=True)
def open_window(record, initial, round_trip, least_timeout):
    """A new connection, whose round trip is `round_trip` seconds until one is measured."""
    record["window"] = max(LEAST_WINDOW, initial)
    record["threshold"] = np.inf
    record["alpha"] = 1.0
    record["round_trip"] = round_trip
    record["variation"] = round_trip / 2
    record["measured"] = 0
    record["least_timeout"] = least_timeout
    record["backoff"] = 0
    begin_rounds(record)


@njit(cache=True)
def begin_rounds(record):
    """Restart the count of packets."""
    record["round_end"] = NO_ROUND
    record["left"] = 0
    record["congested"] = 0


@njit(cache=True)
def answered(record, left, congested, under_way, count, sent):
    """`left` packets have left the network, `congested` of them marked or lost, of `under_way` ones.

    `count` packets are answered until now, and `sent` have been sent.
    """
    if record["round_end"] == NO_ROUND:
        record["round_end"] = sent
    if congested > 0:
        record["threshold"] = min(record["threshold"], record["window"])
    elif 2 * under_way >= record["window"]:
        grown = left if record["window"] < record["threshold"] else left / record["window"]
        record["window"] += grown
    record["left"] += left
    record["congested"] += congested
    if count >= record["round_end"] and record["left"] > 0:
        part = min(1.0, record["congested"] / record["left"])
        record["alpha"] += GAIN * (part - record["alpha"])
        if part > 0:
            record["window"] = max(LEAST_WINDOW, record["window"] * (1 - record["alpha"] / 2))
            record["threshold"] = record["window"]
        record["round_end"] = sent if sent > count else NO_ROUND
        record["left"] = 0
        record["congested"] = 0


@njit(cache=True)
def timed_out(record):
    """A timeout: continue with the least window, and double the next timeout."""
    record["backoff"] += 1
    if record["window"] < np.inf:
        record["threshold"] = max(LEAST_WINDOW, record["window"] / 2)
        record["window"] = LEAST_WINDOW
    begin_rounds(record)


@njit(cache=True)
def heard(record, round_trip):
    """Measure a round trip (s), more than 0."""
    record["backoff"] = 0
    if record["measured"]:
        record["variation"] += (abs(round_trip - record["round_trip"]) - record["variation"]) / 4
        record["round_trip"] += (round_trip - record["round_trip"]) / 8
    else:
        record["round_trip"] = round_trip
        record["variation"] = round_trip / 2
        record["measured"] = 1


@njit(cache=True)
def timeout(record):
    """Seconds without an answer after which packets under way are considered lost."""
    once = record["round_trip"] + max(record["least_timeout"], 4 * record["variation"])
    return min(_MOST_TIMEOUT, once * 2.0 ** min(record["backoff"], _MOST_BACKOFF))


@njit(cache=True)
def quiet(record):
    """Seconds within which an answer usually arrives."""
    return record["round_trip"] + 4 * record["variation"]
