"""Kernels of linear scorers: scores of documents, and steps down a gradient."""

import math
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils as untyped_cgutils
from numba.extending import intrinsic, overload

from keyhole.compiled import kernel

FIXED, POWER, ADAGRAD = 0, 1, 2
_LANES = 8

cgutils: Any = untyped_cgutils


class Step(NamedTuple):
    """How far to go: kind, scale, and exponent of the round for POWER; radius of the ball."""

    kind: int
    scale: float
    power: float
    radius: float


def _dot(features: Any, item: Any, weights: Any) -> Any:
    """Return one document's features times the weights.

    Eight lanes add up every eighth product each, then the upper half of the lanes is added to
    the lower one until one is left, then come the products that fill no eight. What is
    compiled adds in that order too, with one instruction for all lanes.
    """
    n_features = weights.shape[0]
    n_whole = n_features - n_features % _LANES
    lane_0 = lane_1 = lane_2 = lane_3 = lane_4 = lane_5 = lane_6 = lane_7 = 0.0
    for column in range(0, n_whole, _LANES):
        lane_0 += features[item, column] * weights[column]
        lane_1 += features[item, column + 1] * weights[column + 1]
        lane_2 += features[item, column + 2] * weights[column + 2]
        lane_3 += features[item, column + 3] * weights[column + 3]
        lane_4 += features[item, column + 4] * weights[column + 4]
        lane_5 += features[item, column + 5] * weights[column + 5]
        lane_6 += features[item, column + 6] * weights[column + 6]
        lane_7 += features[item, column + 7] * weights[column + 7]
    total = ((lane_0 + lane_4) + (lane_2 + lane_6)) + ((lane_1 + lane_5) + (lane_3 + lane_7))
    for column in range(n_whole, n_features):
        total += features[item, column] * weights[column]
    return total


def _emit_dot(typing: Any, features: Any, item: Any, weights: Any) -> Any:
    """Return the same as ``_dot``, bit for bit, of rows without gaps."""
    # Numba leaves the joining of scalar lanes to vectors (SLP) off, and to let the compiler
    # split a sum into lanes itself would take `fastmath`: so the vectors are written out.

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        matrix_type, _, vector_type = signature.args
        matrix = context.make_array(matrix_type)(context, builder, args[0])
        vector = context.make_array(vector_type)(context, builder, args[2])
        index, double = context.get_value_type(types.intp), ir.DoubleType()
        given = context.get_data_type(matrix_type.dtype)
        given_size = matrix_type.dtype.bitwidth // 8
        lanes = ir.VectorType(double, _LANES)
        n_features = cgutils.unpack_tuple(builder, vector.shape)[0]
        n_whole = builder.and_(n_features, ir.Constant(index, -_LANES))
        row = builder.gep(matrix.data, [builder.mul(args[1], n_features)])

        def load(data: Any, at: Any, element: Any, size: int, n_lanes: int) -> Any:
            pointer, wanted = builder.gep(data, [at]), double
            if n_lanes > 1:
                element, wanted = ir.VectorType(element, n_lanes), lanes
                pointer = builder.bitcast(pointer, element.as_pointer())
            value = builder.load(pointer, align=size)
            return value if element == wanted else builder.fpext(value, wanted)

        def add_products(total: Any, first: Any, end: Any, n_lanes: int) -> None:
            step = ir.Constant(index, n_lanes)
            with cgutils.for_range_slice(builder, first, end, step, index) as (column, _):
                feature = load(row, column, given, given_size, n_lanes)
                weight = load(vector.data, column, double, 8, n_lanes)
                product = builder.fmul(feature, weight)
                builder.store(builder.fadd(builder.load(total), product), total)

        sums = cgutils.alloca_once_value(builder, ir.Constant(lanes, [0.0] * _LANES))
        add_products(sums, ir.Constant(index, 0), n_whole, _LANES)
        joined = builder.load(sums)
        halves = [
            builder.extract_element(joined, ir.Constant(ir.IntType(32), lane))
            for lane in range(_LANES)
        ]
        while len(halves) > 1:
            middle = len(halves) // 2
            pairs = zip(halves[:middle], halves[middle:], strict=True)
            halves = [builder.fadd(low, high) for low, high in pairs]
        total = cgutils.alloca_once_value(builder, halves[0])
        add_products(total, n_whole, n_features, 1)
        return builder.load(total)

    return types.float64(features, types.intp, weights), generate


_vector_dot: Any = intrinsic(_emit_dot)


def _dot_by_vectors(features: Any, item: Any, weights: Any) -> Any:
    return _vector_dot(features, item, weights)


@overload(_dot, inline="always")
def _dot_by_type(features: Any, item: Any, weights: Any) -> Any:
    fits = (
        features.layout == weights.layout == "C"
        and features.dtype in (types.float32, types.float64)
        and weights.dtype == types.float64
    )
    return _dot_by_vectors if fits else _dot


@kernel
def linear_scores(features: Any, weights: Any, out: Any) -> None:
    """Fill ``out`` with features times weights."""
    for item in range(features.shape[0]):
        out[item] = _dot(features, item, weights)


@kernel
def chain(features: Any, gradient: Any, out: Any) -> None:
    """Fill ``out`` with the gradient by weight: the transposed features times that by score."""
    for column in range(out.shape[0]):
        out[column] = 0.0
    n_blocks = features.shape[0] // 4
    for block in range(n_blocks):
        # Unsigned indices spare the test for negative ones.
        item_0 = np.uint64(4 * block)
        item_1, item_2 = item_0 + np.uint64(1), item_0 + np.uint64(2)
        item_3 = item_0 + np.uint64(3)
        slope_0, slope_1 = gradient[item_0], gradient[item_1]
        slope_2, slope_3 = gradient[item_2], gradient[item_3]
        if slope_0 != 0.0 or slope_1 != 0.0 or slope_2 != 0.0 or slope_3 != 0.0:
            for column in range(out.shape[0]):
                total = out[column] + slope_0 * features[item_0, column]
                total += slope_1 * features[item_1, column]
                total += slope_2 * features[item_2, column]
                total += slope_3 * features[item_3, column]
                out[column] = total
    for item in range(4 * n_blocks, features.shape[0]):
        slope = gradient[item]
        if slope != 0.0:
            for column in range(out.shape[0]):
                out[column] += slope * features[item, column]


@kernel
def descend(step: Step, round: int, gradient: Any, weights: Any, squares: Any) -> None:
    """Take one step down, and project onto the ball."""
    if step.kind == ADAGRAD:
        for column in range(weights.shape[0]):
            squares[column] += gradient[column] * gradient[column]
            if squares[column] > 0.0:
                weights[column] -= step.scale * gradient[column] / math.sqrt(squares[column])
    else:
        scale = step.scale
        if step.kind == POWER:
            scale *= (round + 1.0) ** -step.power
        for column in range(weights.shape[0]):
            weights[column] -= scale * gradient[column]
    if step.radius < math.inf:
        norm = 0.0
        for column in range(weights.shape[0]):
            norm += weights[column] * weights[column]
        norm = math.sqrt(norm)
        if norm > step.radius:
            for column in range(weights.shape[0]):
                weights[column] *= step.radius / norm
