"""The endpoints of DLCP (Wang et al., arXiv 2008.08445), compiled, for messages of which a part may be missing.

The sender sends all packets once, which is a pass, and then a PROBE. The receiver answers with a BITMAP of the received
packets, and the missing ones make the next pass. As soon as the bound allows, the receiver sends STOP. These three, and
the START before them, are sent reliably; packets and feedback may be lost, duplicated or reordered. Each packet sent
has a send number, from 0 on, by which feedback distinguishes resent packets from late ones.

No I/O, no clock, no random numbers: the caller transmits packets and passes the time (`now`, in seconds). State is a
record of `SENDER` for each connection, which is opened once and sends one message after another, and one of `RECEIVER`
for each message.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from dlion_sim.bounded_loss.window import (
    FIELDS,
    answered,
    begin_rounds,
    heard,
    open_window,
    quiet,
    timed_out,
    timeout,
)

SENDER = np.dtype(
    [
        *FIELDS,  # kept from message to message
        ("phase", np.int64),
        ("packets", np.int64),  # of the message
        ("position", np.int64),  # in the order of sending
        ("sent", np.int64),  # so many packets, counting those that were sent again
        ("gone", np.int64),  # of these are not under way any more, as far as is known
        ("highest", np.int64),  # the last send number in feedback
        ("received", np.int64),  # packets, by feedback
        ("marked", np.int64),  # of these
        ("lost", np.int64),  # below `highest` and not received
        ("since", np.float64),  # when the timeout began
    ]
)
IDLE, SENDING, DRAINING, PROBING = range(4)
"""Phases: nothing to send; in a pass; after a pass; waiting for the answer to a PROBE."""
WAIT, PROBE = -1, -2
"""Results of `take` other than a packet: nothing to send; a PROBE to send."""

RECEIVER = np.dtype(
    [
        ("short", np.int64),  # groups that miss more than they may
        ("stops_early", np.int64),
        ("stopped", np.int64),
        ("received", np.int64),  # packets, with duplicates
        ("duplicates", np.int64),  # of these
        ("marked", np.int64),  # of these
        ("highest", np.int64),  # send number
        ("last", np.int64),  # the send number that ends the pass
        ("silent", np.int64),  # packets since feedback was last due
        ("mark", np.int64),  # whether the last packet was marked
    ]
)
NEW, STOP, FEEDBACK, BITMAP = 1, 2, 4, 8
"""Flags: the packet was missing; the message is complete, reported once; feedback is due; a bitmap is due."""
_FEEDBACK_EVERY = 2
"""Packets, as TCP acknowledges them."""


@njit(cache=True)
def open_sender(sender, initial_window, round_trip, least_timeout):
    """Open a connection, whose round trip is `round_trip` seconds until one is measured; an infinite window stays
    so."""
    open_window(sender, initial_window, round_trip, least_timeout)
    sender["phase"] = IDLE


@njit(cache=True)
def begin(sender, packets, now):
    """Begin a message of so many packets, with the window and round trip of the last one."""
    begin_rounds(sender)
    sender["phase"] = SENDING
    sender["packets"] = packets
    sender["position"] = 0
    sender["sent"] = 0
    sender["gone"] = 0
    sender["highest"] = -1
    sender["received"] = 0
    sender["marked"] = 0
    sender["lost"] = 0
    sender["since"] = now


@njit(cache=True)
def upcoming(sender, order, have, now):
    """The result that `take` would return."""
    if sender["phase"] == SENDING:
        _pass_by(sender, order, have)
        if sender["position"] == sender["packets"]:
            sender["phase"] = DRAINING
        elif sender["sent"] - sender["gone"] < sender["window"]:
            return np.int64(order[sender["position"]])
    # The PROBE must not overtake packets of the pass.
    if sender["phase"] == DRAINING and (sender["gone"] == sender["sent"] or now >= sender["since"] + quiet(sender)):
        return PROBE
    return WAIT


@njit(cache=True)
def _pass_by(sender, order, have):
    """Skip packets that the receiver has."""
    while sender["position"] < sender["packets"] and have[order[sender["position"]]]:
        sender["position"] += 1


@njit(cache=True)
def take(sender, order, have, now):
    """The packet to send now, whose send number is `sent` before the call; or PROBE; or WAIT.

    `order` (int32 [n]) has the packets in the order of sending, `have` (uint8 [n]) those that the receiver is known to
    have.
    """
    packet = upcoming(sender, order, have, now)
    if packet >= 0:
        sender["position"] += 1
        sender["sent"] += 1
        if sender["sent"] - sender["gone"] >= sender["window"]:
            sender["since"] = now  # the timeout begins when the window is full
        _pass_by(sender, order, have)
        if sender["position"] == sender["packets"]:
            sender["phase"] = DRAINING
            sender["since"] = now
    elif packet == PROBE:
        sender["phase"] = PROBING
        sender["since"] = now
    return packet


@njit(cache=True)
def feedback(sender, highest, received, marked, round_trip, now):
    """Feedback: the highest send number, and the numbers of received and of marked packets; all cumulative.

    `round_trip` seconds have passed since the packet that it answers was sent; 0 if not known.
    """
    if sender["phase"] == IDLE or highest >= sender["sent"]:
        return
    if round_trip > 0:
        heard(sender, round_trip)
    if highest <= sender["highest"] and received <= sender["received"]:
        return
    sender["since"] = now
    left = max(0, highest - sender["highest"])
    under_way = sender["sent"] - sender["gone"]
    sender["highest"] += left
    lost = max(0, sender["highest"] + 1 - max(received, sender["received"]))
    # Late packets are not lost after all.
    congested = max(0, lost - sender["lost"]) + max(0, marked - sender["marked"])
    sender["lost"] = lost
    sender["received"] = max(sender["received"], received)
    sender["marked"] = max(sender["marked"], marked)
    sender["gone"] = max(sender["gone"], sender["highest"] + 1)
    answered(sender, left, congested, under_way, sender["highest"] + 1, sender["sent"])


@njit(cache=True)
def bitmap(sender, have, received, now):
    """The answer to a PROBE: `received` (uint8 [n]) are the received packets. The others make another pass."""
    for packet in range(sender["packets"]):
        if received[packet]:
            have[packet] = 1
    if sender["phase"] == PROBING:
        sender["phase"] = SENDING
        sender["position"] = 0
        sender["gone"] = sender["sent"]
        sender["since"] = now
        sender["backoff"] = 0


@njit(cache=True)
def stop(sender):
    """The receiver has sent STOP."""
    sender["phase"] = IDLE


@njit(cache=True)
def deadline(sender):
    """The time to call `expire`; infinite for never."""
    if sender["phase"] == SENDING and sender["sent"] - sender["gone"] >= sender["window"]:
        return sender["since"] + timeout(sender)
    if sender["phase"] == DRAINING and sender["gone"] < sender["sent"]:
        return sender["since"] + quiet(sender)
    if sender["phase"] == PROBING:
        return sender["since"] + timeout(sender)
    return np.inf


@njit(cache=True)
def expire(sender, now):
    """Handle a timeout. Returns whether it was one, after which there are packets or a PROBE to `take`."""
    if now < deadline(sender):
        return False
    if sender["phase"] == SENDING:
        timed_out(sender)
        sender["gone"] = sender["sent"]
        sender["since"] = now
    elif sender["phase"] == PROBING:
        sender["backoff"] += 1
        sender["phase"] = DRAINING
        sender["gone"] = sender["sent"]
    return True


@njit(cache=True)
def expect(receiver, group, sizes, missing, allowed, stops_early):
    """Begin to receive a message of packets of these sizes (int64 [n]) in groups (int32 [n]).

    Of each group at most `allowed` bytes (int64 [groups]), less than all, may be `missing` (int64 [groups], written).
    """
    missing[:] = 0
    for packet in range(len(group)):
        missing[group[packet]] += sizes[packet]
    receiver["short"] = 0
    for each in range(len(allowed)):
        receiver["short"] += missing[each] > allowed[each]
    receiver["stops_early"] = stops_early
    receiver["stopped"] = 0
    receiver["received"] = 0
    receiver["duplicates"] = 0
    receiver["marked"] = 0
    receiver["highest"] = -1
    receiver["last"] = len(group) - 1
    receiver["silent"] = 0
    receiver["mark"] = 0


@njit(cache=True)
def accept(receiver, have, group, sizes, missing, allowed, packet, number, marked):
    """Receive a packet with its send number, CE-marked or not; returns flags NEW | STOP | FEEDBACK."""
    if receiver["stopped"]:
        return 0
    flags = 0
    in_turn = number == receiver["highest"] + 1
    receiver["received"] += 1
    receiver["marked"] += marked
    receiver["silent"] += 1
    receiver["highest"] = max(receiver["highest"], number)
    ends = number >= receiver["last"]
    if not in_turn or ends or marked != receiver["mark"] or receiver["silent"] == _FEEDBACK_EVERY:
        receiver["silent"] = 0
        flags |= FEEDBACK
    receiver["mark"] = marked
    if have[packet]:
        receiver["duplicates"] += 1
        return flags
    have[packet] = 1
    of = group[packet]
    was_short = missing[of] > allowed[of]
    missing[of] -= sizes[packet]
    receiver["short"] -= was_short and missing[of] <= allowed[of]
    flags |= NEW
    if receiver["short"] == 0 and receiver["stops_early"]:
        receiver["stopped"] = 1
        flags |= STOP
    return flags


@njit(cache=True)
def probed(receiver, have, sent):
    """Receive a PROBE, after `sent` packets: STOP, BITMAP, or 0 if STOP was sent before."""
    if receiver["stopped"]:
        return 0
    if receiver["short"] == 0:
        receiver["stopped"] = 1
        return STOP
    missing = 0
    for each in have:
        missing += each == 0
    receiver["last"] = sent + missing - 1
    return BITMAP
