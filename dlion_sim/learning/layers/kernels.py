"""The compiled part of Winograd's convolutions.

Images are [B, H, W, C] here, and cut into tiles: 4 x 4 outputs each, and the 6 x 6 inputs that they depend on. A few
samples are handled at a time, so that what is computed between stays in a core's caches. The innermost parts are
written in LLVM's terms, on vectors of neighbouring channels: numba has no words for what is to stay in a register. All
are in one file, as numba compiles a function anew only when the file that it stands in has changed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir
from llvmlite.binding import get_host_cpu_features
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

_FEATURES = get_host_cpu_features()
_LANES, _ROWS, _VECTORS = (16, 8, 2) if _FEATURES.get("avx512f") else (8, 4, 2)
"""Entries of a vector; rows and vectors a row of the part of a matrix product that is kept in registers."""

CHANNELS = _LANES * _VECTORS
"""What the numbers of channels have to be multiples of."""

_TILES = 32
"""Tiles that are handled at a time, at least."""

_VECTOR = ir.VectorType(ir.FloatType(), _LANES)


def _multiply_add(builder: Any, one: Any, other: Any, total: Any) -> Any:
    return builder.fadd(builder.fmul(one, other, flags=["contract"]), total, flags=["contract"])


def _constant(value: float) -> Any:
    return ir.Constant(_VECTOR, [float(np.float32(value))] * _LANES)


class _Matrix:
    """A matrix in an array of float32: from entry `start` on, its rows and columns so far apart."""

    def __init__(self, context: Any, builder: Any, kind: Any, array: Any, start: Any, *steps: Any) -> None:
        self._builder = builder
        self._data = builder.gep(context.make_array(kind)(context, builder, array).data, [start])
        self._steps = steps

    def entry(self, row: Any, column: Any) -> Any:
        """The entry there, in each lane of a vector."""
        entry = self._builder.load(self._at(row, column))
        undefined, lanes = ir.Constant(_VECTOR, ir.Undefined), ir.VectorType(ir.IntType(32), _LANES)
        first = self._builder.insert_element(undefined, entry, ir.IntType(32)(0))
        return self._builder.shuffle_vector(first, undefined, ir.Constant(lanes, [0] * _LANES))

    def load(self, row: Any, column: Any) -> Any:
        """The vector that begins there."""
        return self._builder.load(self._vector_at(row, column), align=4)

    def store(self, vector: Any, row: Any, column: Any) -> None:
        self._builder.store(vector, self._vector_at(row, column), align=4)

    def add(self, vector: Any, row: Any, column: Any) -> None:
        self.store(self._builder.fadd(self.load(row, column), vector), row, column)

    def _at(self, *place: Any) -> Any:
        row, column = (
            self._builder.mul(step, step.type(number) if isinstance(number, int) else number)
            for number, step in zip(place, self._steps, strict=True)
        )
        return self._builder.gep(self._data, [self._builder.add(row, column)])

    def _vector_at(self, row: Any, column: Any) -> Any:
        return self._builder.bitcast(self._at(row, column), _VECTOR.as_pointer())


def _product(adds: bool) -> Callable[..., None]:
    """c = a b, of `_ROWS` rows and `_VECTORS` vectors a row, over `inner` columns of a; added to c if it `adds`.

    Each matrix is given as a flat array, the place of its first entry, and how far apart rows are, in a columns too.
    """

    @intrinsic
    def product(
        _: Any, a: Any, a_start: Any, a_row: Any, a_column: Any,
        b: Any, b_start: Any, b_row: Any, c: Any, c_start: Any, c_row: Any, inner: Any,
    ) -> Any:  # fmt: skip
        def generate(context: Any, builder: Any, signature: Any, arguments: Sequence[Any]) -> Any:
            step = arguments[1].type(_LANES)
            left = _Matrix(context, builder, signature.args[0], *arguments[:4])
            right = _Matrix(context, builder, signature.args[4], *arguments[4:7], step)
            result = _Matrix(context, builder, signature.args[7], *arguments[7:10], step)
            sums = {
                (row, column): cgutils.alloca_once_value(builder, _constant(0))  # type: ignore[no-untyped-call]
                for row in range(_ROWS)
                for column in range(_VECTORS)
            }  # in memory for now: LLVM moves them to registers
            with cgutils.for_range(builder, arguments[-1]) as loop:
                vectors = [right.load(loop.index, column) for column in range(_VECTORS)]
                entries = [left.entry(row, loop.index) for row in range(_ROWS)]
                for (row, column), total in sums.items():
                    new = _multiply_add(builder, entries[row], vectors[column], builder.load(total))
                    builder.store(new, total)
            for place, total in sums.items():
                (result.add if adds else result.store)(builder.load(total), *place)
            return context.get_dummy_value()

        n = types.intp
        return types.void(a, n, n, n, b, n, n, c, n, n, n), generate

    return product


def _transform(matrix: Sequence[Sequence[float]], adds: bool = False) -> Callable[..., None]:
    """c = m a m^T, of square matrices of vectors; added to c if it `adds`.

    Both are given as a flat array, the place of the first entry, and how far apart rows and columns are.
    """

    @intrinsic
    def transform(
        _: Any, a: Any, a_start: Any, a_row: Any, a_column: Any, c: Any, c_start: Any, c_row: Any, c_column: Any
    ) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Sequence[Any]) -> Any:
            source = _Matrix(context, builder, signature.args[0], *arguments[:4])
            target = _Matrix(context, builder, signature.args[4], *arguments[4:])
            size = range(len(matrix[0]))
            columns = [[source.load(row, column) for row in size] for column in size]
            half = [[_weighted_sum(builder, weights, column) for weights in matrix] for column in columns]
            for row, vectors in enumerate(zip(*half, strict=True)):
                for column, weights in enumerate(matrix):
                    (target.add if adds else target.store)(_weighted_sum(builder, weights, vectors), row, column)
            return context.get_dummy_value()

        n = types.intp
        return types.void(a, n, n, n, c, n, n, n), generate

    return transform


def _weighted_sum(builder: Any, weights: Sequence[float], vectors: Sequence[Any]) -> Any:
    total = None
    for weight, vector in zip(weights, vectors, strict=True):
        if weight and total is None:
            total = builder.fmul(vector, _constant(weight))
        elif weight:
            total = _multiply_add(builder, vector, _constant(weight), total)
    return total


def _transposed(matrix: Sequence[Sequence[float]]) -> list[tuple[float, ...]]:
    return [*zip(*matrix, strict=True)]


# The matrices of the paper's section 4.3, as it writes them: y = A^T [(G g G^T) * (B^T d B)] A.
_INPUTS = (
    (4, 0, -5, 0, 1, 0),
    (0, -4, -4, 1, 1, 0),
    (0, 4, -4, -1, 1, 0),
    (0, -2, -1, 2, 1, 0),
    (0, 2, -1, -2, 1, 0),
    (0, 4, 0, -5, 0, 1),
)
_WEIGHTS = (
    (1 / 4, 0, 0),
    (-1 / 6, -1 / 6, -1 / 6),
    (-1 / 6, 1 / 6, -1 / 6),
    (1 / 24, 1 / 12, 1 / 6),
    (1 / 24, -1 / 12, 1 / 6),
    (0, 0, 1),
)
_OUTPUTS = ((1, 1, 1, 1, 1, 0), (0, 1, -1, 2, -2, 0), (0, 1, 1, 4, 4, 0), (0, 1, -1, 8, -8, 1))

_multiply, _multiply_onto = _product(adds=False), _product(adds=True)
_of_inputs, _of_weights, _to_outputs = _transform(_INPUTS), _transform(_WEIGHTS), _transform(_OUTPUTS)
# Going back, what was multiplied by a matrix is multiplied by its transpose.
_of_output_gradients = _transform(_transposed(_OUTPUTS))
_onto_input_gradients = _transform(_transposed(_INPUTS), adds=True)
_to_weight_gradients = _transform(_transposed(_WEIGHTS))


@cache
def prepare() -> None:
    """Compile what follows, or load it if it was compiled before, so that the first use takes no longer than others.

    Raises RuntimeError on a processor whose vectors it was not written for.
    """
    if not (_FEATURES.get("avx512f") or (_FEATURES.get("avx2") and _FEATURES.get("fma"))):
        raise RuntimeError("this processor has neither AVX-512 nor AVX2 with FMA")
    image, taps = np.zeros((1, 4, 4, CHANNELS), np.float32), np.zeros((3, 3, CHANNELS, CHANNELS), np.float32)
    bias = np.zeros(CHANNELS, np.float32)
    convolve(image, taps, bias, False, image)
    differentiate(image, taps, image, False, image, image, taps, bias)


def pay(batch: int, height: int, width: int) -> bool:
    """Whether tiles save time: they are at least half full, and enough for the weights to be worth transforming."""
    tiles = -(-height // 4) * -(-width // 4)
    return 2 * height * width >= 16 * tiles and batch * tiles >= 16


@njit(cache=True, nogil=True)
def convolve(images: Any, taps: Any, bias: Any, rectifies: bool, outputs: Any) -> None:
    """Writes the `outputs` [B, H, W, O] of the weights `taps` [3, 3, C, O], after a ReLU if it `rectifies`."""
    batch, height, width, channels = images.shape
    filters = outputs.shape[3]
    down, across, samples, rows = _tiling(height, width)
    weights = _transformed(taps)
    padded = np.zeros((4 * down + 2, 4 * across + 2, channels), np.float32)
    convolved = np.empty((4 * down, 4 * across, filters), np.float32)
    inputs = np.zeros(rows * 36 * channels, np.float32)
    products = np.empty(rows * 36 * filters, np.float32)
    for first in range(0, batch, samples):
        last = min(first + samples, batch)
        for sample in range(first, last):
            padded[1 : height + 1, 1 : width + 1] = images[sample]
            _cut(padded, inputs, (sample - first) * down * across)
        _multiply_tiles(inputs, weights, products, (last - first) * down * across, channels, filters)
        for sample in range(first, last):
            _join(products, (sample - first) * down * across, convolved)
            for row in range(height):
                for column in range(width):
                    for channel in range(filters):
                        value = convolved[row, column, channel] + bias[channel]
                        outputs[sample, row, column, channel] = np.float32(0) if rectifies and value <= 0 else value


@njit(cache=True, nogil=True)
def differentiate(
    images: Any,
    taps: Any,
    outputs: Any,
    rectifies: bool,
    gradient: Any,
    by_images: Any,
    by_taps: Any,
    by_bias: Any,
) -> None:
    """Writes the gradients, given that by the `outputs` [B, H, W, O], which are looked at only if a ReLU `rectifies`.

    The `taps` are [3, 3, O, C], but `by_taps` is [3, 3, C, O]. What is there is kept and added to in `by_bias` [O].
    """
    batch, height, width, channels = images.shape
    filters = outputs.shape[3]
    down, across, samples, rows = _tiling(height, width)
    weights = _transformed(taps)
    padded = np.zeros((4 * down + 2, 4 * across + 2, channels), np.float32)
    by_padded = np.empty_like(padded)
    passed = np.zeros((4 * down, 4 * across, filters), np.float32)
    inputs = np.zeros(rows * 36 * channels, np.float32)
    by_products = np.zeros(rows * 36 * filters, np.float32)
    by_weights = np.zeros(36 * channels * filters, np.float32)
    for first in range(0, batch, samples):
        last = min(first + samples, batch)
        for sample in range(first, last):
            padded[1 : height + 1, 1 : width + 1] = images[sample]
            _cut(padded, inputs, (sample - first) * down * across)
            for row in range(height):
                for column in range(width):
                    for channel in range(filters):
                        stopped = rectifies and outputs[sample, row, column, channel] <= 0
                        value = np.float32(0) if stopped else gradient[sample, row, column, channel]
                        passed[row, column, channel] = value
                        by_bias[channel] += value
            _cut_gradient(passed, by_products, (sample - first) * down * across)
        tiles = (last - first) * down * across
        for entry in range(36):
            for column in range(0, filters, CHANNELS):
                for row in range(0, channels, _ROWS):
                    _multiply_onto(
                        inputs, entry * channels + row, 1, 36 * channels,
                        by_products, entry * filters + column, 36 * filters,
                        by_weights, (entry * channels + row) * filters + column, filters, tiles,
                    )  # fmt: skip
        by_inputs = inputs  # no longer needed
        _multiply_tiles(by_products, weights, by_inputs, tiles, filters, channels)
        for sample in range(first, last):
            _join_gradient(by_inputs, (sample - first) * down * across, by_padded)
            by_images[sample] = by_padded[1 : height + 1, 1 : width + 1]
    pairs = channels * filters
    for pair in range(0, pairs, _LANES):
        _to_weight_gradients(by_weights, pair, 6 * pairs, pairs, by_taps.reshape(-1), pair, 3 * pairs, pairs)


@njit(cache=True, nogil=True)
def _tiling(height: int, width: int) -> Any:
    """Tiles down and across an image, the samples to handle at a time, and their tiles, rounded up to whole rows."""
    down, across = (height + 3) // 4, (width + 3) // 4
    samples = (_TILES + down * across - 1) // (down * across)
    return down, across, samples, (samples * down * across + _ROWS - 1) // _ROWS * _ROWS


@njit(cache=True, nogil=True)
def _transformed(taps: Any) -> Any:
    """The weights [3, 3, K, N] as matrices [36, K, N], flat."""
    pairs = taps.shape[2] * taps.shape[3]
    weights = np.empty(36 * pairs, np.float32)
    for pair in range(0, pairs, _LANES):
        _of_weights(taps.reshape(-1), pair, 3 * pairs, pairs, weights, pair, 6 * pairs, pairs)
    return weights


@njit(cache=True, nogil=True)
def _multiply_tiles(tiles: Any, weights: Any, products: Any, count: int, inner: int, columns: int) -> None:
    """products[t, e] = tiles[t, e] @ weights[e] for `count` tiles, and what fills the last rows."""
    for entry in range(36):
        for column in range(0, columns, CHANNELS):
            for tile in range(0, count, _ROWS):
                _multiply(
                    tiles, (tile * 36 + entry) * inner, 36 * inner, 1,
                    weights, entry * inner * columns + column, columns,
                    products, (tile * 36 + entry) * columns + column, 36 * columns, inner,
                )  # fmt: skip


@njit(cache=True, nogil=True)
def _cut(padded: Any, inputs: Any, tile: int) -> None:
    """The transformed tiles of an image, into `inputs` from the given one on."""
    height, width, channels = padded.shape
    for row in range(0, height - 2, 4):
        for column in range(0, width - 2, 4):
            for channel in range(0, channels, _LANES):
                _of_inputs(
                    padded.reshape(-1), (row * width + column) * channels + channel, width * channels, channels,
                    inputs, tile * 36 * channels + channel, 6 * channels, channels,
                )  # fmt: skip
            tile += 1


@njit(cache=True, nogil=True)
def _join_gradient(by_inputs: Any, tile: int, by_padded: Any) -> None:
    """The reverse of `_cut`: where tiles overlap, gradients are added."""
    height, width, channels = by_padded.shape
    by_padded[:] = 0
    for row in range(0, height - 2, 4):
        for column in range(0, width - 2, 4):
            for channel in range(0, channels, _LANES):
                _onto_input_gradients(
                    by_inputs, tile * 36 * channels + channel, 6 * channels, channels,
                    by_padded.reshape(-1), (row * width + column) * channels + channel, width * channels, channels,
                )  # fmt: skip
            tile += 1


@njit(cache=True, nogil=True)
def _join(products: Any, tile: int, convolved: Any) -> None:
    """The outputs of an image, of its tiles from the given one on."""
    height, width, filters = convolved.shape
    for row in range(0, height, 4):
        for column in range(0, width, 4):
            for channel in range(0, filters, _LANES):
                _to_outputs(
                    products, tile * 36 * filters + channel, 6 * filters, filters,
                    convolved.reshape(-1), (row * width + column) * filters + channel, width * filters, filters,
                )  # fmt: skip
            tile += 1


@njit(cache=True, nogil=True)
def _cut_gradient(passed: Any, by_products: Any, tile: int) -> None:
    """The reverse of `_join`."""
    height, width, filters = passed.shape
    for row in range(0, height, 4):
        for column in range(0, width, 4):
            for channel in range(0, filters, _LANES):
                _of_output_gradients(
                    passed.reshape(-1), (row * width + column) * filters + channel, width * filters, filters,
                    by_products, tile * 36 * filters + channel, 6 * filters, filters,
                )  # fmt: skip
            tile += 1
