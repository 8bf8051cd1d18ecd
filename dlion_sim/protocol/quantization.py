"""Values in fewer bits on the wire: half precision, or 8 or 4 bits with a scale for each block of values."""

from __future__ import annotations

from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor

from dlion_sim.protocol.messages import MalformedMessageError, Shapes

Float = Literal["fp32", "fp16", "bf16"]
Precision = Literal["fp32", "fp16", "bf16", "int8", "fp4"]
PseudoGradientPrecision = Annotated[
    Precision,
    Field(description="Of the pseudo-gradients sent; fp4 is E3M0; it and int8 have a scale for 1,024 values."),
]
FLOATS: dict[str, tuple[str, torch.dtype]] = {
    "fp32": ("f4", torch.float32),
    "fp16": ("f2", torch.float16),
    "bf16": ("b2", torch.bfloat16),
}
"""Type code on the wire and dtype of what is sent as it is."""
BLOCK = 1024
"""Values that share a scale."""
_FP4 = torch.tensor([0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0]) / 64
"""Magnitudes of E3M0 (three bits of exponent, none of mantissa), in parts of the largest one."""
_OF_CODE = torch.cat([_FP4, -_FP4])
"""By code, whose highest bit is the sign."""
_OF_PAIR = torch.stack([_OF_CODE.repeat(16), _OF_CODE.repeat_interleave(16)], dim=1)
"""By byte: the values [256, 2] of its lower and its upper half."""


def encode(values: Tensor, precision: Precision) -> tuple[Tensor, ...]:
    """Values [m] (float32) as they are sent: in that precision, or scales (float32 [m / BLOCK]) and codes (uint8).

    In fp32 they are not copied. int8 rounds to the nearest of 255 multiples of the block's largest magnitude / 127, fp4
    to the nearest of 15 values. Of fp4 two codes are in a byte, the first one in its lower half.
    """
    if precision in FLOATS:
        return (values.to(FLOATS[precision][1]),)
    blocks = torch.nn.functional.pad(values, (0, -len(values) % BLOCK)).view(-1, BLOCK)
    scales = blocks.abs().amax(dim=1)
    parts = blocks / scales.clamp(min=torch.finfo(torch.float32).tiny)[:, None]
    if precision == "int8":
        codes = (parts * 127).round().to(torch.int16) + 128
    else:
        codes, magnitudes = (parts < 0).to(torch.uint8) * 8, parts.abs()
        for bound in ((_FP4[1:] + _FP4[:-1]) / 2).tolist():  # Three times as fast as bucketize.
            codes += magnitudes > bound
    codes = codes.view(-1)[: len(values)].to(torch.uint8)
    if precision == "fp4":
        pairs = torch.nn.functional.pad(codes, (0, len(codes) % 2)).view(-1, 2)
        codes = pairs[:, 0] + 16 * pairs[:, 1]
    return scales, codes


def decode(tensors: tuple[Tensor, ...], precision: Precision, size: int) -> Tensor:
    """The values [size] (float32) that `encode` has made `tensors` of, as far as they can be told."""
    if precision in FLOATS:
        return tensors[0].float()
    scales, codes = tensors
    if precision == "int8":
        parts = (codes.to(torch.float32) - 128) / 127
    else:
        parts = _OF_PAIR.to(codes.device).index_select(0, codes.int()).view(-1)[:size]
    return parts * scales.repeat_interleave(BLOCK)[:size]


def shapes_of(precision: Precision, size: int) -> Shapes:
    """The shapes of the tensors of so many values."""
    if precision in FLOATS:
        return ((FLOATS[precision][0], size),)
    return (("f4", -(-size // BLOCK)), ("u1", size if precision == "int8" else -(-size // 2)))


def are_encoded(shapes: Shapes, most: int) -> bool:
    """Whether tensors of these shapes may be values in any of the precisions, at most so many."""
    if len(shapes) == 1:
        return shapes[0][0] in {code for code, _ in FLOATS.values()} and shapes[0][1] <= most
    return [code for code, _ in shapes] == ["f4", "u1"] and shapes[1][1] <= most and shapes[0][1] <= -(-most // BLOCK)


def check_encoded(tensors: tuple[Tensor, ...], precision: Precision, size: int) -> None:
    """Raise MalformedMessageError unless they are so many values in that precision."""
    expected = shapes_of(precision, size)
    types = {**dict(FLOATS.values()), "u1": torch.uint8}
    if [(types[code], entries) for code, entries in expected] != [(each.dtype, len(each)) for each in tensors]:
        raise MalformedMessageError(f"a contribution of other entries than the exchange expects: {size} in {precision}")
