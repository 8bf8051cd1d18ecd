"""A node of a mesh that measures the paths between all nodes, over TCP as in live runs."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from dlion_sim import __version__
from dlion_sim.assembly import Transfer
from dlion_sim.calibration.probe import MOST_ENTRIES, PathFound
from dlion_sim.calibration.prober import Pair, Prober, one_by_one, tournament
from dlion_sim.errors import InputError
from dlion_sim.interrupts import Interrupts
from dlion_sim.live import MeshConfig, Nodes, Spot, event_loop
from dlion_sim.live.event_loop import first, watch
from dlion_sim.live.frames import Kind, News
from dlion_sim.live.handshake import Credentials
from dlion_sim.live.mesh import Mesh
from dlion_sim.live.peer_states import PeerStates
from dlion_sim.live.rendezvous import Rendezvous
from dlion_sim.live.session import Terms
from dlion_sim.protocol.events import Send
from dlion_sim.protocol.messages import Message

_PATIENCE = 10
"""Timeout of a round, in multiples of the seconds of throughput and of silence."""
Observe = Callable[[Pair, PathFound], None]


@dataclass(frozen=True)
class Outcome:
    """The result: all paths, at node 0; or why measuring ended early."""

    paths: Mapping[Pair, PathFound] = field(default_factory=dict)
    interrupted: bool = False
    failed: str | None = None


def measure_mesh(
    config: MeshConfig, *, seconds: float = 3.0, together: bool = False, observe: Observe = lambda pair, path: None
) -> Outcome:
    """Take part until every path between two of the nodes has been measured, its throughput over so many `seconds`.

    Node 0 says whose turn it is: one pair after another or, `together`, all those that share no host of the addresses.
    It calls `observe` with each path. Raises InputError where it cannot begin.
    """
    with Interrupts() as interrupts:

        def watched(end: Callable[[], None]) -> None:
            watch(end, interrupts, attached=config.attached)

        return event_loop.run(take_part(config, seconds=seconds, together=together, observe=observe, watched=watched))


async def take_part(
    config: MeshConfig,
    *,
    seconds: float,
    together: bool = False,
    observe: Observe = lambda pair, path: None,
    watched: Callable[[Callable[[], None]], None] = lambda end: None,
) -> Outcome:
    """As `measure_mesh`; `watched` gets the function that ends it early."""
    nodes = len(config.addresses)
    if nodes < 2:
        raise InputError("is a single node's", file="`addresses`", allowed="those of two or more")
    config.check_places(nodes)
    hosts = [address.host for address in config.addresses]
    rounds = () if config.rank else tournament(hosts) if together else one_by_one(nodes)
    plan = hashlib.sha256(f"network {__version__} {nodes} {seconds}".encode()).digest()
    with config.listener() as listener:
        rendezvous = Rendezvous(
            config.rank,
            [rank for rank in range(nodes) if rank != config.rank],
            config.addresses,
            listener,
            Credentials(config.identity, plan),
            config.timeouts,
        )
        node = _Node(config, rounds, seconds, observe)
        watched(node.interrupt)
        try:
            return await node.run(rendezvous)
        except BaseExceptionGroup as group:
            raise first(group) from None


class _Node:
    """Sends a prober's messages, and passes it those that arrive."""

    def __init__(self, config: MeshConfig, rounds: Iterable[Sequence[Pair]], seconds: float, observe: Observe) -> None:
        self._config = config
        self._prober = Prober(
            config.rank,
            len(config.addresses),
            rounds,
            seconds,
            lambda peer: self._mesh.acknowledgements_a_frame(peer),
        )
        self._patience = _PATIENCE * seconds + config.timeouts.silence
        self._observe = observe
        self._roster = PeerStates(config.rank, len(config.addresses), (), serves=False)
        self._all_ready = asyncio.Event()
        self._told = 0
        """Number of paths passed to `observe`."""
        self._end: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()

    async def run(self, rendezvous: Rendezvous) -> Outcome:
        """Connect to the others, measure, and close in an orderly way."""
        async with asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            self._mesh = Mesh(
                Terms(len(self._config.addresses), MOST_ENTRIES, self._config.timeouts.silence),
                delays=dict(enumerate(self._config.delays)),
                tasks=tasks,
                hub=self,
            )
            begin = tasks.create_task(self._begin(rendezvous))
            outcome = await self._end
            begin.cancel()
            if outcome.failed is None and not outcome.interrupted:
                self._mesh.tell(Kind.DONE)
            await self._mesh.close()
        return outcome

    def interrupt(self) -> None:
        """End it early."""
        self._finish(Outcome(interrupted=True))

    async def _begin(self, rendezvous: Rendezvous) -> None:
        within = self._config.timeouts.start
        others = [rank for rank in range(len(self._config.addresses)) if rank != self._config.rank]
        meeting = self._tasks.create_task(rendezvous.run())
        try:
            async with asyncio.timeout(within):
                for peer, connections in (await rendezvous.meet(others)).items():
                    self._mesh.connect(peer, connections)
                self._mesh.tell(Kind.READY, self._config.rank)
                self._note_ready(self._config.rank)
                await self._all_ready.wait()
        except TimeoutError:
            missing = rendezvous.missing(others) or [f"node {rank} is not ready" for rank in self._roster.unready]
            raise InputError(f"could not start within {within:g} s: {'; '.join(missing)}") from None
        finally:
            meeting.cancel()  # No node joins later.
        if self._config.rank == 0:
            self._send(self._prober.begin(self.now))
            while True:  # as long as there is news in time
                told = self._told
                await asyncio.sleep(self._patience)
                if told == self._told:
                    self._finish(Outcome(failed=f"nothing was measured for {self._patience:g} s"))

    @property
    def now(self) -> float:
        """Seconds since an arbitrary time."""
        return time.monotonic()

    def arrived(self, message: Message) -> None:
        """A message from a peer is here."""
        self._send(self._prober.arrived(message, self.now))
        for pair, path in list(self._prober.paths.items())[self._told :]:
            self._told += 1
            self._observe(pair, path)
        if self._config.rank == 0 and self._prober.is_over:
            self._finish(Outcome(self._prober.paths))

    def sent(self, peer: int, message: Message) -> None:
        """A message on the data channel was sent, or never will be."""
        self._send(self._prober.left(peer, self.now))

    def left(self, transfer: Transfer) -> None:
        """A message was sent."""

    def timed(self, peer: int, message: Message, seconds: float) -> None:
        """How long the link took, as its sender sees it."""

    def heard(self, kind: News, rank: int) -> None:
        """A node is ready; or node 0 has measured all, and others were informed."""
        if kind is Kind.READY:
            self._note_ready(rank)
        elif kind is Kind.DONE:
            self._roster.done(rank)
            if rank == 0:
                self._finish(Outcome())

    def lost(self, peer: int, reason: str) -> None:
        """A peer's connections have ended."""
        if not self._roster.is_done(peer):
            self._finish(Outcome(failed=f"node {peer} was lost: it {reason}"))

    def _note_ready(self, rank: int) -> None:
        self._roster.ready(rank)
        if not self._roster.unready:
            self._all_ready.set()

    def _send(self, sends: Sequence[Send]) -> None:
        for send in sends:
            self._mesh.send(send.peer, send.message)

    def _finish(self, outcome: Outcome) -> None:
        if not self._end.done():
            self._end.set_result(outcome)


def measure_by_processes(
    spots: Sequence[Spot],
    names: Sequence[str],
    output: Path,
    *,
    seconds: float,
    interrupted: Callable[[], bool] = lambda: False,
) -> Outcome:
    """Measure the paths between nodes at these places; node 0 writes `output` and its matrices. No process is left.

    `interrupted` is called many times per second. Raises InputError if a node cannot start.
    """
    first, *others = spots
    first = replace(first, options=[*first.options, f"--names={','.join(names)}", f"--output={output}"])
    command = ["calibrate", "node", f"--seconds={seconds}", "--quiet"]
    with TemporaryDirectory(prefix="dlion-") as folder, Nodes(Path(folder), command, [first, *others]) as nodes:
        if nodes.wait(interrupted):
            return Outcome(interrupted=True)
        return Outcome(failed=None if output.exists() else nodes.last_words(0))
