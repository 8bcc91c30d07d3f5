"""Sums over the rows and columns of a matrix, written out in vector instructions.

Numba leaves the joining of scalar lanes to vectors (SLP) off, and to let the compiler split a sum
into lanes itself would take ``fastmath``. Here the lanes are part of the definition: the plain
functions say in which order numbers are added, and what is compiled adds in that order too, bit
for bit, with one instruction for all lanes and several sums under way at a time.

Products and short sums are of the matrix's own precision, long sums of double precision: at most
``BLOCK`` products of single precision are added up before their sum joins a double.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils as untyped_cgutils
from numba.extending import intrinsic, overload

from keyhole.kernels.compiled import rare_kernel

VECTOR_BYTES = 64
ROWS = 4
"""Rows of ``row_sums`` that are under way at a time."""
BLOCK = 32
"""Rows of ``column_sums`` that are added up before their sum joins the total."""
VECTORS = 8
"""Vectors of columns that ``column_sums`` keeps in registers."""

cgutils: Any = untyped_cgutils
_INDEX, _DOUBLE = ir.IntType(64), ir.DoubleType()


def row_sums(matrix: Any, weights: Any, rounded: Any, upcoming: Any, out: Any) -> None:
    """Fill ``out`` with the rows times the weights.

    Each of 16 lanes (8 in double precision) adds up its columns; then the upper half of the
    lanes is added to the lower one, a rest of the columns that fills them joins, and so on until
    one lane is left. ``rounded`` is room for the weights in single precision. The rows of
    ``upcoming`` are fetched into the caches meanwhile.
    """
    n_columns, kind = weights.shape[0], matrix.dtype
    for row in range(matrix.shape[0]):
        products = matrix[row] * weights.astype(kind)
        width = VECTOR_BYTES // kind.itemsize
        sums, column = np.zeros(width, kind), 0
        while column + width <= n_columns:
            sums += products[column : column + width]
            column += width
        while width > 1:
            width //= 2
            sums = sums[:width] + sums[width:]
            if n_columns & width:
                sums += products[column : column + width]
                column += width
        out[row] = sums[0]


def column_sums(matrix: Any, slopes: Any, out: Any) -> None:
    """Fill ``out`` with the columns times the slopes, block by block of rows; zeros are left out.

    The last block comes first: after ``row_sums`` its rows are the nearest in the caches.
    """
    kind, end = matrix.dtype, matrix.shape[0]
    out[:] = 0.0
    for first in reversed(range(0, end, BLOCK)):
        sums = np.zeros(matrix.shape[1], kind)
        for row in range(first, min(first + BLOCK, end)):
            if slopes[row] != 0.0:
                sums += slopes[row].astype(kind) * matrix[row]
        out += sums


class _Emitter:
    """Writes loops over a matrix without gaps, of single or double precision."""

    def __init__(self, context: Any, builder: Any, matrix_type: Any, matrix: Any) -> None:
        array = context.make_array(matrix_type)(context, builder, matrix)
        self.builder, self.data = builder, array.data
        self.n_rows, self.n_columns = cgutils.unpack_tuple(builder, array.shape)
        self.element = context.get_data_type(matrix_type.dtype)
        self.lanes = VECTOR_BYTES * 8 // matrix_type.dtype.bitwidth

    def index(self, number: int) -> Any:
        return ir.Constant(_INDEX, number)

    def loop(self, first: Any, end: Any, step: int) -> Any:
        return cgutils.for_range_slice(self.builder, first, end, self.index(step), _INDEX)

    def whole(self, count: Any, size: int) -> Any:
        """Return the part of a count that whole groups of a size, a power of two, fill."""
        return self.builder.and_(count, self.index(-size))

    def row(self, number: Any) -> Any:
        return self.builder.gep(self.data, [self.builder.mul(number, self.n_columns)])

    def vector(self, lanes: int, element: Any = None) -> Any:
        element = element or self.element
        return element if lanes == 1 else ir.VectorType(element, lanes)

    def pointer(self, data: Any, at: Any, kind: Any) -> Any:
        return self.builder.bitcast(self.builder.gep(data, [at]), kind.as_pointer())

    def load(self, data: Any, at: Any, kind: Any) -> Any:
        return self.builder.load(self.pointer(data, at, kind), align=4)

    def store(self, value: Any, data: Any, at: Any) -> None:
        self.builder.store(value, self.pointer(data, at, value.type), align=4)

    def zeros(self, lanes: int) -> Any:
        place = cgutils.alloca_once(self.builder, self.vector(lanes))
        self.builder.store(ir.Constant(self.vector(lanes), None), place)
        return place

    def add_to(self, total: Any, left: Any, right: Any) -> None:
        builder = self.builder
        builder.store(builder.fadd(builder.load(total), builder.fmul(left, right)), total)

    def rounded(self, number: Any) -> Any:
        """Return a double, or doubles, in the matrix's precision."""
        if self.element == _DOUBLE:
            return number
        lanes = number.type.count if isinstance(number.type, ir.VectorType) else 1
        return self.builder.fptrunc(number, self.vector(lanes))

    def halves(self, lanes: Any, width: int) -> list[Any]:
        """Return the lower and the upper half of a vector, each of a width."""
        if width == 1:
            numbers = (ir.Constant(ir.IntType(32), lane) for lane in (0, 1))
            return [self.builder.extract_element(lanes, number) for number in numbers]
        kind = ir.VectorType(ir.IntType(32), width)
        masks = [ir.Constant(kind, list(range(at, at + width))) for at in (0, width)]
        return [self.builder.shuffle_vector(lanes, lanes, mask) for mask in masks]

    def sum_rows(self, first: Any, n_rows: int, weights: Any, out: Any) -> None:
        """Write the sums of some rows; their additions do not wait for each other."""
        builder, width = self.builder, self.lanes
        numbers = [builder.add(first, self.index(i)) for i in range(n_rows)]
        rows = [self.row(number) for number in numbers]
        sums = [self.zeros(width) for _ in rows]

        def add_columns(column: Any) -> None:
            weight = self.load(weights, column, self.vector(width))
            for row, total in zip(rows, sums, strict=True):
                self.add_to(total, self.load(row, column, self.vector(width)), weight)

        with self.loop(self.index(0), self.whole(self.n_columns, width), width) as (column, _):
            add_columns(column)
        while width > 1:
            width //= 2
            joined = [builder.fadd(*self.halves(builder.load(s), width)) for s in sums]
            sums = [cgutils.alloca_once_value(builder, value) for value in joined]
            for total, value in zip(sums, joined, strict=True):
                builder.store(value, total)
            fills = builder.and_(self.n_columns, self.index(width))
            with builder.if_then(builder.icmp_signed("!=", fills, self.index(0))):
                add_columns(self.whole(self.n_columns, 2 * width))
        for number, total in zip(numbers, sums, strict=True):
            value = builder.load(total)
            wide = value if self.element == _DOUBLE else builder.fpext(value, _DOUBLE)
            self.store(wide, out, number)

    def sum_columns(
        self, first: Any, width: int, rows: tuple[Any, Any], slopes: Any, out: Any
    ) -> None:
        """Add the sums of some columns over some rows, which stay in registers meanwhile."""
        builder, lanes = self.builder, min(width, self.lanes)
        columns = [builder.add(first, self.index(at)) for at in range(0, width, lanes)]
        sums = [self.zeros(lanes) for _ in columns]
        with self.loop(*rows, 1) as (number, _):
            slope = self.load(slopes, number, _DOUBLE)
            nonzero = builder.fcmp_unordered("!=", slope, ir.Constant(_DOUBLE, 0.0))
            with builder.if_then(nonzero):
                row, factor = self.row(number), self.spread(self.rounded(slope), lanes)
                for column, total in zip(columns, sums, strict=True):
                    self.add_to(total, factor, self.load(row, column, self.vector(lanes)))
        kind = self.vector(lanes, _DOUBLE)
        for column, total in zip(columns, sums, strict=True):
            value = builder.load(total)
            wide = value if self.element == _DOUBLE else builder.fpext(value, kind)
            self.store(builder.fadd(self.load(out, column, kind), wide), out, column)

    def fetch_rows(self, first: Any) -> None:
        """Ask for some rows, if there are so many, to be brought into the second cache."""
        builder, byte, number = self.builder, ir.IntType(8), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte.as_pointer(), number, number, number])
        fetch = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
        how = [ir.Constant(number, value) for value in (0, 2, 1)]  # read, second cache, data
        end = builder.add(first, self.index(ROWS))
        with builder.if_then(builder.icmp_signed("<=", end, self.n_rows)):
            begin, stop = (builder.mul(row, self.n_columns) for row in (first, end))
            with self.loop(begin, stop, self.lanes) as (at, _):  # a vector is as long as a line
                builder.call(fetch, [self.pointer(self.data, at, byte), *how])

    def any_nonzero(self, slopes: Any, rows: tuple[Any, Any]) -> Any:
        """Return whether a slope of some rows is not zero."""
        builder, found = self.builder, cgutils.alloca_once(self.builder, ir.IntType(1))
        builder.store(ir.Constant(ir.IntType(1), 0), found)
        with self.loop(*rows, 1) as (number, _):
            slope = self.load(slopes, number, _DOUBLE)
            nonzero = builder.fcmp_unordered("!=", slope, ir.Constant(_DOUBLE, 0.0))
            builder.store(builder.or_(builder.load(found), nonzero), found)
        return builder.load(found)

    def spread(self, number: Any, lanes: int) -> Any:
        """Return a vector with a number in every lane."""
        if lanes == 1:
            return number
        first = ir.Constant(ir.IntType(32), 0)
        nothing = ir.Constant(self.vector(lanes), ir.Undefined)
        one = self.builder.insert_element(nothing, number, first)
        mask = ir.Constant(ir.VectorType(ir.IntType(32), lanes), [0] * lanes)
        return self.builder.shuffle_vector(one, one, mask)


