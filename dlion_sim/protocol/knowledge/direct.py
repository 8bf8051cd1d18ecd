"""Direct knowledge transfer (DLion, HPDC'21): merge in the weights of the worker with the least training loss."""

from __future__ import annotations

import math
from collections import deque
from typing import Literal

from pydantic import Field

from dlion_sim.protocol.choices import ChoiceParameters, KnowledgeTransfer, Merge, Setup, register
from dlion_sim.protocol.events import Action, Send
from dlion_sim.protocol.messages import LossReport, Message, Weights, WeightsRequest


@register("knowledge_transfer", "direct")
class DirectKnowledgeTransfer(KnowledgeTransfer):
    """Every `period` iterations, a round: publish the mean of the newest losses; then pull from the best worker.

    A round is decided when each peer's report of this round or the one before it is here. Training does not wait for
    it, nor for the weights, which are merged when they have arrived. Ties go to the lowest worker.
    """

    class Parameters(ChoiceParameters):
        """Defaults: recalled from the paper where the field says so, chosen here otherwise."""

        period: int = Field(100, ge=1, description="Iterations between rounds (recalled).")
        target: Literal["best2all", "best2worst"] = Field(
            "best2all", description="Who pulls: all but the best (recalled as the default), or only the worst."
        )
        share: float = Field(
            0.75, ge=0, le=1, description="lambda in w <- w - lambda * (w - w_best) (recalled); 1 copies, 0 is off."
        )
        loss_window: int = Field(20, ge=1, description="Newest training losses that a report averages.")

    parameters: Parameters
    needs_everyone = True
    receives = (LossReport, WeightsRequest, Weights)

    def __init__(self, parameters: Parameters, setup: Setup) -> None:
        super().__init__(parameters, setup)
        self._losses: deque[float] = deque(maxlen=parameters.loss_window)
        self._reports: dict[int, LossReport] = {}
        self._open_round: int | None = None
        self._iterations = 0
        self._arrived: list[Merge] = []

    def stepped(self, iterations: int, loss: float) -> list[Action]:
        """At the end of a period: publish, and pull where that is decided already."""
        self._iterations = iterations
        self._losses.append(loss)
        if iterations % self.parameters.period:
            return []
        self._open_round = iterations // self.parameters.period
        report = LossReport(self._open_round, sum(self._losses) / len(self._losses))
        self._reports[self.setup.worker] = report
        message = Message(self.setup.worker, report)
        return [*(Send(peer, message) for peer in self.setup.peers), *self._decide()]

    def received(self, message: Message) -> list[Action]:
        """A peer's report, request or weights."""
        match message.body:
            case LossReport() as report:
                self._reports[message.sender] = report
                return self._decide()
            case WeightsRequest():
                weights = Message(self.setup.worker, Weights(self._iterations), (self.setup.replica.snapshot(),))
                return [Send(message.sender, weights)]
            case _:
                self._arrived.append(Merge(message.tensors[0], self.parameters.share))
                return []

    def merges(self) -> list[Merge]:
        """The weights that have arrived, in that order."""
        arrived, self._arrived = self._arrived, []
        return arrived

    def lost(self, peer: int) -> None:
        """Rounds go on among the others."""
        self._reports.pop(peer, None)

    def _decide(self) -> list[Action]:
        """Ask the best worker for its weights if the open round can be decided and calls for it."""
        if self._open_round is None or len(self._reports) <= len(self.setup.peers):
            return []
        if any(report.round < self._open_round - 1 for report in self._reports.values()):
            return []
        self._open_round = None
        if self.parameters.share == 0:
            return []
        best, worst = self._ranked()
        me = self.setup.worker
        pulls = me != best and (self.parameters.target == "best2all" or me == worst)
        return [Send(best, Message(me, WeightsRequest()))] if pulls else []

    def _ranked(self) -> tuple[int, int]:
        """The workers of least and of greatest loss; a loss that is no number is the greatest."""
        losses = {
            worker: math.inf if math.isnan(report.loss) else report.loss for worker, report in self._reports.items()
        }
        best = min(losses, key=lambda worker: (losses[worker], worker))
        worst = max(losses, key=lambda worker: (losses[worker], -worker))
        return best, worst
