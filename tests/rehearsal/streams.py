"""The rehearsal device's streams and graphs, by the names of `torch.cuda`: what an order forgotten there would spoil.

All is computed at once. But what was launched in one stream is only seen by another that has waited for it, and a graph
keeps what a CUDA graph keeps: operators, and the memory that they read and write. What is recorded is computed when it
is replayed, by what is in that memory then.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

from tests.rehearsal.device import DEVICE, MACHINE, RefusedError

_POISON = 0xFF
"""Of which floats that are NaN consist, and integers that are -1."""


class Stream:
    """What is computed one after another."""

    def __init__(self, device: Any = None) -> None:
        self.device = DEVICE
        self.launches = 0
        self.seen: dict[Stream, int] = {}
        """How much of others has been waited for."""

    def wait_stream(self, other: Stream) -> None:
        """What is launched here from now on comes after all that was launched there."""
        self.seen[other] = other.launches
        for third, launches in other.seen.items():
            self.seen[third] = max(self.seen.get(third, 0), launches)

    def synchronize(self) -> None:
        """The host waits."""
        MACHINE.cross("read", "a stream's synchronize", 0)

    def is_after(self, when: tuple[Stream, int]) -> bool:
        """Whether what is launched here now comes after that."""
        stream, launch = when
        return stream is self or self.seen.get(stream, 0) >= launch


class Order:
    """Who touched memory last, in which stream."""

    def __init__(self) -> None:
        self.default = self.current = Stream()

    def launched(self, operator: Any, reads: list[Tensor], writes: list[Tensor]) -> None:
        """Raises RefusedError where it would read or write memory that another stream may still be at."""
        if MACHINE.recorder is None:
            storages = ([each.untyped_storage() for each in tensors] for tensors in (reads, writes))
            self.touched(operator, *storages)

    def touched(self, operator: Any, reads: list[Any], writes: list[Any]) -> None:
        """The same, of memory."""
        self.current.launches += 1
        now = self.current, self.current.launches
        for storage, is_written in [*((each, False) for each in reads), *((each, True) for each in writes)]:
            touched = [getattr(storage, "written", None), *(getattr(storage, "read", {}).items() if is_written else ())]
            if not all(self.current.is_after(when) for when in touched if when is not None):
                raise RefusedError(
                    f"{operator} {'writes' if is_written else 'reads'} memory that another stream is at: "
                    "it has to wait for that stream"
                )
            if is_written:
                storage.written, storage.read = now, {}
            else:
                storage.read = getattr(storage, "read", {}) | {self.current: self.current.launches}


ORDER = Order()


class CUDAGraph:
    """Operators on memory that stays."""

    def __init__(self) -> None:
        self.pool: list[CUDAGraph] = [self]
        """The graphs that share memory for what they compute."""
        self._before: dict[int, tuple[Any, Any]] = {}
        """Memory of others that is written, and what was in it before."""
        self._own: dict[int, tuple[Any, weakref.ref[Any]]] = {}
        self._others: dict[int, tuple[str, weakref.ref[Any]]] = {}
        self._steps: list[tuple[Any, Any, Any, Any]] = []

    def allocated(self, storage: Any) -> None:
        """Memory of the graph's own."""
        self._own[storage.data_ptr()] = storage.host, weakref.ref(storage)

    def about_to_write(self, tensors: list[Tensor]) -> None:
        """Nothing is computed while it is recorded: memory of others is put back as it was."""
        for tensor in tensors:
            memory = tensor.untyped_storage().host
            if memory.data_ptr() not in self._own:
                self._before.setdefault(memory.data_ptr(), (memory, memory.clone()))

    def step(self, operator: Any, args: Any, kwargs: Any, answer: Any, here: list[Tensor], returned: Any) -> None:
        """An operator, with its tensors as they are on the CPU."""
        for tensor in here:
            storage = tensor.untyped_storage()
            if storage.data_ptr() not in self._own:
                self._others[storage.data_ptr()] = str(operator), weakref.ref(storage)
        self._steps.append((operator, args, kwargs, answer))

    def end(self) -> None:
        """What was computed to learn shapes is gone."""
        for memory, former in self._before.values():
            memory.copy_(former)
        self._forget()

    def replay(self) -> None:
        """Compute it, by what is in memory now; what other graphs of its pool have answered is gone."""
        with MACHINE.lock:
            self._check()
            for graph in self.pool:
                graph._forget()
            for operator, args, kwargs, answer in self._steps:
                again = operator(*args, **kwargs)
                for former, now in zip(_tensors(answer), _tensors(again), strict=True):
                    if former.shape != now.shape:
                        raise RefusedError(
                            f"{operator} allocates {list(now.shape)} on replay, not {list(former.shape)}"
                        )
                    former.copy_(now)

    def _check(self) -> None:
        if MACHINE.recorder is not None:
            raise RefusedError("a graph is replayed while another one is being recorded")
        for operator, storage in self._others.values():
            if storage() is None:
                raise RefusedError(f"the memory that {operator} was recorded with has been given back")
        others = [storage() for _, storage in self._others.values()]
        own = [storage() for _, storage in self._own.values()]
        writes = [each for each in others if each.data_ptr() in self._before] + [
            each for each in own if each is not None
        ]
        ORDER.touched("a graph", others, writes)

    def _forget(self) -> None:
        for memory, _ in self._own.values():
            torch.empty(0, dtype=torch.uint8).set_(memory).fill_(_POISON)


def _tensors(answer: Any) -> list[Tensor]:
    return [each for each in tree_leaves(answer) if isinstance(each, Tensor)]


class Module(torch.utils.backend_registration._DummyBackendModule):
    """`torch.rehearsal`: what the product uses of `torch.cuda`."""

    Stream, CUDAGraph = Stream, CUDAGraph

    # It draws no random numbers, but `torch.random.fork_rng` asks every accelerator for the state of these.
    def get_rng_state(self, device: Any = None) -> Tensor:
        return torch.empty(0, dtype=torch.uint8)

    def set_rng_state(self, state: Tensor, device: Any = None) -> None:
        pass

    def get_device_name(self, device: Any = None) -> str:
        return "rehearsal device"

    def current_stream(self, device: Any = None) -> Stream:
        return ORDER.current

    @contextmanager
    def stream(self, stream: Stream) -> Iterator[None]:
        """It is the current one meanwhile."""
        former, ORDER.current = ORDER.current, stream
        try:
            yield
        finally:
            ORDER.current = former

    def synchronize(self, device: Any = None) -> None:
        """The host waits for all."""
        MACHINE.cross("read", "synchronize", 0)

    def graph_pool_handle(self) -> list[CUDAGraph]:
        return []

    @contextmanager
    def graph(
        self, graph: CUDAGraph, pool: list[CUDAGraph] | None = None, stream: Stream | None = None
    ) -> Iterator[None]:
        """Record what is computed meanwhile."""
        if MACHINE.recorder is not None:
            raise RefusedError("two graphs are being recorded at once")
        if pool is not None:
            pool.append(graph)
            graph.pool = pool
        stream = stream or Stream()
        stream.wait_stream(ORDER.current)  # as the host waits for all before it records
        with self.stream(stream):
            MACHINE.recorder = graph
            try:
                yield
            finally:
                MACHINE.recorder = None
                graph.end()
