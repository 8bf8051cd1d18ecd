"""Messages and their wire format.

On the wire a message is a 4-byte little-endian header length, the header (msgpack), zeros up to a multiple of 4 bytes,
and the raw little-endian bytes of its tensors. `Message.size` is the exact length of that, so that simulated and real
links carry the same bytes. `decode` trusts nothing: it checks every length, type and index, and executes nothing.
"""

from __future__ import annotations

import struct
from collections.abc import Collection
from dataclasses import dataclass
from enum import IntEnum
from functools import cache, cached_property
from typing import Annotated, Any, ClassVar, Literal

import msgspec
import numpy as np
import torch
from torch import Tensor


class MalformedMessageError(ValueError):
    """A peer sent bytes that are no valid message of this run, or a message that is invalid in its present state."""


Count = Annotated[int, msgspec.Meta(ge=0)]
Buffer = bytes | bytearray | memoryview
"""Bytes; a memoryview's items are bytes too."""


class Channel(IntEnum):
    """Message channels: messages of a pair in one direction are delivered in order within each channel."""

    CONTROL = 0
    """Requests, tokens and other mostly short messages."""
    DATA = 1
    """The messages of iterations; the link monitor measures this channel."""
    WEIGHTS = 2
    """All parameters of a worker, which no iteration waits for. They share the link as a second connection would."""


Shapes = tuple[tuple[str, int], ...]
"""(type code, entries) of each tensor of a message: "f4" for float32, "f2" for float16, "b2" for bfloat16; "i4" for
int32, which are indices of entries; "u1" for bytes."""
HALVES = ("f2", "b2")
"""The type codes of half precision."""


Stage = Literal["push", "pull", "reduce", "gather", "mix"]
"""The content of tensors that a transport may lose a part of: gradients to be summed, updated parameters, partial and
complete sums of a ring, or parameters to be mixed."""
GRADIENTS: frozenset[Stage] = frozenset({"push", "reduce", "gather"})
"""The stages of gradients, in which a missing entry counts as 0; parameters have no such value."""


class Body(msgspec.Struct, frozen=True, array_like=True):
    """The content of a message apart from its tensors.

    A subclass with a `kind` registers itself, wherever it is defined. Types of fields, with ranges by `msgspec.Meta`,
    and `fits`, for the tensors, define the valid messages: `decode` refuses all others.
    """

    kind: ClassVar[str] = ""
    """Its name in tables, and on the wire."""
    wire_kind: ClassVar[str] = ""
    """Its name on the wire if several classes have that `kind`; unique."""
    channel: ClassVar[Channel] = Channel.CONTROL
    stage: ClassVar[Stage | None] = None
    """The stage of its tensors, if a part of their entries may be missing; None: none may."""
    growth: ClassVar[float] = 1.0
    """With `cost_as`, each byte of its tensors is charged as this power of the ratio of parameters."""

    def fits(self, shapes: Shapes, parameters: int) -> bool:
        """Whether it may have tensors of these shapes, with models of so many `parameters`; by default none.

        Indices need no check here: they are always increasing and within the model.
        """
        return shapes == ()

    def first_entry(self, sender: int, workers: int, parameters: int) -> int:
        """The index of its first value among the model's `parameters` entries, in a run of `workers` workers."""
        return 0

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if not cls.kind:
            return
        cls.wire_kind = cls.__dict__.get("wire_kind", cls.kind)
        other = BODIES.setdefault(cls.wire_kind, cls)
        if (other.__module__, other.__qualname__) != (cls.__module__, cls.__qualname__):
            raise TypeError(f"messages of {other.__module__}.{other.__qualname__} are called {cls.wire_kind!r} already")
        BODIES[cls.wire_kind] = cls


BODIES: dict[str, type[Body]] = {}
"""All kinds of messages, by their names on the wire."""


