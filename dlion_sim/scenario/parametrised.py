"""Models and data sets that can be set to something, and how to write which one is meant."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Discriminator, Field, Tag, ValidationInfo, field_validator, model_validator

from dlion_sim.scenario.model import Model


class Gpt(Model):
    """A transformer for text, as GPT-2's; its context is the data set's."""

    name: Literal["gpt"]
    layers: Annotated[int, Field(ge=1, le=1000)] = 4
    """Blocks of attention and a layer for each token."""
    heads: Annotated[int, Field(ge=1)] = 4
    """Heads of the attention of each block; they divide its width."""
    width: Annotated[int, Field(ge=1, le=100_000)] = 128
    """Numbers for each token, between blocks."""

    @model_validator(mode="after")
    def _divides(self) -> Self:
        if self.width % self.heads:
            raise ValueError(f"a width of {self.width} cannot be divided among {self.heads} heads")
        return self


class Shakespeare(Model):
    """Shakespeare's works, cut into sequences of tokens."""

    name: Literal["shakespeare"]
    context: Annotated[int, Field(ge=1, le=16_384)] = 64
    """Tokens of a sequence, which is a sample."""
    tokenizer: Literal["characters", "bpe"] = "characters"
    """What is a token: a character; or of a byte-pair encoding also frequent pieces of words, 596 tokens in all."""


class Lora(Model):
    """Low-rank adaptation (Hu et al., ICLR 2022): only small additions to dense layers are trained and sent."""

    rank: Annotated[int, Field(ge=1)] = 8
    """How thin the two matrices are whose product is an addition."""
    alpha: Annotated[float, Field(gt=0)] = 16.0
    """Additions are multiplied by alpha / rank."""
    targets: Annotated[list[str], Field(min_length=1)] | None = None
    """Ends of the names of the layers that have one, e.g. query_key_value. None: all dense layers."""
    base: str | None = None
    """A file of the model's parameters, relative to the scenario file's folder, which torch.save wrote of a state_dict.
    None: they are the initial ones."""
    base_sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")] | None = None
    """What that file must be. None: as it is."""

    @field_validator("base")
    @classmethod
    def _found_from_anywhere(cls, base: str | None, info: ValidationInfo) -> str | None:
        folder = (info.context or {}).get("folder", Path())
        return None if base is None else str(Path(folder, base).absolute())

    @field_validator("base_sha256")
    @classmethod
    def _of_a_base(cls, base_sha256: str | None, info: ValidationInfo) -> str | None:
        if base_sha256 is not None and info.data.get("base", "") is None:
            raise ValueError("is that of no file: without base there is none")
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
    """The name of a model or data set, and what it is set to."""
    if isinstance(spec, str):
        return spec, {}
    parameters = spec.model_dump()
    return parameters.pop("name"), parameters
