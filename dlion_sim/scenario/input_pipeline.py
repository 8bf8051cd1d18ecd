"""How a machine gets the samples that it computes on."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from dlion_sim.scenario.faults import RuleError
from dlion_sim.scenario.model import Model
from dlion_sim.scenario.units import Bandwidth, Size

_BITS = 8


class Input(Model):
    """What feeds each machine: samples are read from its disk and prepared, the next batch while this one is computed
    and exchanged. A computation waits for what is left of that (as DS-Analyzer has it: Mohan et al., VLDB'21)."""

    prep_rate: Annotated[float, Field(gt=0)] | None = None
    """Samples that a machine prepares in a second: decodes, augments. None: as many as it needs."""
    disk: Annotated[Bandwidth, Field(gt=0)] | None = None
    """How fast a machine reads samples, e.g. 525 MB/s. None: as fast as it needs them."""
    sample_bytes: Annotated[Size, Field(gt=0)] | None = None
    """Size of a sample on the disk, e.g. 110 kB."""
    cache: Annotated[float, Field(ge=0, le=1)] = 0.0
    """The part of samples that are in memory once they have been read: in its first epoch, a worker reads all."""

    @model_validator(mode="after")
    def _feeds(self) -> Self:
        if self.prep_rate is None and self.disk is None:
            raise RuleError("says not how fast samples come", allowed="prep_rate, disk, or both")
        if (self.disk is None) != (self.sample_bytes is None):
            raise RuleError("disk and sample_bytes go together", allowed="both or neither")
        return self

    def preparing(self, samples: int) -> float:
        """How long a machine prepares so many (s)."""
        return samples / self.prep_rate if self.prep_rate else 0.0

    def reading(self, samples: int, taken: int, shard_samples: int) -> float:
        """How long it reads so many (s), having `taken` some of its shard before: in the first epoch all is on disk."""
        if self.disk is None or self.sample_bytes is None:
            return 0.0
        new = min(max(shard_samples - taken, 0), samples)
        return _BITS * (new + (1 - self.cache) * (samples - new)) * self.sample_bytes / self.disk
