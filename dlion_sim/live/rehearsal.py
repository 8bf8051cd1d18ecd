"""A message that a node sends itself in packets, so that functions compiled on first use are ready at the start."""

from __future__ import annotations

from itertools import count

import torch

from dlion_sim.bounded_loss.cutting import Cutter
from dlion_sim.live.datagrams import Counts, Feedback, Key, Packet, Sort
from dlion_sim.live.notices import Bitmap, Notice, Probe, Start, Stop
from dlion_sim.live.receiving import Receiver, Rules
from dlion_sim.live.sending import Sender
from dlion_sim.protocol.messages import Channel, Contribution, Message
from dlion_sim.scenario import Dlcp

_NODE = 0


def rehearse(dlcp: Dlcp, cutter: Cutter, rules: Rules) -> None:
    """Send a message of one packet, which is lost at first."""
    notices: list[Notice] = []
    arrived: list[Message] = []
    key = Key(Sort.PACKET, bytes(32))
    sender = Sender(_NODE, Channel.DATA, key, cutter, dlcp, 1.0, Counts(), notices.append)
    receiver = Receiver(_NODE, _NODE, Channel.DATA, rules, Counts(), notices.append, arrived.append)
    sender.begin(Message(_NODE, Contribution(0, 1), (torch.zeros(1),)), 0.0)
    for now in count(1.0):
        while notices:
            match notices.pop(0):
                case Start() as start:
                    receiver.start(start)
                case Probe() as probe:
                    receiver.probe(probe)
                case Bitmap() as bitmap:
                    sender.missing(bitmap, now)
                case Stop() as stop:
                    sender.stopped(stop, now)
        if arrived:
            break
        if (datagram := sender.next(now)) and now > 1:
            data = memoryview(datagram[0])
            payload = key.opened(data)
            assert payload is not None
            receiver.take(Packet.parse(data), payload, False, now)
            sender.heard(Feedback(Channel.DATA, _NODE, 1, 1, 1, 0, now), now)
        if sender.deadline <= now:
            sender.expire(now)
    rules.assembler.lost(_NODE)
