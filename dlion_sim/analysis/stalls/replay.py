"""What-if replay: one run's timeline with other durations."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from dlion_sim.analysis.stalls.steps import SAME, Step, machines, messages, steps
from dlion_sim.analysis.traffic import modelled_scenario
from dlion_sim.results import Run, participants
from dlion_sim.scenario import Input

_NEVER = -math.inf
_Link = tuple[int, int]
"""Sender and receiver; their messages leave in order."""
_Of = Callable[["_Message", float], tuple[float, float]]
"""When a message has left and arrived, given when all that it depends on is complete."""


class _Work(NamedTuple):
    """A worker's local work in an iteration, in seconds."""

    pause: float
    """From the previous iteration to this one, such as profiling."""
    preparing: float
    """Preparing its batch, from when the previous one was taken."""
    reading: float
    computing: float


@dataclass(slots=True)
class _Message:
    """A recorded message; times in seconds."""

    sender: int
    receiver: int
    begin: float
    end: float
    arrival: float
    is_queued: bool = False
    """Whether it leaves after the previous one on its link."""
    is_early: bool = False
    """Whether it depends on the begin of its sender's iteration instead of its computation."""
    lag: float = 0.0
    """From when all that it depends on is complete until it begins."""


@dataclass(slots=True)
class _Iteration:
    """A recorded iteration of all workers; lists have an entry for each worker, times in seconds."""

    work: list[_Work]
    began: list[float]
    ready: list[float]
    ended: list[float]
    layers: list[list[_Message]]
    """Messages depend on those of earlier layers to their sender."""
    lags: list[float] = field(default_factory=list)
    """From when a worker has computed, and all messages have arrived, until its iteration ends."""


