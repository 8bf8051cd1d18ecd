"""Models and data sets with parameters, and their short forms."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Discriminator, Field, Tag, ValidationInfo, field_validator, model_validator

from dlion_sim.scenario.model import Model


class Gpt(Model):
    """A transformer for text like GPT-2, with the data set's context length."""

    name: Literal["gpt"]
    layers: Annotated[int, Field(ge=1, le=1000)] = 4
    """Number of transformer blocks."""
    heads: Annotated[int, Field(ge=1)] = 4
    """Attention heads per block; must divide the width."""
    width: Annotated[int, Field(ge=1, le=100_000)] = 128
    """Size of a token's representation."""

    @model_validator(mode="after")
    def _divides(self) -> Self:
        if self.width % self.heads:
            raise ValueError(f"a width of {self.width} cannot be divided among {self.heads} heads")
        return self


class Shakespeare(Model):
    """Shakespeare's works, cut into sequences of tokens."""

    name: Literal["shakespeare"]
    context: Annotated[int, Field(ge=1, le=16_384)] = 64
    """Tokens per sequence (sample)."""
    tokenizer: Literal["characters", "bpe"] = "characters"
    """Tokens: characters, or a byte-pair encoding of 596 tokens."""
    test_samples: Annotated[int, Field(ge=1)] | None = None
    """Size of the test set, at random from the last tenths of all works; by default all of them."""


class Lora(Model):
    """Low-rank adaptation (Hu et al., ICLR 2022): only low-rank updates of dense layers are trained and sent."""

    rank: Annotated[int, Field(ge=1, le=10_000)] = 8
    """Rank of the updates."""
    alpha: Annotated[float, Field(gt=0)] = 16.0
    """The updates are scaled by alpha / rank."""
    targets: Annotated[list[str], Field(min_length=1)] | None = None
    """Suffixes of the names of adapted layers, e.g. query_key_value. By default all dense layers."""
    base: str | None = None
    """File of the base model's parameters (torch.save of a state_dict). By default the initial ones."""
    base_sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")] | None = None
    """SHA-256 that the file must have."""

    @field_validator("base")
    @classmethod
    def _found_from_anywhere(cls, base: str | None, info: ValidationInfo) -> str | None:
        folder = (info.context or {}).get("folder", Path())
        return None if base is None else str(Path(folder, base).absolute())

    @field_validator("base_sha256")
    @classmethod
    def _of_a_base(cls, base_sha256: str | None, info: ValidationInfo) -> str | None:
        if base_sha256 is not None and info.data.get("base", "") is None:
            raise ValueError("has no file to apply to: base is not set")
        return base_sha256


def _is_set(given: object) -> str:
    return "set" if isinstance(given, Mapping | Model) else "name"


ModelSpec = Annotated[
    Annotated[Annotated[str, Tag("name")] | Annotated[Gpt, Tag("set")], Discriminator(_is_set)],
    BeforeValidator(lambda given: {"name": given} if given == "gpt" else given, json_schema_input_type=str | Gpt),
]
DatasetSpec = Annotated[
    Annotated[Annotated[str, Tag("name")] | Annotated[Shakespeare, Tag("set")], Discriminator(_is_set)],
    BeforeValidator(
        lambda given: {"name": given} if given == "shakespeare" else given, json_schema_input_type=str | Shakespeare
    ),
]


def named(spec: str | Model) -> tuple[str, dict[str, Any]]:
    """The name of a model or data set, and its parameters."""
    if isinstance(spec, str):
        return spec, {}
    parameters = spec.model_dump()
    return parameters.pop("name"), parameters