class Contribution(Body, frozen=True, array_like=True):
    """A worker's contribution to its peers' iterations: of its gradient, unless a subclass says otherwise.

    Consecutive entries (one tensor: values [m], from entry `offset` on) or single ones (two: indices [m], values [m]).
    """

    kind: ClassVar[str] = "contribution"
    channel: ClassVar[Channel] = Channel.DATA
    stage: ClassVar[Stage | None] = "push"
    iteration: Count
    batch_size: Annotated[int, msgspec.Meta(ge=1)]
    n_percent: Annotated[float, msgspec.Meta(ge=0, le=100)] | None = None
    """The N of a Max-N selection."""
    offset: Count = 0

    def fits(self, shapes: Shapes, parameters: int) -> bool:
        """As many indices as values, and no entry beyond the model."""
        if not shapes or self.offset + shapes[0][1] > parameters:
            return False
        entries = shapes[0][1]
        return shapes in ((("f4", entries),), (("i4", entries), ("f4", entries)))

    def first_entry(self, sender: int, workers: int, parameters: int) -> int:
        return self.offset


class Mixed(Contribution, frozen=True, array_like=True):
    """A worker's parameters, for peers that mix them with theirs."""

    wire_kind: ClassVar[str] = "mixed_params"  # as long as the other contributions', which costs the same on the wire
    stage: ClassVar[Stage | None] = "mix"


class Weights(Body, frozen=True, array_like=True):
    """All parameters of the sender (one tensor: values [P]) after `iteration` iterations."""

    kind: ClassVar[str] = "weights"
    channel: ClassVar[Channel] = Channel.WEIGHTS
    iteration: Count

    def fits(self, shapes: Shapes, parameters: int) -> bool:
        return is_whole(shapes, parameters)


def is_whole(shapes: Shapes, parameters: int) -> bool:
    """Whether there is one tensor, with a value for every parameter."""
    return shapes == (("f4", parameters),)


def is_one(shapes: Shapes, codes: str | Collection[str], most: int) -> bool:
    """Whether there is one tensor, of that type code, or one of those, and at most so many entries."""
    accepted = (codes,) if isinstance(codes, str) else codes
    return len(shapes) == 1 and shapes[0][0] in accepted and shapes[0][1] <= most


class Header(msgspec.Struct, frozen=True, array_like=True):
    """The msgpack part of a message: the body's `wire_kind`, its fields, (type code, entries) of what follows it."""

    sender: Count
    kind: str
    fields: msgspec.Raw
    tensors: Annotated[tuple[tuple[str, Count], ...], msgspec.Meta(max_length=2)]


_CODES = {torch.float32: "f4", torch.int32: "i4", torch.float16: "f2", torch.bfloat16: "b2", torch.uint8: "u1"}
_DTYPES = {code: dtype for dtype, code in _CODES.items()}
_ALIGNMENT = 4
_LENGTH = struct.Struct("<I")
_MAX_HEADER_BYTES = 4096
_encoder = msgspec.msgpack.Encoder()
_header_decoder = msgspec.msgpack.Decoder(Header)


@cache
def _body_decoder(body: type[Body]) -> msgspec.msgpack.Decoder[Body]:
    return msgspec.msgpack.Decoder(body)


@dataclass(frozen=True)
class Message:
    """A body and its tensors (1-D, of a type that has a code). They must not be written after sending: receivers share
    them."""

    sender: int
    body: Body
    tensors: tuple[Tensor, ...] = ()

    @cached_property
    def header(self) -> bytes:
        """The bytes before the tensors."""
        specs = tuple((_CODES[tensor.dtype], tensor.numel()) for tensor in self.tensors)
        encoded = _encoder.encode((self.sender, self.body.wire_kind, self.body, specs))  # A `Header`.
        return (_LENGTH.pack(len(encoded)) + encoded).ljust(_aligned(_LENGTH.size + len(encoded)), b"\0")

    @cached_property
    def size(self) -> int:
        """Bytes on the wire."""
        return len(self.header) + sum(tensor.nbytes for tensor in self.tensors)

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        """The bytes on the wire in order: the header, and the tensors' own memory, not copied."""
        bits = (each.view(torch.int16) if each.dtype == torch.bfloat16 else each for each in self.tensors)
        arrays = (tensor.cpu().numpy() for tensor in bits)
        little_endian = (array.astype(array.dtype.newbyteorder("<"), copy=False) for array in arrays)
        return (self.header, *(array.view(np.uint8).data for array in little_endian))

    def encode(self) -> bytes:
        return b"".join(self.buffers)


