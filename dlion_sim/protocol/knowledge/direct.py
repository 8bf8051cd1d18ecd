"""Direct knowledge transfer (DLion, HPDC'21): merge in the weights of the worker with the least training loss."""

from __future__ import annotations

import math
from collections import deque
from typing import ClassVar, Literal

from pydantic import Field
from torch import Tensor

from dlion_sim.protocol.choices import ChoiceParameters, KnowledgeTransfer, Setup
from dlion_sim.protocol.events import Action, Send
from dlion_sim.protocol.messages import Body, Count, MalformedMessageError, Message, Weights
from dlion_sim.protocol.registry import register


class LossReport(Body, frozen=True, array_like=True):
    """The sender's mean training loss at the end of knowledge-transfer round `round`."""

    kind: ClassVar[str] = "loss"
    round: Count
    loss: float


class WeightsRequest(Body, frozen=True, array_like=True):
    """The sender asks for the receiver's weights."""

    kind: ClassVar[str] = "weights?"


@register("knowledge_transfer", "direct")
class DirectKnowledgeTransfer(KnowledgeTransfer):
    """Every `period` iterations, workers publish the mean of their newest losses, then pull from the best one.

    A round is decided when each peer's report of that round is here, so that losses after equally many iterations are
    compared. Where some are still missing when the worker's next round opens, their senders' last ones before that
    count. Training does not wait for any of it, nor for the weights, which are merged when they have arrived. Ties go
    to the lowest worker.
    """

    class Parameters(ChoiceParameters):
        """Defaults: recalled from the paper where the field says so, chosen here otherwise."""

        period: int = Field(100, ge=1, description="Iterations between rounds (recalled).")
        target: Literal["best2all", "best2worst"] = Field(
            "best2all", description="All but the best pull (recalled), or only the worst."
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
        self._reports: dict[int, dict[int, float]] = {setup.worker: {}, **{peer: {} for peer in setup.peers}}
        """By worker and round, losses: the last one of decided rounds, and all later ones."""
        self._open_round: int | None = None
        self._iterations = 0
        """Completed ones; 0 before the first here."""
        self._arrived: list[Tensor] = []

    def stepped(self, iterations: int, loss: float) -> list[Action]:
        """At the end of a period: decide the last round if it is still open, and send a report for the next one."""
        before, self._iterations = self._iterations or iterations - 1, iterations
        self._losses.append(loss)
        number = iterations // self.parameters.period
        if number == before // self.parameters.period:  # Some may have been skipped.
            return []
        overdue = self._decide()
        self._open_round = number
        report = LossReport(self._open_round, sum(self._losses) / len(self._losses))
        self._reports[self.setup.worker][report.round] = report.loss
        message = Message(self.setup.worker, report)
        return [*overdue, *(Send(peer, message) for peer in self.setup.peers), *self._decide_if_complete()]

    def received(self, message: Message) -> list[Action]:
        match message.body:
            case LossReport() as report:
                reports = self._reports[message.sender]
                if reports and report.round <= max(reports):
                    raise MalformedMessageError(f"a report of round {report.round} after one of round {max(reports)}")
                reports[report.round] = report.loss
                return self._decide_if_complete()
            case WeightsRequest():
                weights = Message(self.setup.worker, Weights(self._iterations), (self.setup.replica.snapshot(),))
                return [Send(message.sender, weights)]
            case _:
                self._arrived.append(message.tensors[0])
                return []

    def merge(self) -> int:
        arrived, self._arrived = self._arrived, []
        for weights in arrived:
            self.setup.replica.merge(weights, self.parameters.share)
        return len(arrived)

    def lost(self, peer: int) -> None:
        self._reports.pop(peer, None)

    def joined(self, peer: int, iteration: int) -> list[Action]:
        self._reports[peer] = {}
        return []

    def _decide_if_complete(self) -> list[Action]:
        return self._decide() if all(self._open_round in reports for reports in self._reports.values()) else []

    def _decide(self) -> list[Action]:
        """Decide the open round, if any: request the best worker's weights if this worker is to pull them."""
        decided, self._open_round = self._open_round, None
        if decided is None:
            return []
        for worker, reports in self._reports.items():
            newest = max((each for each in reports if each <= decided), default=0)
            self._reports[worker] = {each: loss for each, loss in reports.items() if each >= newest}
        best, worst = self._ranked(decided)
        me = self.setup.worker
        pulls = me != best and (self.parameters.target == "best2all" or me == worst)
        return [Send(best, Message(me, WeightsRequest()))] if pulls and self.parameters.share > 0 else []

    def _ranked(self, decided: int) -> tuple[int, int]:
        """The workers of least and of greatest loss up to that round; NaN is the greatest."""
        losses = {
            worker: math.inf if math.isnan(loss) else loss
            for worker, reports in self._reports.items()
            for each, loss in reports.items()
            if each <= decided
        }
        best = min(losses, key=lambda worker: (losses[worker], worker))
        worst = max(losses, key=lambda worker: (losses[worker], -worker))
        return best, worst
