"""Messages between participants in virtual time: sent or refused, cut or delivered, counted, and made events."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from dlion_sim.assembly import Recorder, Transfer
from dlion_sim.protocol.events import Event, MessageArrived, MessageSent, MessageTimed
from dlion_sim.protocol.membership_messages import State
from dlion_sim.protocol.messages import Channel, Message
from dlion_sim.simulation.carrier import Carrier, Listener
from dlion_sim.simulation.churn import Churn
from dlion_sim.simulation.delivery import Transport
from dlion_sim.simulation.event_queue import EventQueue
from dlion_sim.simulation.routing import Routing


class Messaging(Listener):
    """Sends messages by a carrier, which `transport` makes; `changed` is called when the capacity of a link changes.

    A participant takes `per_message` seconds for each one from another machine, one after another.
    """

    def __init__(
        self,
        event_queue: EventQueue,
        routing: Routing,
        transport: Callable[..., Carrier],
        recorder: Recorder,
        *,
        per_message: float,
        handle: Callable[[int, Event], None],
        changed: Callable[[], None],
    ) -> None:
        self._routing = routing
        self._recorder = recorder
        self._event_queue = event_queue
        self._per_message = per_message
        self._busy_until: dict[int, float] = {}
        """When each participant has handled all that has arrived (s)."""
        self._handle = handle
        self._changed = changed
        self.churn: Churn | None = None
        """The connections, in scenarios with availability."""
        self.state_bytes: dict[int, int] = {}
        """Bytes of state that have been sent to each joining worker."""
        self._sent = self._delivered = self._cut = self._refused = 0
        self.carrier = transport(event_queue, routing, self)

    @property
    def counts(self) -> dict[str, int]:
        """`Messages` in the summary: by outcome, and under way."""
        ended = {"delivered": self._delivered, "cut": self._cut, "refused": self._refused}
        return {"sent": self._sent, **ended, "under_way": self._sent - sum(ended.values())}

    def send(self, receiver: int, message: Message) -> None:
        self._sent += 1
        if self.churn is None or self.churn.is_connected(message.sender, receiver):
            self.carrier.send(receiver, message)
        else:
            self._refused += 1

    def cut(self, one: int, other: int) -> None:
        assert isinstance(self.carrier, Transport), "availability is not modelled with others"
        dropped = self.carrier.cut(one, other)
        self._cut += len(dropped.begun) + dropped.others
        for transfer, carried in dropped.begun:
            self._recorder.carried(transfer, carried)
            self._recorder.cut_off(transfer)

    def sent(self, transfer: Transfer) -> None:
        if isinstance(transfer.message.body, State):
            self.state_bytes[transfer.receiver] = self.state_bytes.get(transfer.receiver, 0) + transfer.size
        if transfer.message.body.channel is Channel.DATA:
            self._handle(transfer.sender, MessageSent(transfer.receiver, transfer.message.size))

    def timed(self, transfer: Transfer, seconds: float, left: float) -> None:
        sender, receiver, message = transfer.sender, transfer.receiver, transfer.message
        if not self._routing.share_machine(sender, receiver):
            self._recorder.sent(transfer, left)
        if message.body.channel is Channel.DATA:
            self._handle(sender, MessageTimed(receiver, message.size, seconds))

    def delivered(self, receiver: int, message: Message) -> None:
        connection = self._connection(receiver, message.sender)
        if connection is None:
            self._cut += 1
        elif not self._per_message or self._routing.share_machine(message.sender, receiver):
            self._accept(receiver, message)
        else:
            now = self._event_queue.now
            until = self._busy_until[receiver] = max(now, self._busy_until.get(receiver, now)) + self._per_message
            self._event_queue.after(until - now, partial(self._hand_over, receiver, message, connection))

    def process_ended(self, number: int) -> None:
        """A participant's process has ended; the next one has nothing to handle yet."""
        self._busy_until.pop(number, None)

    def _accept(self, receiver: int, message: Message) -> None:
        self._delivered += 1
        self._handle(receiver, MessageArrived(message))

    def _hand_over(self, receiver: int, message: Message, connection: int) -> None:
        """Hand over what has waited since it arrived by a `connection`, unless that has ended."""
        if connection == self._connection(receiver, message.sender):
            self._accept(receiver, message)
        else:
            self._cut += 1

    def _connection(self, receiver: int, sender: int) -> int | None:
        return 0 if self.churn is None else self.churn.connection(receiver, sender)

    def changed(self) -> None:
        self._changed()