@dataclass(frozen=True)
class Announcement:
    """A decoded header: sender, body, and (type code, entries) of the tensors."""

    sender: int
    body: Body
    shapes: Shapes
    header_bytes: int

    @property
    def size(self) -> int:
        return self.header_bytes + sum(_DTYPES[code].itemsize * entries for code, entries in self.shapes)

    def message(self, data: Buffer) -> Message:
        """The message with the tensors' bytes `data`, of the right length; `check_indices` remains to be called.

        Its tensors are in the memory of `data`, if that may be written, and copies of it otherwise.
        """
        tensors, start = [], 0
        for code, entries in self.shapes:
            bits = code.replace("b", "i")  # NumPy has no bfloat16.
            array = np.frombuffer(data, dtype=f"<{bits}", count=entries, offset=start)
            native = array.astype(array.dtype.newbyteorder("="), copy=not array.flags.writeable)
            tensors.append(torch.from_numpy(native).view(_DTYPES[code]))
            start += native.nbytes
        return Message(self.sender, self.body, tuple(tensors))


def decode(data: Buffer, *, workers: int, parameters: int) -> Message:
    """The message that `data` is, in a run of `workers` participants whose models have `parameters` entries.

    Its tensors are in the memory of `data`, if that may be written, and copies of it otherwise. Raises
    MalformedMessageError for anything else.
    """
    announced = decode_header(data, workers=workers, parameters=parameters)
    if len(data) != announced.size:
        raise MalformedMessageError("tensor bytes do not match the header")
    message = announced.message(memoryview(data)[announced.header_bytes :])
    check_indices(message, parameters)
    return message


def decode_header(data: Buffer, *, workers: int, parameters: int) -> Announcement:
    """The header that `data` begins with. Raises MalformedMessageError if there is none of this run."""
    if len(data) < _LENGTH.size:
        raise MalformedMessageError("shorter than its length prefix")
    (header_length,) = _LENGTH.unpack_from(data)
    end = _LENGTH.size + header_length
    start = _aligned(end)
    if header_length > _MAX_HEADER_BYTES or start > len(data) or any(memoryview(data)[end:start]):
        raise MalformedMessageError(f"header of {header_length} bytes does not fit")
    try:
        header = _header_decoder.decode(memoryview(data)[_LENGTH.size : end])
        if header.kind not in BODIES:
            raise MalformedMessageError(f"there are no messages of the kind {header.kind!r}")
        body = _body_decoder(BODIES[header.kind]).decode(header.fields)
    except (msgspec.DecodeError, msgspec.ValidationError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedMessageError(f"bad header: {error}") from None
    if header.sender >= workers:
        raise MalformedMessageError(f"sender {header.sender} is not among {workers} workers")
    if any(code not in _DTYPES for code, _ in header.tensors) or not body.fits(header.tensors, parameters):
        raise MalformedMessageError(f"a message of the kind {header.kind!r} cannot carry {header.tensors}")
    return Announcement(header.sender, body, header.tensors, start)


def _aligned(position: int) -> int:
    """The next multiple of the largest entry's size, so that tensors can be used where they are."""
    return -(-position // _ALIGNMENT) * _ALIGNMENT


def check_indices(message: Message, parameters: int) -> None:
    """Raise MalformedMessageError unless a message's indices, if it has any, are increasing and within the model."""
    for indices in (tensor for tensor in message.tensors if tensor.dtype == torch.int32 and tensor.numel()):
        if indices[0] < 0 or indices[-1] >= parameters or bool((indices[1:] <= indices[:-1]).any()):
            raise MalformedMessageError("indices are not increasing within the model")
