"""Messages and their wire format.

On the wire a message is a 4-byte little-endian header length, the header (msgpack), zeros up to a multiple of 4 bytes,
and the raw little-endian bytes of its tensors. `Message.size` is the exact length of that, so that a simulated link
carries what a real one would.
Nothing received is trusted: `decode` checks every length, type and index, and executes nothing.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import Annotated, ClassVar

import msgspec
import numpy as np
import torch
from torch import Tensor

Count = Annotated[int, msgspec.Meta(ge=0)]
Buffer = bytes | bytearray | memoryview
"""Bytes; a memoryview's items are bytes too."""


class Channel(IntEnum):
    """What messages of a pair wait for each other, in one direction: those of one channel, and no others."""

    CONTROL = 0
    """Requests, tokens and other news, mostly short."""
    DATA = 1
    """What iterations are made of. How much of it is queued, and how fast it leaves, is what is known of a link."""
    WEIGHTS = 2
    """All parameters of a worker, which no iteration waits for: they share the link, as a second connection would."""


class Body(msgspec.Struct, frozen=True, array_like=True):
    """What a message says beside its tensors, and which channel it takes."""

    channel: ClassVar[Channel] = Channel.CONTROL

    @property
    def kind(self) -> str:
        """What it is called on the wire."""
        return str(self.__struct_config__.tag)


class Contribution(Body, frozen=True, array_like=True, tag="contribution"):
    """What a worker contributes to its peers' iterations: of its gradient, or of its parameters where those are mixed.

    A stretch (one tensor: values [m], from entry `offset` on) or single entries (two: indices [m], values [m]).
    """

    channel: ClassVar[Channel] = Channel.DATA
    iteration: Count
    batch_size: Annotated[int, msgspec.Meta(ge=1)]
    n_percent: Annotated[float, msgspec.Meta(ge=0, le=100)] | None = None
    """The N of a Max-N selection."""
    offset: Count = 0


class Push(Body, frozen=True, array_like=True, tag="push"):
    """A stretch of the sender's gradient (values [m], from entry `offset` on) for the server that holds it."""

    channel: ClassVar[Channel] = Channel.DATA
    iteration: Count
    batch_size: Annotated[int, msgspec.Meta(ge=1)]
    offset: Count


class Chunk(Body, frozen=True, array_like=True, tag="chunk"):
    """A chunk of a ring all-reduce in its `step` (values [m]); which one, the step and the sender tell."""

    channel: ClassVar[Channel] = Channel.DATA
    iteration: Count
    step: Count


class Swap(Body, frozen=True, array_like=True, tag="swap"):
    """The sender's parameters (values [P]) to average with the receiver's, which come as the `answer`."""

    channel: ClassVar[Channel] = Channel.DATA
    answer: bool


class Weights(Body, frozen=True, array_like=True, tag="weights"):
    """All parameters of the sender (one tensor: values [P]) after `iteration` iterations."""

    channel: ClassVar[Channel] = Channel.WEIGHTS
    iteration: Count


class ComputeProfile(Body, frozen=True, array_like=True, tag="profile"):
    """The sender's iteration time, alpha + beta * batch size (seconds), and the largest batch that it can take."""

    alpha: Annotated[float, msgspec.Meta(ge=0, le=1e6)]
    beta: Annotated[float, msgspec.Meta(gt=0, le=1e6)]
    limit: Annotated[int, msgspec.Meta(ge=1)]


class LossReport(Body, frozen=True, array_like=True, tag="loss"):
    """The sender's mean training loss at the end of knowledge-transfer round `round`."""

    round: Count
    loss: float


class WeightsRequest(Body, frozen=True, array_like=True, tag="weights?"):
    """The sender asks for the receiver's weights."""


class Announcement(Body, frozen=True, array_like=True, tag="announcement"):
    """The entries of these indices (one tensor: indices [m]) change, by a contribution of `iteration` on its way."""

    iteration: Count


class Token(Body, frozen=True, array_like=True, tag="token"):
    """The receiver may begin `count` iterations more."""

    count: Annotated[int, msgspec.Meta(ge=1)] = 1


AnyBody = (
    Contribution | Push | Chunk | Swap | Weights | ComputeProfile | LossReport | WeightsRequest | Announcement | Token
)


class Header(msgspec.Struct, frozen=True, array_like=True):
    """The msgpack part of a message; `tensors` holds (type code, entries) of what follows it."""

    sender: Count
    body: AnyBody
    tensors: Annotated[tuple[tuple[str, Count], ...], msgspec.Meta(max_length=2)]


_CODES = {torch.float32: "f4", torch.int32: "i4"}
_BYTES_PER_ENTRY = 4
_LENGTH = struct.Struct("<I")
_MAX_HEADER_BYTES = 4096
_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Header)


