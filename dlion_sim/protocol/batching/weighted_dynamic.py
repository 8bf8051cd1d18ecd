"""Weighted dynamic batching (DLion, HPDC'21): batches follow compute power, and updates are weighted by them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

import msgspec
from pydantic import Field

from dlion_sim.protocol.batching.profile import CostFit, CostModel, split
from dlion_sim.protocol.choices import Batching, ChoiceParameters, Setup
from dlion_sim.protocol.events import Action, Send
from dlion_sim.protocol.messages import Body, Contribution, Message
from dlion_sim.protocol.registry import register


class ComputeProfile(Body, frozen=True, array_like=True):
    """The sender's iteration time, alpha + beta * batch size (seconds), and the largest batch that it can take."""

    kind: ClassVar[str] = "profile"
    alpha: Annotated[float, msgspec.Meta(ge=0, le=1e6)]
    beta: Annotated[float, msgspec.Meta(gt=0, le=1e6)]
    limit: Annotated[int, msgspec.Meta(ge=1)]


@register("batching", "weighted_dynamic")
class WeightedDynamicBatching(Batching):
    """Each worker times itself and takes the part of the global batch that makes iterations equally long.

    The split is in `profile.split`, the growth of the global batch in `GlobalBatchSchedule`.
    """

    class Parameters(ChoiceParameters):
        """Defaults: recalled from the paper where the field says so, chosen here otherwise."""

        weights: Literal["ratio", "share", "equal"] = Field(
            "ratio",
            description="Weight of sender j's gradient at receiver k: ratio LBS_j/LBS_k (recalled), share "
            "n*LBS_j/GBS, or equal.",
        )
        weight_limit: float = Field(8.0, ge=1, description="Ratios are clipped to [1/limit, limit].")
        growth: Literal["phases", "none"] = Field(
            "phases", description="phases: the global batch grows by addition, then multiplication."
        )
        learning_rate: Literal["constant", "linear"] = Field(
            "constant",
            description="linear: steps grow with the global batch (HotCloud'19, with plain SGD).",
        )
        warmup_increment: int | None = Field(
            None, ge=1, description="Samples added per epoch; by default the first global batch."
        )
        warmup_cap: float = Field(0.01, gt=0, le=1, description="Addition ends at this part of the data (recalled).")
        growth_factor: float = Field(2.0, gt=1, description="Factor per epoch afterwards.")
        cap: float = Field(0.10, gt=0, le=1, description="Growth ends at this part of the data (recalled).")
        profile_batch_sizes: tuple[Annotated[int, Field(ge=1)], ...] | None = Field(
            None,
            strict=False,
            description="Batch sizes timed before training; by default a quarter, a half and all of the first "
            "batch. []: none.",
        )
        profile_repeats: int = Field(1, ge=1, le=1000, description="How often each is timed.")
        window: int = Field(50, ge=2, description="Newest measurements that a fit uses.")
        refit_every: int = Field(50, ge=1, description="Iterations between fits.")
        surprise: float = Field(0.20, gt=0, description="Relative error of a prediction that counts as a surprise.")
        surprises: int = Field(2, ge=1, description="Surprises in succession that cause a fit at once.")
        hysteresis: float = Field(0.05, ge=0, description="Relative change of the fit below which it is not shared.")

    parameters: Parameters
    needs_everyone = True
    receives = (ComputeProfile,)

    def __init__(self, parameters: Parameters, setup: Setup) -> None:
        super().__init__(parameters, setup)
        start = setup.batch_size * setup.workers
        self._global = GlobalBatchSchedule(
            start=start,
            increment=parameters.warmup_increment or start,
            factor=parameters.growth_factor,
            warmup_cap=parameters.warmup_cap,
            cap=parameters.cap if parameters.growth == "phases" else 0.0,
            samples=setup.training_samples,
        )
        self._cost = CostModel(
            window=parameters.window,
            refit_every=parameters.refit_every,
            tolerance=parameters.surprise,
            surprises=parameters.surprises,
        )
        self._shared: dict[int, ComputeProfile] = {}
        self._split: tuple[int, int] | None = None
        """(global batch size, this worker's part) by the profiles shared last."""
        self._workers = sorted((setup.worker, *setup.peers))
        """The workers that share the global batch, in order; a joining one does once its fit is known."""

    def profile(self) -> tuple[int, ...]:
        """Each batch size of the profile that the shard allows, repeated."""
        sizes = self.parameters.profile_batch_sizes
        if sizes is None:
            whole = self.setup.batch_size
            sizes = tuple(sorted({-(-whole // 4), -(-whole // 2), whole}))
        fitting = (size for size in sizes if size <= self.setup.shard_samples)
        return tuple(size for size in fitting for _ in range(self.parameters.profile_repeats))

    def measured(self, measurements: Sequence[tuple[int, float]]) -> list[Action]:
        """Refit, and send the fit to all peers if it differs from the shared one."""
        self._cost.add(measurements)
        fit = self._cost.fit
        assert fit is not None
        known = self._shared.get(self.setup.worker)
        if known and not self._differs(fit, CostFit(known.alpha, known.beta)):
            return []
        profile = ComputeProfile(fit.alpha, fit.beta, self.setup.shard_samples)
        self._take(self.setup.worker, profile)
        message = Message(self.setup.worker, profile)
        return [Send(peer, message) for peer in self.setup.peers]

    def received(self, message: Message) -> list[Action]:
        assert isinstance(message.body, ComputeProfile)
        self._take(message.sender, message.body)
        return []

    def lost(self, peer: int) -> None:
        self._shared.pop(peer, None)
        self._workers = [worker for worker in self._workers if worker != peer]
        self._split = None

    def joined(self, peer: int, iteration: int) -> list[Action]:
        known = self._shared.get(self.setup.worker)
        return [Send(peer, Message(self.setup.worker, known))] if known else []

    def batch_size(self, iteration: int) -> int:
        """This worker's part of the global batch; an equal part until every worker's fit is known."""
        total, workers = self.global_batch_size(iteration), self._workers
        if len(self._shared) < len(workers):
            return max(1, min(total // len(workers), self.setup.shard_samples))
        if self._split is None or self._split[0] != total:
            profiles = [self._shared[worker] for worker in workers]
            fits = [CostFit(profile.alpha, profile.beta) for profile in profiles]
            parts = split(total, fits, [profile.limit for profile in profiles])
            self._split = (total, parts[workers.index(self.setup.worker)])
        return self._split[1]

    def global_batch_size(self, iteration: int) -> int:
        return self._global.at(iteration)

    def weight(self, gradient: Contribution, own_batch_size: int) -> float:
        """The sender's batch against the receiver's (ratio) or the mean one (share), times the rate's growth."""
        total = self.global_batch_size(gradient.iteration)
        growth = total / self.global_batch_size(0) if self.parameters.learning_rate == "linear" else 1.0
        match self.parameters.weights:
            case "ratio":
                limit = self.parameters.weight_limit
                return growth * min(max(gradient.batch_size / own_batch_size, 1 / limit), limit)
            case "share":
                return growth * len(self._workers) * gradient.batch_size / total
            case _:
                return growth

    def _take(self, worker: int, profile: ComputeProfile) -> None:
        if worker not in self._workers:
            self._workers = sorted((*self._workers, worker))
        self._shared[worker] = profile
        self._split = None

    def _differs(self, fit: CostFit, known: CostFit) -> bool:
        """Whether the predicted time of the present batch differs noticeably from that of the shared fit."""
        size = self._split[1] if self._split else self.setup.batch_size
        return abs(fit.seconds(size) - known.seconds(size)) > self.parameters.hysteresis * known.seconds(size)


class GlobalBatchSchedule:
    """GBS grows by addition up to a first cap, then by multiplication up to a second one, once every epoch.

    Small batches early are good for accuracy; larger ones later replace a decay of the learning rate. An epoch is as
    many samples as all workers' shards hold, so the GBS is a function of the iteration alone and needs no agreement.
    A start above a cap is kept as it is.

    `start`, `increment`, `samples` are in samples; the caps are fractions of `samples`.
    """

    def __init__(
        self, *, start: int, increment: int, factor: float, warmup_cap: float, cap: float, samples: int
    ) -> None:
        self._increment = increment
        self._factor = factor
        self._warmup_cap = warmup_cap * samples
        self._cap = max(start, int(cap * samples))
        self._samples = samples
        self._begins = [0]
        self._sizes = [start]

    def at(self, iteration: int) -> int:
        """The global batch size of `iteration` (0, 1, ...)."""
        while self._sizes[-1] < self._cap and iteration >= (end := self._end_of_last()):
            self._begins.append(end)
            self._sizes.append(self._grown(self._sizes[-1]))
        return self._sizes[bisect_right(self._begins, iteration) - 1]

    def _end_of_last(self) -> int:
        return self._begins[-1] + -(-self._samples // self._sizes[-1])

    def _grown(self, size: int) -> int:
        grown = size + self._increment if size < self._warmup_cap else int(size * self._factor)
        return min(max(grown, size + 1), self._cap)
