"""A message that a node sends itself in datagrams, so that what is compiled on first use is so by the start. No I/O."""

from __future__ import annotations

from itertools import count

import torch

from dlion_sim.bounded_loss.cutting import Cutter
from dlion_sim.live.datagrams import Counts, Feedback, Key, Packet, Sort
from dlion_sim.live.frames import Kind
from dlion_sim.live.notices import Notice
from dlion_sim.live.receiving import Receiver, Rules
from dlion_sim.live.sending import Sender
from dlion_sim.protocol.messages import Channel, Contribution, Message
from dlion_sim.scenario import Dlcp

_NODE = 0


def rehearse(dlcp: Dlcp, cutter: Cutter, rules: Rules) -> None:
    """Send a message of one packet, which is lost at first."""
    told: list[tuple[Kind, Notice]] = []
    arrived: list[Message] = []

    def tell(kind: Kind, notice: Notice) -> None:
        told.append((kind, notice))

    key = Key(Sort.PACKET, bytes(32))
    sender = Sender(_NODE, Channel.DATA, key, cutter, dlcp, 1.0, Counts(), tell)
    receiver = Receiver(_NODE, _NODE, Channel.DATA, rules, Counts(), tell, arrived.append)
    sender.begin(Message(_NODE, Contribution(0, 1), (torch.zeros(1),)), 0.0)
    for now in count(1.0):
        while told:
            kind, notice = told.pop(0)
            match kind:
                case Kind.START:
                    receiver.start(notice)
                case Kind.QUERY:
                    receiver.query(notice)
                case Kind.BITMAP:
                    sender.missing(notice, now)
                case Kind.STOP:
                    sender.stopped(notice, now)
        if arrived:
            break
        if (datagram := sender.next(now)) and now > 1:
            head, payload = datagram[0]
            receiver.take(Packet.parse(head), memoryview(payload), False, now)
            sender.heard(Feedback(Channel.DATA, _NODE, 1, 1, 1, 0, now), now)
        if sender.deadline <= now:
            sender.expire(now)
    rules.assembler.lost(_NODE)
