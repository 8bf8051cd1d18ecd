"""Partitions: which samples are stored at which worker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from dlion_sim.errors import did_you_mean
from dlion_sim.scenario.cluster import Cluster
from dlion_sim.scenario.faults import RuleError, listed
from dlion_sim.scenario.model import Model, or_name


class Iid(Model):
    """Independent and identically distributed: samples are assigned to workers at random, in equal numbers."""

    kind: Literal["iid"] = "iid"


class Dirichlet(Model):
    """Each class is split among the workers in proportions from a Dirichlet distribution."""

    kind: Literal["dirichlet"] = "dirichlet"
    alpha: Annotated[float, Field(gt=0)] = 0.5
    """Concentration: the smaller, the fewer classes per worker."""


class LabelShards(Model):
    """Samples are sorted by label and split into shards, and each worker gets some (McMahan et al., 2017)."""

    kind: Literal["label_shards"] = "label_shards"
    shards_per_worker: Annotated[int, Field(ge=1)] = 2
    """Shards per worker: the fewer, the fewer classes per worker."""


Held = Annotated[
    list[int],
    Field(min_length=1),
    BeforeValidator(
        lambda given: given if isinstance(given, list) else [given], json_schema_input_type=int | list[int]
    ),
]
"""Numbers of owners; a single one may be written without a list."""


class Owners(Model):
    """Samples of one owner, e.g. a writer or site, stay together: owners are assigned to workers at random, or as `at`
    says."""

    kind: Literal["owners"] = "owners"
    at: Annotated[dict[str, Held], Field(min_length=1)] | None = None
    """Owners by cloud or worker, e.g. {s3: 3, s1: [0, 4], s2/0: 1}. A cloud's are split among its workers without an
    entry; other owners are assigned at random to the remaining workers."""
    without: Held | None = None
    """Owners that are left out, e.g. 3 or [3, 4]."""

    @model_validator(mode="after")
    def _lie_at_one_place(self) -> Self:
        found: dict[int, str] = {}
        for place, held in (self.at or {}).items():
            for owner in held:
                if owner in found:
                    raise RuleError(f"owner {owner} is at {found[owner]} already", at=("at", place))
                found[owner] = place
        for owner in self.without or ():
            if owner in found:
                raise RuleError(
                    f"owner {owner} is at {found[owner]}", allowed="owners that are not in at", at=("without",)
                )
        return self

    def workers_at(self, cluster: Cluster) -> dict[str, Sequence[int]]:
        """The workers, by number, that share the samples of each place in `at`.

        Raises RuleError for an unknown place, and for a cloud all of whose workers have entries of their own.
        """
        named = self.at or {}
        names = {worker.name: worker.index for worker in cluster.workers}
        clouds: dict[str, list[int]] = {}
        for worker in cluster.workers:
            clouds.setdefault(worker.cloud, []).extend([worker.index] * (worker.name not in named))
        places: dict[str, Sequence[int]] = {**clouds, **{name: [index] for name, index in names.items()}}
        for place in named:
            if place not in places:
                problem = f"there is no cloud or worker '{place}'{did_you_mean(place, places)}"
                allowed = f"{listed(clouds)}; or a worker of these, e.g. {cluster.workers[0].name}"
                raise RuleError(problem, allowed=allowed, at=("at",))
            if not places[place]:
                raise RuleError(
                    "all of its workers have entries of their own",
                    allowed="either the cloud or its workers",
                    at=("at", place),
                )
        return {place: places[place] for place in named}


class Shared(Model):
    """Every worker has all samples, in its own order."""

    kind: Literal["shared"] = "shared"


AnyPartition = Iid | Dirichlet | LabelShards | Owners | Shared
Partition = Annotated[Annotated[AnyPartition, Field(discriminator="kind")], or_name(AnyPartition)]