def _data_of(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    return [
        context.make_array(kind)(context, builder, value).data
        for kind, value in zip(signature.args[1:], args[1:], strict=True)
    ]


def _emit_row_sums(
    typing: Any, matrix: Any, weights: Any, rounded: Any, upcoming: Any, out: Any
) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        emit = _Emitter(context, builder, signature.args[0], args[0])
        weights, rounded, _, out = _data_of(context, builder, signature, args)
        later = _Emitter(context, builder, signature.args[3], args[3])
        if emit.element != _DOUBLE:
            with emit.loop(emit.index(0), emit.n_columns, 1) as (column, _):
                emit.store(emit.rounded(emit.load(weights, column, _DOUBLE)), rounded, column)
            weights = rounded
        n_whole = emit.whole(emit.n_rows, ROWS)
        with emit.loop(emit.index(0), n_whole, ROWS) as (first, _):
            later.fetch_rows(first)
            emit.sum_rows(first, ROWS, weights, out)
        with emit.loop(n_whole, emit.n_rows, 1) as (row, _):
            emit.sum_rows(row, 1, weights, out)
        return context.get_dummy_value()

    return types.void(matrix, weights, rounded, upcoming, out), generate


def _emit_column_sums(typing: Any, matrix: Any, slopes: Any, out: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        emit = _Emitter(context, builder, signature.args[0], args[0])
        slopes, out = _data_of(context, builder, signature, args)
        with emit.loop(emit.index(0), emit.n_columns, 1) as (column, _):
            emit.store(ir.Constant(_DOUBLE, 0.0), out, column)
        begin = emit.whole(builder.sub(emit.n_rows, emit.index(1)), BLOCK)
        with emit.loop(emit.index(0), emit.n_rows, BLOCK) as (done, _):
            row = builder.sub(begin, done)
            end = builder.add(row, emit.index(BLOCK))
            is_last = builder.icmp_signed(">", end, emit.n_rows)
            rows = row, builder.select(is_last, emit.n_rows, end)
            with builder.if_then(emit.any_nonzero(slopes, rows)):
                width, first = VECTORS * emit.lanes, emit.index(0)
                while width:
                    end = emit.whole(emit.n_columns, width)
                    with emit.loop(first, end, width) as (column, _):
                        emit.sum_columns(column, width, rows, slopes, out)
                    width, first = width // 2, end
        return context.get_dummy_value()

    return types.void(matrix, slopes, out), generate


_row_sums: Any = intrinsic(_emit_row_sums)
_column_sums: Any = intrinsic(_emit_column_sums)


def _fit(matrix: Any, *doubles: Any) -> bool:
    return (
        matrix.dtype in (types.float32, types.float64)
        and all(array.layout == "C" for array in (matrix, *doubles))
        and all(array.dtype == types.float64 for array in doubles)
    )


@overload(row_sums)
def _compiled_row_sums(matrix: Any, weights: Any, rounded: Any, upcoming: Any, out: Any) -> Any:
    def by_vectors(matrix: Any, weights: Any, rounded: Any, upcoming: Any, out: Any) -> None:
        _row_sums(matrix, weights, rounded, upcoming, out)

    return by_vectors if _fit(matrix, weights, out) else None


@overload(column_sums)
def _compiled_column_sums(matrix: Any, slopes: Any, out: Any) -> Any:
    def by_vectors(matrix: Any, slopes: Any, out: Any) -> None:
        _column_sums(matrix, slopes, out)

    return by_vectors if _fit(matrix, slopes, out) else None


@rare_kernel
def linear_scores(features: Any, weights: Any, rounded: Any, upcoming: Any, out: Any) -> None:
    """Fill ``out`` with features times weights; ``rounded`` is room for these as float32."""
    row_sums(features, weights, rounded, upcoming, out)


@rare_kernel
def chain(features: Any, gradient: Any, out: Any) -> None:
    """Fill ``out`` with the gradient by weight: the transposed features times that by score."""
    column_sums(features, gradient, out)
