"""Times of outages from a scenario's models of them, drawn where they are random."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from itertools import count

import numpy as np

from dlion_sim.errors import InputError
from dlion_sim.scenario.outages import (
    LEAST,
    AnyOutageModel,
    AnyProcess,
    Counts,
    Down,
    EmpiricalTimes,
    ExponentialTimes,
    Interval,
    Machines,
    MarkovTimes,
    Timetable,
)
from dlion_sim.streams import stream


def intervals_of(
    entry: AnyOutageModel, names: Sequence[str], seed: int, section: str, key: str
) -> list[Iterator[Interval]]:
    """The outages of each name of an entry: (begin, end) in seconds, disjoint and in order, perhaps endless.

    Independent outages are drawn from a random stream of the name, joint ones from one of the entry's key, so that
    other entries do not change them. Raises InputError if the entry does not fit the number of names.
    """
    together = stream(seed, "availability", section, key)
    match entry:
        case Down():
            return [_repeated(entry) for _ in names]
        case Counts():
            return _Fleet(entry, len(names), together).intervals()
        case Machines():
            if len(names) > len(entry.machines):
                raise InputError(
                    f"has {len(entry.machines)} machines, but there are {len(names)}",
                    path=f"availability.{section}.{key}",
                    allowed="so many or more",
                )
            order = together.permutation(len(entry.machines))
            return [_repeated(entry.machines[which]) for which in order[: len(names)]]
        case _:
            return [_alternating(entry, stream(seed, "availability", section, name)) for name in names]


def _repeated(times: Timetable) -> Iterator[Interval]:
    for period in count() if times.repeat is not None and times.down else range(1):
        since = period * (times.repeat or 0.0)
        for begin, end in times.down:
            yield since + begin, since + end


class _Fleet:
    """Machines of which a given number is up at each time; the first `watched` of them are of interest."""

    def __init__(self, counts: Counts, watched: int, rng: np.random.Generator) -> None:
        self._rng = rng
        size = max(watched, *counts.counts.values())
        self._watched = watched
        self._changes = _changes(counts)
        self._up = list(range(size))
        self._down: list[int] = []
        self._since: dict[int, float] = {}
        """The begin of the present outages of watched machines."""
        self._pending: Mapping[int, deque[Interval]] = {machine: deque() for machine in range(watched)}
        """Outages of each watched machine that have not been returned."""

    def intervals(self) -> list[Iterator[Interval]]:
        """The outages of each watched machine, which are drawn together."""
        return [self._of(machine) for machine in range(self._watched)]

    def _of(self, machine: int) -> Iterator[Interval]:
        while True:
            while not self._pending[machine]:
                change = next(self._changes, None)
                if change is None:
                    if machine in self._since:
                        yield self._since.pop(machine), math.inf
                    return
                self._change(*change)
            yield self._pending[machine].popleft()

    def _change(self, time: float, up: int) -> None:
        goes_down = len(self._up) > up
        source, target = (self._up, self._down) if goes_down else (self._down, self._up)
        while len(self._up) != up:
            place = int(self._rng.integers(len(source)))
            source[place], source[-1] = source[-1], source[place]
            machine = source.pop()
            target.append(machine)
            if machine in self._pending:
                if goes_down:
                    self._since[machine] = time
                else:
                    self._pending[machine].append((self._since.pop(machine), time))


def _changes(counts: Counts) -> Iterator[tuple[float, int]]:
    for period in range(1) if counts.repeat is None or len(set(counts.counts.values())) == 1 else count():
        for time, up in counts.counts.items():
            yield period * (counts.repeat or 0.0) + time, up


def _alternating(process: AnyProcess, rng: np.random.Generator) -> Iterator[Interval]:
    ups, downs = _lengths(process)
    is_down = process.start == "down" or (
        process.start == "any" and rng.random() < downs.mean / (ups.mean + downs.mean)
    )
    first = downs if is_down else ups
    time = first.rest(rng) if process.start == "any" else first.draw(rng)
    if is_down:
        yield 0.0, time
        time += ups.draw(rng)
    while True:
        end = time + downs.draw(rng)
        yield time, end
        time = end + ups.draw(rng)


class _Weibull:
    def __init__(self, mean: float, shape: float = 1.0) -> None:
        self.mean = mean
        self._shape = shape
        self._scale = mean / math.gamma(1 + 1 / shape)

    def draw(self, rng: np.random.Generator) -> float:
        return max(self._scale * float(rng.weibull(self._shape)), LEAST)

    def rest(self, rng: np.random.Generator) -> float:
        """The rest of an interval at a random time; longer intervals are more likely."""
        length = self._scale * math.pow(rng.gamma(1 + 1 / self._shape), 1 / self._shape)
        return max(length * float(rng.random()), LEAST)


class _Geometric:
    def __init__(self, step: float, probability: float) -> None:
        self.mean = step / probability
        self._step = step
        self._probability = probability

    def draw(self, rng: np.random.Generator) -> float:
        return self._step * float(rng.geometric(self._probability))

    rest = draw  # It is memoryless.


class _Listed:
    def __init__(self, lengths: Sequence[float]) -> None:
        self._lengths = np.array(lengths)
        self.mean = float(self._lengths.mean())

    def draw(self, rng: np.random.Generator) -> float:
        return float(rng.choice(self._lengths))

    def rest(self, rng: np.random.Generator) -> float:
        """The rest of an interval at a random time; longer intervals are more likely."""
        length = float(rng.choice(self._lengths, p=self._lengths / self._lengths.sum()))
        return max(length * float(rng.random()), LEAST)


_Lengths = _Weibull | _Geometric | _Listed


def _lengths(process: AnyProcess) -> tuple[_Lengths, _Lengths]:
    """The distributions of times up and of times down."""
    match process:
        case ExponentialTimes():
            return _Weibull(process.up), _Weibull(process.down)
        case MarkovTimes():
            return _Geometric(process.step, process.fail), _Geometric(process.step, process.recover)
        case EmpiricalTimes():
            return _Listed(process.up), _Listed(process.down)
        case _:
            return _Weibull(process.up, process.shape), _Weibull(process.down, process.down_shape)
