"""Which samples are held out for validation, and which worker holds which of the others.

Each lies with exactly one worker, or all lie with all; no worker is without.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

from dlion_sim.errors import InputError

Indices = npt.NDArray[np.int64]
PartitionKind = Literal["iid", "dirichlet", "label_shards", "owners", "shared"]

_REDRAWS = 100


def partition(
    kind: PartitionKind,
    labels: Indices,
    workers: int,
    rng: np.random.Generator,
    *,
    alpha: float = 0.5,
    shards_per_worker: int = 2,
) -> list[Indices]:
    """The sample indices of each worker, one array a worker.

    - `iid`: shuffled and cut into sizes that differ by one at most.
    - `dirichlet`: each class is divided in proportions drawn from a symmetric Dirichlet distribution; the smaller
      `alpha` (> 0), the fewer classes a worker holds (Hsu et al., arXiv:1909.06335).
    - `label_shards`: sorted by label and cut into equal shards, of which each worker is dealt `shards_per_worker`
      (McMahan et al., AISTATS 2017).
    - `owners`: whoever a label stands for is dealt to a worker, with all samples, as many or one more a worker.
    - `shared`: every worker holds all.

    Raises InputError where that leaves a worker without a sample.
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
            return _owners(labels, workers, rng)
        case "shared":
            return [np.arange(len(labels))] * workers
        case _:
            raise InputError(
                f"no partition is named {kind!r}",
                path="partition",
                allowed="iid, dirichlet, label_shards, owners, shared",
            )


def hold_out(labels: Indices, fraction: float, rng: np.random.Generator) -> Indices:
    """The indices of that `fraction` (0 to 0.5) of the samples of each label, rounded to whole ones, in random order.

    Raises InputError where that is no sample.
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
    """How many samples of each class each shard holds: one row a shard, one column a class."""
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


def _owners(owners: Indices, workers: int, rng: np.random.Generator) -> list[Indices]:
    everyone = rng.permutation(np.unique(owners))
    if len(everyone) < workers:
        problem = f"{len(everyone)} owners of samples are fewer than the {workers} workers"
        raise InputError(problem, path="partition", allowed="another partition, or fewer workers")
    return [np.flatnonzero(np.isin(owners, own)) for own in np.array_split(everyone, workers)]


def _label_shards(labels: Indices, workers: int, rng: np.random.Generator, shards_per_worker: int) -> list[Indices]:
    shards = np.array_split(np.argsort(labels, kind="stable"), workers * shards_per_worker)
    dealt = rng.permutation(len(shards)).reshape(workers, shards_per_worker)
    return [np.concatenate([shards[index] for index in own]) for own in dealt]