class MalformedMessageError(ValueError):
    """The peer sent bytes that are no valid message of this run, or one that makes no sense from it."""


@dataclass(frozen=True)
class Message:
    """A body and its tensors (1-D, float32 or int32), which nobody may write once it is sent: receivers share them."""

    sender: int
    body: AnyBody
    tensors: tuple[Tensor, ...] = ()

    @cached_property
    def header(self) -> bytes:
        """All that is before the tensors."""
        specs = tuple((_CODES[tensor.dtype], tensor.numel()) for tensor in self.tensors)
        encoded = _encoder.encode(Header(self.sender, self.body, specs))
        return (_LENGTH.pack(len(encoded)) + encoded).ljust(_aligned(_LENGTH.size + len(encoded)), b"\0")

    @cached_property
    def size(self) -> int:
        """Bytes on the wire."""
        return len(self.header) + sum(_BYTES_PER_ENTRY * tensor.numel() for tensor in self.tensors)

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        """What goes over the wire, one after another: the header, and the tensors' own memory, uncopied."""
        arrays = (tensor.cpu().numpy() for tensor in self.tensors)
        little_endian = (array.astype(array.dtype.newbyteorder("<"), copy=False) for array in arrays)
        return (self.header, *(array.view(np.uint8).data for array in little_endian))

    def encode(self) -> bytes:
        """The message as it goes over the wire."""
        return b"".join(self.buffers)


def decode(data: Buffer, *, workers: int, parameters: int) -> Message:
    """The message that `data` is, in a run of `workers` participants whose models have `parameters` entries.

    Its tensors are in the memory of `data`, if that may be written, and copies of it otherwise. Raises
    MalformedMessageError for anything else.
    """
    if len(data) < _LENGTH.size:
        raise MalformedMessageError("shorter than its length prefix")
    (header_length,) = _LENGTH.unpack_from(data)
    end = _LENGTH.size + header_length
    start = _aligned(end)
    if header_length > _MAX_HEADER_BYTES or start > len(data) or any(memoryview(data)[end:start]):
        raise MalformedMessageError(f"header of {header_length} bytes does not fit")
    try:
        header = _decoder.decode(memoryview(data)[_LENGTH.size : end])
    except (msgspec.DecodeError, msgspec.ValidationError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedMessageError(f"bad header: {error}") from None
    if header.sender >= workers:
        raise MalformedMessageError(f"sender {header.sender} is not among {workers} workers")
    _check_shapes(header, parameters)
    if len(data) - start != sum(_BYTES_PER_ENTRY * entries for _, entries in header.tensors):
        raise MalformedMessageError("tensor bytes do not match the header")
    tensors = []
    for code, entries in header.tensors:
        array = np.frombuffer(data, dtype=f"<{code}", count=entries, offset=start)
        tensors.append(torch.from_numpy(array.astype(array.dtype.newbyteorder("="), copy=not array.flags.writeable)))
        start += _BYTES_PER_ENTRY * entries
    for tensor in tensors:
        if tensor.dtype == torch.int32:
            _check_indices(tensor, parameters)
    return Message(header.sender, header.body, tuple(tensors))


def _aligned(position: int) -> int:
    """The next multiple of an entry's size, so that tensors can be used where they are."""
    return -(-position // _BYTES_PER_ENTRY) * _BYTES_PER_ENTRY


def _check_shapes(header: Header, parameters: int) -> None:
    whole = (("f4", parameters),)
    match header.body:
        case Contribution():
            entries = header.tensors[0][1] if header.tensors else 0
            stretch = header.tensors == (("f4", entries),)
            fits = (stretch or header.tensors == (("i4", entries), ("f4", entries))) and (
                header.body.offset + entries <= parameters
            )
        case Push(offset=offset):
            entries = header.tensors[0][1] if header.tensors else 0
            fits = header.tensors == (("f4", entries),) and offset + entries <= parameters
        case Chunk():
            fits = len(header.tensors) == 1 and header.tensors[0][0] == "f4" and header.tensors[0][1] <= parameters
        case Announcement():
            fits = len(header.tensors) == 1 and header.tensors[0][0] == "i4" and header.tensors[0][1] <= parameters
        case Weights() | Swap():
            fits = header.tensors == whole
        case _:
            fits = header.tensors == ()
    if not fits:
        raise MalformedMessageError(f"a {type(header.body).__name__} cannot carry {header.tensors}")


def _check_indices(indices: Tensor, parameters: int) -> None:
    """Increasing, so each at most once, and within the model."""
    if indices.numel() and (indices[0] < 0 or indices[-1] >= parameters or bool((indices[1:] <= indices[:-1]).any())):
        raise MalformedMessageError("indices are not increasing within the model")
