"""The file of a checkpoint: a header in JSON, then the state, and the memory of its arrays and tensors.

A line with the format, the header's length and checksum (CRC-32), the header; the state, each block; and the checksum
of these. Nothing is decoded before its lengths are those of the file.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from struct import Struct
from typing import Annotated, Any, BinaryIO
from zlib import crc32

import msgspec
import numpy as np
import torch
from torch import Tensor

from dlion_sim.simulation.checkpointing.encoding import Block

_FORMAT = b"dlion_sim checkpoint 3\n"
_HEADER = Struct("<QI")
_CHECKSUM = Struct("<I")
Count = Annotated[int, msgspec.Meta(ge=0)]


class Header(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The run of a checkpoint, to be checked before the rest is read."""

    versions: dict[str, str]
    """Versions of the software that saved it."""
    arithmetic: dict[str, str]
    """Further properties that determine results to the bit."""
    scenario: dict[str, Any]
    """The resolved scenario, as plain data."""
    rows: tuple[Count, ...]
    """The number of rows of each table of the run folder."""
    wall_seconds: Annotated[float, msgspec.Meta(ge=0)]
    """Wall time of the run until then."""
    state: Count
    """The length of the state."""
    blocks: tuple[Count, ...]
    """The length of each block."""


def write(file: Path, header: Header, state: memoryview, blocks: Sequence[Block]) -> None:
    """Write a checkpoint. Raises OSError."""
    described = msgspec.json.encode(header)
    with file.open("wb") as stream:
        stream.write(_FORMAT + _HEADER.pack(len(described), crc32(described)) + described)
        stream.write(state)
        checksum = crc32(state)
        for block in blocks:
            array = block.cpu().numpy() if isinstance(block, Tensor) else block.ravel(order="K").view(np.uint8)
            content = array.data
            stream.write(content)
            checksum = crc32(content, checksum)
        stream.write(_CHECKSUM.pack(checksum))


def read_header(stream: BinaryIO) -> Header:
    """The header of a complete checkpoint. Raises ValueError for any other file, and OSError."""
    size = os.fstat(stream.fileno()).st_size
    if stream.read(len(_FORMAT)) != _FORMAT:
        raise ValueError("it is of another format")
    length, checksum = _HEADER.unpack(_whole(stream, _HEADER.size, size))
    described = _whole(stream, length, size)
    if crc32(described) != checksum:
        raise ValueError("its checksum is another")
    header = msgspec.json.decode(described, type=Header)
    there = size - stream.tell()
    if there != header.state + sum(header.blocks) + _CHECKSUM.size:
        raise ValueError(f"{there} bytes follow its header, which states another number")
    return header


def read_state(stream: BinaryIO, header: Header) -> tuple[bytes, list[Tensor]]:
    """The state, and the blocks as uint8 [n]. Raises ValueError if they are damaged, and OSError."""
    state = stream.read(header.state)
    blocks = [torch.empty(length, dtype=torch.uint8) for length in header.blocks]
    checksum = crc32(state)
    for block in blocks:
        content = block.numpy().data
        stream.readinto(content)  # type: ignore[attr-defined]
        checksum = crc32(content, checksum)
    if stream.read() != _CHECKSUM.pack(checksum):
        raise ValueError("its checksum is another")
    return state, blocks


def _whole(stream: BinaryIO, length: int, size: int) -> bytes:
    if length > size - stream.tell():
        raise ValueError("it is cut off")
    return stream.read(length)