class Replay:
    """The iterations of a run whose workers are in step, by their dependencies.

    A worker takes its batch when its previous iteration has ended and the samples are ready, and computes. In an
    iteration its first message on a link depends on that, the second one also on the first ones to it, and so on; a
    server's first message on the first ones to it. A worker with all messages of the iteration starts the next one.

    Messages keep their durations, even if they would share links with other messages.
    """

    def __init__(self, run: Run) -> None:
        """Raises InputError if the run cannot be read."""
        scenario = modelled_scenario(run)
        workers = len(run.manifest["workers"])
        self._workers = workers
        self._machine = machines(scenario, workers, len(participants(run.manifest)))
        own = [[step for step in of_worker if step.kind == "iteration"] for of_worker in steps(run).values()]
        fed_by = scenario.workload.input if scenario else None
        shards = [sum(classes) for classes in run.manifest["partition"]] if fed_by else [0] * workers
        works = [_works(each, fed_by, shard) for each, shard in zip(own, shards, strict=True)]
        sent = messages(run, scenario).query("channel == 'data'").sort_values(["begin", "end"], kind="stable")
        on_link: dict[_Link, list[_Message]] = defaultdict(list)
        for row in sent[["sender", "receiver", "begin", "end", "arrival"]].itertuples(index=False):
            on_link[row[0], row[1]].append(_Message(*row))
        layers = self._layers(on_link, own)
        self._iterations = [
            _Iteration(
                [each[number] for each in works],
                [each[number].begin for each in own],
                [each[number].ready for each in own],
                [each[number].end for each in own],
                layers[number],
            )
            for number in range(len(layers))
        ]
        self._measure()

    def iteration_seconds(
        self, warm_up: int, *, prepared: bool = True, read: bool = True, computing_as: Replay | None = None
    ) -> float:
        """The duration of an iteration, the mean over the workers, without the first `warm_up` of each.

        Without preparing or reading samples if not `prepared` or `read`, and optionally with the computations and
        batches of another run. It counts until the first worker has finished.
        """
        ends = self._ends(prepared, read, (computing_as or self)._iterations)
        last = min(own[-1] for own in ends)
        counts = [bisect_right(own, last + SAME) - warm_up for own in ends]
        took = [(own[warm_up + n - 1] - own[warm_up - 1]) / n for own, n in zip(ends, counts, strict=True) if n > 0]
        return sum(took) / len(took) if took else math.nan

    def _ends(self, prepared: bool, read: bool, computed: Sequence[_Iteration]) -> list[list[float]]:
        """When each worker's iterations would end."""
        ends: list[list[float]] = [[] for _ in range(self._workers)]
        left: dict[_Link, float] = {}
        ended, taken = [0.0] * self._workers, [0.0] * self._workers
        for iteration, other in zip(self._iterations, computed, strict=False):
            began, ready = [], []
            for worker, (own, work) in enumerate(zip(iteration.work, other.work, strict=True)):
                began.append(ended[worker] + own.pause)
                feeding = max(work.preparing if prepared else 0.0, work.reading if read else 0.0)
                taken[worker] = max(began[worker], taken[worker] + feeding)
                ready.append(taken[worker] + work.computing)
            complete = self._complete(iteration, began, ready, left, _shifted)
            ended = [time + lag for time, lag in zip(complete, iteration.lags, strict=True)]
            for own_ends, end in zip(ends, ended, strict=True):
                own_ends.append(end)
        return ends

    def _complete(
        self,
        iteration: _Iteration,
        began: Sequence[float],
        ready: Sequence[float],
        left: dict[_Link, float],
        of: _Of,
    ) -> list[float]:
        """When each worker has computed and all messages have arrived. `left` is when each link became free."""
        arrived = [_NEVER] * len(self._machine)
        for layer in iteration.layers:
            arrivals = []
            for message in layer:
                link, machine = (message.sender, message.receiver), self._machine[message.sender]
                request = arrived[message.sender]
                if machine < self._workers:
                    request = max(request, began[machine] if message.is_early else ready[machine])
                if message.is_queued:
                    request = max(request, left.get(link, _NEVER))
                left[link], arrival = of(message, request)
                arrivals.append(arrival)
            for message, arrival in zip(layer, arrivals, strict=True):
                arrived[message.receiver] = max(arrived[message.receiver], arrival)
        complete = [*ready]
        for participant, machine in enumerate(self._machine):
            if machine < self._workers:
                complete[machine] = max(complete[machine], arrived[participant])
        return complete

    def _measure(self) -> None:
        """Measure the delays that no dependency explains; they stay as they were."""
        left: dict[_Link, float] = {}
        for iteration in self._iterations:
            for layer in iteration.layers:
                for message in layer:
                    machine = self._machine[message.sender]
                    message.is_early = machine < self._workers and message.begin < iteration.ready[machine] - SAME
            complete = self._complete(iteration, iteration.began, iteration.ready, left, _recorded)
            iteration.lags = [end - time for end, time in zip(iteration.ended, complete, strict=True)]

    def _layers(
        self, on_link: Mapping[_Link, Sequence[_Message]], own: Sequence[Sequence[Step]]
    ) -> list[list[list[_Message]]]:
        """The messages of each iteration that all workers completed, in layers: of workers, then of servers, and so
        on."""
        count = min(len(each) for each in own)
        ready = [[step.ready for step in each] for each in own]
        layers: list[dict[tuple[int, bool], list[_Message]]] = [defaultdict(list) for _ in range(count)]
        for (sender, _), queue in on_link.items():
            for place, message in enumerate(queue):
                message.is_queued = place > 0 and message.begin > queue[place - 1].end - SAME
            each, more = divmod(len(queue), count)
            if more:  # Not sent in all iterations: assigned to the last computation before it.
                numbers = [bisect_right(ready[self._machine[sender]], message.begin + SAME) - 1 for message in queue]
            else:
                numbers = [place // each for place in range(len(queue))]
            before: defaultdict[int, int] = defaultdict(int)
            for number, message in zip(numbers, queue, strict=True):
                if 0 <= number < count:
                    layers[number][before[number], sender >= self._workers].append(message)
                    before[number] += 1
        return [[layer for _, layer in sorted(found.items(), key=lambda item: item[0])] for found in layers]


def _works(own: Sequence[Step], fed_by: Input | None, shard_samples: int) -> list[_Work]:
    """A worker's local work in each of its iterations."""
    found, end, taken = [], 0.0, 0
    for step in own:
        preparing = fed_by.preparing(step.samples) if fed_by else 0.0
        reading = fed_by.reading(step.samples, taken, shard_samples) if fed_by else 0.0
        computing = step.ready - step.begin - step.prep - step.fetch
        found.append(_Work(step.begin - end, preparing, reading, computing))
        end, taken = step.end, taken + step.samples
    return found


def _recorded(message: _Message, request: float) -> tuple[float, float]:
    message.lag = message.begin - request
    return message.end, message.arrival


def _shifted(message: _Message, request: float) -> tuple[float, float]:
    later = request + message.lag - message.begin
    return message.end + later, message.arrival + later
