"""Held-out validation samples, and the partition of the others among workers.

Each sample is stored at exactly one worker, or all at all; no worker is without.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from dlion_sim.errors import InputError

Indices = npt.NDArray[np.int64]
PartitionKind = Literal["iid", "dirichlet", "label_shards", "owners", "shared"]

_REDRAWS = 100


class Place(NamedTuple):
    """The workers that store the samples of some owners."""

    owners: Sequence[int]
    workers: Sequence[int]
    """By number; they split the samples."""


def partition(
    kind: PartitionKind,
    labels: Indices,
    workers: int,
    rng: np.random.Generator,
    *,
    alpha: float = 0.5,
    shards_per_worker: int = 2,
    at: Mapping[str, Place] | None = None,
) -> list[Indices]:
    """The sample indices of each worker, one array per worker.

    - `iid`: shuffled and cut into sizes that differ by one at most.
    - `dirichlet`: each class is divided in proportions drawn from a symmetric Dirichlet distribution; the smaller
      `alpha` (> 0), the fewer classes a worker holds (Hsu et al., arXiv:1909.06335).
    - `label_shards`: sorted by label and cut into equal shards, of which each worker is dealt `shards_per_worker`
      (McMahan et al., AISTATS 2017).
    - `owners`: labels are owners, whose samples are stored at the places `at`, by name. Other owners are assigned to
      the remaining workers at random, in equal numbers or one more.
    - `shared`: every worker has all.

    Raises InputError if a worker would have no sample.
    """
    match kind:
        case "iid":
            _require(len(labels), workers)
            return np.array_split(rng.permutation(len(labels)), workers)
        case "dirichlet":
            _require(len(labels), workers)
            return _dirichlet(labels, workers, rng, alpha)
        case "label_shards":
            _require(len(labels), workers * shards_per_worker)
            return _label_shards(labels, workers, rng, shards_per_worker)
        case "owners":
            return _owners(labels, workers, rng, at or {})
        case "shared":
            return [np.arange(len(labels))] * workers
        case _:
            raise InputError(
                f"no partition is named {kind!r}",
                path="partition",
                allowed="iid, dirichlet, label_shards, owners, shared",
            )


def hold_out(labels: Indices, fraction: float, rng: np.random.Generator) -> Indices:
    """The indices of a `fraction` (0 to 0.5) of the samples of each label, rounded, in random order.

    Raises InputError if that is no sample.
    """
    order = rng.permutation(len(labels))
    classes = [order[labels[order] == label] for label in np.unique(labels)]
    held_out = np.concatenate([members[: round(fraction * len(members))] for members in classes])
    if not len(held_out):
        largest = max(map(len, classes))
        problem = "no class is a whole sample" if len(classes) > 1 else f"{largest} samples is not a whole one"
        raise InputError(
            f"{fraction:g} of {problem}",
            path="validation",
            allowed=f"{1 / largest:.2g} to 0.5",
        )
    # Not class by class, since evaluations may be on the first ones alone.
    return rng.permutation(held_out)


def class_histogram(labels: Indices, shards: Sequence[Indices], classes: int) -> list[list[int]]:
    """Number of samples of each class in each shard: a row per shard, a column per class."""
    return [np.bincount(labels[shard], minlength=classes).tolist() for shard in shards]


def _require(samples: int, parts: int) -> None:
    if samples < parts:
        raise InputError(f"{samples} samples cannot be cut into {parts} parts", path="partition")


def _dirichlet(labels: Indices, workers: int, rng: np.random.Generator, alpha: float) -> list[Indices]:
    for _ in range(_REDRAWS):
        pieces: list[list[Indices]] = [[] for _ in range(workers)]
        for label in np.unique(labels):
            members = rng.permutation(np.flatnonzero(labels == label))
            shares = rng.dirichlet(np.full(workers, alpha))
            cuts = np.rint(np.cumsum(shares)[:-1] * len(members)).astype(np.int64)
            for own, piece in zip(pieces, np.split(members, cuts), strict=True):
                own.append(piece)
        shards = [np.concatenate(own) for own in pieces]
        if all(map(len, shards)):
            return shards
    raise InputError(
        f"{_REDRAWS} Dirichlet draws with alpha {alpha:g} each left one of {workers} workers without a sample; "
        "raise alpha or take fewer workers",
        path="partition",
    )


def _owners(owners: Indices, workers: int, rng: np.random.Generator, at: Mapping[str, Place]) -> list[Indices]:
    placed = [owner for place in at.values() for owner in place.owners]
    left = rng.permutation(np.setdiff1d(owners, placed))
    shards: dict[int, Indices] = {}
    for name, place in at.items():
        samples, sharing = np.flatnonzero(np.isin(owners, place.owners)), len(place.workers)
        if len(samples) < sharing:
            problem = f"{len(samples)} samples cannot be shared by {sharing} workers"
            raise InputError(problem, path=f"partition.at.{name}", allowed="more owners there, or fewer workers")
        parts = np.array_split(rng.permutation(samples) if sharing > 1 else samples, sharing)
        shards.update(zip(place.workers, parts, strict=True))
    others = [worker for worker in range(workers) if worker not in shards]
    if len(left) < len(others) or (len(left) and not others):
        raise _cannot_deal(left, others, placed=bool(at))
    for worker, own in zip(others, np.array_split(left, len(others)) if others else [], strict=True):
        shards[worker] = np.flatnonzero(np.isin(owners, own))
    return [shards[worker] for worker in range(workers)]


def _cannot_deal(left: Indices, workers: Sequence[int], *, placed: bool) -> InputError:
    """The fault that owners without a place cannot be assigned to the workers without owners."""
    if not placed:
        problem = f"{len(left)} owners of samples are fewer than the {len(workers)} workers"
        return InputError(problem, path="partition", allowed="another partition, or fewer workers")
    if workers:
        problem = f"{len(left)} owners are left for the {len(workers)} workers that are not named"
        return InputError(problem, path="partition.at", allowed="workers or their cloud, with owners")
    told = ", ".join(map(str, sorted(left.tolist())[:12])) + ", ..." * (len(left) > 12)
    problem = f"nothing says where the samples of owner {told} lie, and all workers are named"
    allowed = "them at a place that is named, or in partition.without"
    return InputError(problem, path="partition.at", allowed=allowed)


def _label_shards(labels: Indices, workers: int, rng: np.random.Generator, shards_per_worker: int) -> list[Indices]:
    shards = np.array_split(np.argsort(labels, kind="stable"), workers * shards_per_worker)
    dealt = rng.permutation(len(shards)).reshape(workers, shards_per_worker)
    return [np.concatenate([shards[index] for index in own]) for own in dealt]
