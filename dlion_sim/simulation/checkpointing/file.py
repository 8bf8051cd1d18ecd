"""The file of a checkpoint: what it is of, as JSON, then the state, and the memory of its arrays and tensors.

A line that tells the format, the header's length and checksum (CRC-32), the header; the state, each block; and the
checksum of these. Nothing is made of any of it before its lengths are those of the file.
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
    """What a checkpoint is of, to be read before the rest."""

    versions: dict[str, str]
    """Of the software that saved it."""
    arithmetic: dict[str, str]
    """What else decides the bits of what it computes."""
    scenario: dict[str, Any]
    """The resolved one, as plain data."""
    rows: tuple[Count, ...]
    """How many rows each table of the run folder had."""
    wall_seconds: Annotated[float, msgspec.Meta(ge=0)]
    """That the run had taken."""
    state: Count
    """Its bytes."""
    blocks: tuple[Count, ...]
    """The bytes of each."""


def write(file: Path, header: Header, state: memoryview, blocks: Sequence[Block]) -> None:
    """Write all of it. Raises OSError."""
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
    """The header of a checkpoint of which all is there. Raises ValueError for any other file, and OSError."""
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
        raise ValueError(f"{there} bytes follow its header, and not as many as that tells")
    return header


def read_state(stream: BinaryIO, header: Header) -> tuple[bytes, list[Tensor]]:
    """The state, and the blocks as uint8 [n]. Raises ValueError where they are damaged, and OSError."""
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
