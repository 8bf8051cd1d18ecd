"""Base classes of all parts of a scenario: frozen, strict about types and keys, documented by attribute docstrings."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Mapping
from typing import Annotated, Any, ClassVar, Literal, Self, get_args

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    ModelWrapValidatorHandler,
    ValidationError,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, InitErrorDetails

from dlion_sim.errors import did_you_mean
from dlion_sim.scenario.faults import UnknownKeyError

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9._-]*$")]
"""A name that is valid as a folder: letters, digits, '.', '_' and '-'."""


class Model(BaseModel):
    """A part of a scenario. The error for an unknown key has the nearest known one."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        allow_inf_nan=False,
        populate_by_name=True,
        use_attribute_docstrings=True,
    )

    @model_validator(mode="wrap")
    @classmethod
    def _name_the_known_keys(cls, value: object, handler: ModelWrapValidatorHandler[Self]) -> Self:
        try:
            return handler(value)
        except ValidationError as error:
            keys = [field.alias or name for name, field in cls.model_fields.items()]
            raise ValidationError.from_exception_data(error.title, _with_known_keys(error, keys)) from None

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A copy with some fields replaced, without cached properties of the original."""
        copy = super().model_copy(update=update, deep=deep)
        for derived in copy.__dict__.keys() - type(self).model_fields.keys():
            del copy.__dict__[derived]
        return copy

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """JSON Schema with defaults in human units."""
        described = handler(schema)
        for key, default in cls.model_construct().model_dump(mode="json", by_alias=True).items():
            described["properties"][key]["default"] = default
        return described


def _with_known_keys(error: ValidationError, keys: Collection[str]) -> list[InitErrorDetails]:
    """The error's lines, with pydantic's "extra" as an unknown key, and `keys` as the allowed ones.

    They come first: a misspelt key explains a missing one.
    """
    lines = []
    for line in sorted(error.errors(include_url=False), key=lambda line: line["type"] != "extra_forbidden"):
        details = InitErrorDetails(type=line["type"], loc=line["loc"], input=line["input"], ctx=line.get("ctx", {}))
        if line["type"] == "extra_forbidden":
            key = line["loc"][-1]
            fault = UnknownKeyError(str(key), f"unknown key '{key}'{did_you_mean(key, keys)}", allowed=", ".join(keys))
            details = InitErrorDetails(type="value_error", loc=line["loc"][:-1], input=key, ctx={"error": fault})
        lines.append(details)
    return lines


def or_name(union: Any) -> BeforeValidator:
    """For models that differ in `kind`: a plain name is short for {kind: name}, if nothing else is required."""
    models: tuple[type[Model], ...] = get_args(union)
    names = [
        model.model_fields["kind"].default
        for model in models
        if not any(field.is_required() for field in model.model_fields.values())
    ]
    return BeforeValidator(
        lambda given: {"kind": given} if isinstance(given, str) else given,
        json_schema_input_type=Literal[*names] | union,
    )


class ShortForm(Model):
    """A part with a short form in place of the mapping of its fields."""

    short_form: ClassVar[dict[str, Any]] = {"type": "string"}
    """JSON Schema of the short form."""

    @classmethod
    @abstractmethod
    def expand(cls, given: object) -> object:
        """The mapping of fields for a short form; anything else unchanged."""

    @model_validator(mode="before")
    @classmethod
    def _expand(cls, given: object) -> object:
        return cls.expand(given)

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"anyOf": [cls.short_form, super().__get_pydantic_json_schema__(schema, handler)]}
