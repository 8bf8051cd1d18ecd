"""Whole runs with all nodes in one process and event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from contextlib import ExitStack, closing
from pathlib import Path

from dlion_sim.assembly import Recorder, Setting
from dlion_sim.learning.process import one_core
from dlion_sim.live.connection import listen
from dlion_sim.live.driver import Driver
from dlion_sim.live.gathering import manifest_of, part_folder
from dlion_sim.live.member import Member
from dlion_sim.live.node import Outcome, take_part
from dlion_sim.live.node_config import NodeConfig, Timeouts
from dlion_sim.results import RunWriter
from dlion_sim.scenario import Scenario, dump
from tests.live.mesh import identity_of, listeners

QUICK = Timeouts(start=60)


class Together:
    """The nodes of a run; `drivers` by rank, as soon as there are any."""

    def __init__(
        self,
        scenario: Scenario,
        folder: Path,
        *,
        paced: bool = True,
        timeouts: Timeouts = QUICK,
        absent: Collection[int] = (),
    ) -> None:
        self.setting = Setting.of(scenario)
        self.folder = folder
        self.paced = paced
        self.timeouts = timeouts
        self.drivers: dict[int, Driver] = {}
        self.tasks: list[asyncio.Task[Outcome]] = []
        self.members: list[Member] = []
        self.absent = set(absent)
        """Those whose nodes never come up."""

    def run(self, meanwhile: Callable[[Together], object] | None = None) -> list[Outcome | BaseException]:
        """What became of each node; `meanwhile` is a coroutine function that interferes once all have begun."""

        async def all_of_them():
            self.tasks = [asyncio.create_task(self._node(rank)) for rank in range(self.setting.participants)]
            if meanwhile:
                async with asyncio.timeout(60):
                    while not self._all_have_begun():
                        await asyncio.sleep(0.01)
                await meanwhile(self)
            return await asyncio.gather(*self.tasks, return_exceptions=True)

        with ExitStack() as stack:
            self._stack = stack
            stack.enter_context(one_core())  # as in a node's process
            self.sockets, self.addresses = listeners(self.setting.participants)
            for rank in range(self.setting.participants):
                member = Member.of(self.setting, rank, paced=self.paced)
                self.members.append(stack.enter_context(closing(member)))
            return asyncio.run(all_of_them())

    def kill(self, rank: int) -> None:
        """End a node as a crash does: its connections close without a word."""
        self.tasks[rank].cancel()

    async def start_again(self, rank: int, incarnation: int = 1) -> None:
        """Have a participant join, by a node of its own, once the former one is gone."""
        if not self.tasks[rank].done():
            await asyncio.wait([self.tasks[rank]])
        member = Member.of(self.setting, rank, paced=self.paced, incarnation=incarnation, joins=True)
        self.members[rank] = self._stack.enter_context(closing(member))
        self.sockets[rank] = listen(self.addresses[rank])
        self.tasks[rank] = asyncio.create_task(self._node(rank, incarnation, joins=True))

    async def until(self, condition: Callable[[], object], seconds: float = 60.0) -> None:
        """Wait for something to come true, as long as all nodes go on."""
        async with asyncio.timeout(seconds):
            while not condition():
                await asyncio.sleep(0.01)

    def _all_have_begun(self) -> bool:
        begun = [driver for driver in self.drivers.values() if driver.now]
        return len(begun) == self.setting.participants - len(self.absent)

    async def _node(self, rank: int, incarnation: int = 0, *, joins: bool = False) -> Outcome | None:
        if rank in self.absent and not joins:
            self.sockets[rank].close()
            return None
        setting, member = self.setting, self.members[rank]
        config = NodeConfig(rank, self.addresses, identity_of(rank), self.folder, timeouts=self.timeouts, joins=joins)
        writer = RunWriter.create(
            part_folder(self.folder, rank, incarnation),
            scenario_yaml=dump(setting.scenario),
            manifest={**manifest_of(setting), "rank": rank, "incarnation": incarnation},
        )
        recorder = Recorder(writer, [rank])
        outcome = await take_part(
            setting, config, self.sockets[rank], member, recorder, lambda driver: self.drivers.update({rank: driver})
        )
        writer.flush()
        return outcome
