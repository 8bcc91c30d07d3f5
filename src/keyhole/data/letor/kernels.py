"""Kernels that read LETOR text: bytes in, numbers out.

The text of a chunk ends with a line end, so no loop has to look for the end of memory: every
one of them stops at a line end. Some read eight bytes at a time and look at up to seven more.
"""

from typing import Any

import numpy as np

from keyhole.data.letor.decimal import PLAIN_DIGITS, byte, decimal, find_either, plain_decimal
from keyhole.kernels.compiled import kernel, rare_kernel

FINE, FULL, NO_PAIR, NO_VALUE, ORDER, TOO_LOW, TOO_HIGH, NO_QID, LABEL, RANGE, RETURN = range(11)
"""How :func:`parse_chunk` ended."""

MAX_INDEX = 10**9
LABEL_COLUMN = -1
_PLAIN_INDEX = 9  # so many digits cannot overflow

_TAB, _LINE, _RETURN, _SPACE, _HASH, _COLON, _NINE, _ZERO = 9, 10, 13, 32, 35, 58, 57, 48
_PLUS, _MINUS = 43, 45


@kernel
def _ends_token(c: int) -> bool:
    return c <= _HASH and c in (_SPACE, _LINE, _HASH, _TAB, _RETURN)


@kernel
def _skip_blanks(text: Any, p: int) -> int:
    """Return where spaces and tabs end; carriage returns are skipped where a line ends."""
    while byte(text, p) in (_SPACE, _TAB):
        p += 1
    if byte(text, p) == _RETURN:
        end = p
        while byte(text, end) == _RETURN:
            end += 1
        if byte(text, end) == _LINE:
            return end
    return p


@kernel
def _skip_token(text: Any, p: int) -> int:
    while not _ends_token(byte(text, p)):
        p += 1
    return p


@kernel
def _skip_line(text: Any, p: int) -> int:
    return find_either(text, p, _LINE, _LINE) + 1


@kernel
def _skip_comment(text: Any, p: int) -> tuple[int, int]:
    """Return how it went, and where the next line begins or a carriage return is alone."""
    p = find_either(text, p, _LINE, _RETURN)
    end = _skip_blanks(text, p)
    return (FINE, end + 1) if byte(text, end) == _LINE else (RETURN, p)


@kernel
def _at_qid(text: Any, p: int) -> bool:
    return (
        byte(text, p) == 113
        and byte(text, p + 1) == 105
        and byte(text, p + 2) == 100
        and byte(text, p + 3) == _COLON
    )


@kernel
def _index(text: Any, p: int) -> tuple[int, int]:
    """Read the digits at ``p``; return the number, or one above MAX_INDEX, and where it ends."""
    index = 0
    while _ZERO <= byte(text, p) <= _NINE:
        index = min(index * 10 + byte(text, p) - _ZERO, MAX_INDEX + 1)
        p += 1
    return index, p


@rare_kernel
def line_start(text: Any, p: int) -> int:
    """Return where the line of ``p`` begins."""
    while p > 0 and byte(text, p - 1) != _LINE:
        p -= 1
    return p


@rare_kernel
def line_end(text: Any, p: int) -> int:
    """Return where the line after that of ``p`` begins, or the end of the text."""
    while p < text.shape[0]:
        if byte(text, p) == _LINE:
            return p + 1
        p += 1
    return p


@rare_kernel
def count_lines(text: Any, end: int) -> int:
    """Return the number of line ends before ``end``."""
    count = 0
    for p in range(end):
        count += byte(text, p) == _LINE
    return count


@rare_kernel
def scan_chunk(text: Any, p: int, end: int) -> tuple[int, int, int, int]:
    """Return the number of documents, the lowest and highest index and where the highest is.

    Indices ascend, so only the first and the last of a line are read. Whether the lines are as
    they should be is for :func:`parse_chunk` to say.
    """
    n_rows, lowest, highest, where = 0, MAX_INDEX + 1, -1, -1
    while p < end:
        p = _skip_blanks(text, p)
        if byte(text, p) == _LINE or byte(text, p) == _HASH:
            p = _skip_line(text, p)
            continue
        n_rows += 1
        p = _skip_blanks(text, _skip_token(text, p))
        if _at_qid(text, p):
            p = _skip_blanks(text, _skip_token(text, p))
        begin = p
        index, p = _index(text, p)
        if p > begin and byte(text, p) == _COLON:
            lowest = min(lowest, index)
        p = find_either(text, p, _LINE, _HASH)
        colon = p
        while colon > begin and byte(text, colon) != _COLON:
            colon -= 1
        digit = colon
        while digit > begin and _ZERO <= byte(text, digit - 1) <= _NINE:
            digit -= 1
        index, stop = _index(text, digit)
        if stop > digit and stop == colon and index > highest:
            highest, where = index, digit
        p = _skip_line(text, p)
    return n_rows, lowest, highest, where


@kernel
def _number(
    text: Any, p: int, row: int, column: int, low: float, high: float, n_slow: int, slow: Any
) -> tuple[int, float, int, int]:
    """Read a number, or leave it to Python; return how it went, the number, its end, ``n_slow``."""
    begin = p
    value, p, exact = decimal(text, p)
    if exact:
        return FINE if low <= value <= high else RANGE, value, p, n_slow
    if n_slow == slow.shape[0]:
        return FULL, 0.0, p, n_slow
    p = _skip_token(text, p)
    slow[n_slow, 0], slow[n_slow, 1], slow[n_slow, 2], slow[n_slow, 3] = row, column, begin, p
    return FINE, 0.0, p, n_slow + 1


@kernel
def _qid(text: Any, p: int) -> tuple[int, int, int]:
    """Return where the query's identity begins, its size (0: none, -1: a bad one) and its end."""
    if not _at_qid(text, p):
        return p, 0, p
    begin = p + 4
    p = begin
    while byte(text, p) > _SPACE and byte(text, p) != _HASH:
        p += 1
    return begin, p - begin if p > begin and _ends_token(byte(text, p)) else -1, p


@kernel
def _judge(index: int, previous: int, first: int, n_features: int, strict: bool, c: int) -> int:
    """Return what is wrong with an index that a colon and the byte ``c`` follow."""
    if index <= previous:
        return ORDER
    if index < first:
        return TOO_LOW
    if strict and index >= first + n_features:
        return TOO_HIGH
    return NO_VALUE if _ends_token(c) else FINE


@kernel
def _plain_pairs(
    text: Any, p: int, row: int, first: int, previous: int, features: Any
) -> tuple[int, int]:
    """Read features for as long as they are written plainly; return where that ends.

    It also returns the last index. Plain is a space, an index that ascends, a colon, digits with
    at most one point and sign, and again a space or line end. All else is for :func:`_pairs`.
    """
    while True:
        begin = p
        p += byte(text, p) == _SPACE
        digit, index = p, 0
        while _ZERO <= byte(text, p) <= _NINE:
            index = index * 10 + byte(text, p) - _ZERO
            p += 1
        column = index - first
        if byte(text, p) != _COLON or not 0 < p - digit <= _PLAIN_INDEX or index <= previous:
            return begin, previous
        value, p, n_digits = plain_decimal(text, p + 1)
        if not 0 < n_digits <= PLAIN_DIGITS or not 0 <= column < features.shape[1]:
            return begin, previous
        if byte(text, p) != _SPACE and byte(text, p) != _LINE:
            return begin, previous
        features[row, np.uintp(column)] = value
        previous = index


@kernel
def _pairs(
    text: Any,
    p: int,
    row: int,
    first: int,
    strict: bool,
    limits: Any,
    features: Any,
    n_slow: int,
    slow: Any,
) -> tuple[int, int, int]:
    """Read the features of a line; return how it went, where it ended and ``n_slow``."""
    previous, n_features = -1, features.shape[1]
    smallest, largest = limits
    while True:
        p, previous = _plain_pairs(text, p, row, first, previous, features)
        p = _skip_blanks(text, p)
        if byte(text, p) == _LINE or byte(text, p) == _HASH:
            return FINE, p, n_slow
        begin = p
        index, p = _index(text, p)
        if p == begin or byte(text, p) != _COLON or index > MAX_INDEX:
            return RETURN if byte(text, begin) == _RETURN else NO_PAIR, begin, n_slow
        ended = _judge(index, previous, first, n_features, strict, byte(text, p + 1))
        if ended != FINE:
            return ended, begin, n_slow
        previous, column, begin = index, index - first, p + 1
        ended, value, p, n_slow = _number(text, begin, row, column, -largest, largest, n_slow, slow)
        if ended == FINE and value != 0.0 and abs(value) < smallest:
            ended = RANGE
        if ended != FINE:
            return ended, begin, n_slow
        # An index beyond the last of its line: the next ones cannot ascend, which is reported.
        if column < n_features:
            features[row, column] = value


@rare_kernel
def parse_chunk(
    text: Any,
    p: int,
    end: int,
    shift: int,
    row: int,
    first: int,
    strict: bool,
    max_grade: float,
    limits: Any,
    features: Any,
    relevance: Any,
    line_at: Any,
    qid_at: Any,
    qid_size: Any,
    slow: Any,
) -> tuple[int, int, int, int, int]:
    """Read the documents of a chunk into their rows.

    Numbers that :func:`decimal` is not sure of go to the list ``slow`` (row, column, begin, end)
    for Python to read; when the list is full the kernel returns, to be called again.

    Returns
    -------
    tuple
        How it ended, where in the text, the next line, the next row, the length of the list.
    """
    n_slow = 0
    while p < end:
        line, n_before = p, n_slow
        p = _skip_blanks(text, p)
        if byte(text, p) != _LINE and byte(text, p) != _HASH:
            where = p
            ended, relevance[row], p, n_slow = _number(
                text, p, row, LABEL_COLUMN, 0.0, max_grade, n_slow, slow
            )
            if ended == RANGE:
                return LABEL, where, line, row, n_slow
            if ended == FINE:
                where = _skip_blanks(text, p)
                at, size, p = _qid(text, where)
                if size < 0:
                    return NO_QID, where, line, row, n_slow
                line_at[row], qid_at[row], qid_size[row] = line + shift, at + shift, size
                ended, p, n_slow = _pairs(
                    text, p, row, first, strict, limits, features, n_slow, slow
                )
                where = p
            if ended == FULL:
                return FULL, line, line, row, n_before
            if ended != FINE:
                return ended, where, line, row, n_slow
            row += 1
        ended, p = _skip_comment(text, p)
        if ended != FINE:
            return ended, p, line, row, n_slow
    return FINE, p, p, row, n_slow


@kernel
def _integer(text: Any, at: int, size: int) -> tuple[int, int, bool]:
    """Return where the digits of an integer begin, how many count, and if it is negative.

    Leading zeros do not count, so 0 has none; what is no integer has -1.
    """
    end, signed = at + size, byte(text, at) == _PLUS or byte(text, at) == _MINUS
    p = at + signed
    if p == end:
        return p, -1, False
    for q in range(p, end):
        if not _ZERO <= byte(text, q) <= _NINE:
            return p, -1, False
    while p < end and byte(text, p) == _ZERO:
        p += 1
    return p, end - p, byte(text, at) == _MINUS and p < end


@kernel
def _same_bytes(text: Any, one: int, other: int, size: int) -> bool:
    k = 0
    while k < size and byte(text, one + k) == byte(text, other + k):
        k += 1
    return k == size


@rare_kernel
def find_queries(text: Any, at: Any, size: Any, starts: Any) -> tuple[int, int]:
    """Write where queries start; return how many, and the first row without a qid (-1: none).

    A query goes on as long as the qid is the same text, or an integer of the same value.
    """
    n_queries = 0
    for row in range(at.shape[0]):
        if size[row] == 0:
            return n_queries, row
        same = row > 0 and size[row] == size[row - 1]
        same = same and _same_bytes(text, at[row], at[row - 1], size[row])
        if row > 0 and not same:
            one, n_one, minus_one = _integer(text, at[row], size[row])
            other, n_other, minus_other = _integer(text, at[row - 1], size[row - 1])
            same = n_one >= 0 and n_one == n_other and minus_one == minus_other
            same = same and _same_bytes(text, one, other, n_one)
        if not same:
            starts[n_queries] = row
            n_queries += 1
    return n_queries, -1


@rare_kernel
def drop_irrelevant(features: Any, relevance: Any, starts: Any, kept: Any) -> int:
    """Close the gaps of queries without a relevant document; return how many are left."""
    n_queries, n_rows = 0, 0
    for query in range(starts.shape[0] - 1):
        first, end = starts[query], starts[query + 1]
        relevant = False
        for row in range(first, end):
            relevant = relevant or relevance[row] > 0.0
        if not relevant:
            continue
        starts[n_queries], kept[n_queries] = n_rows, query
        n_queries += 1
        for row in range(first, end):
            if n_rows < row:
                relevance[n_rows] = relevance[row]
                for column in range(features.shape[1]):
                    features[n_rows, column] = features[row, column]
            n_rows += 1
    starts[n_queries] = n_rows
    return n_queries


@rare_kernel
def scale_queries(features: Any, starts: Any, begin: int, end: int, low: Any, high: Any) -> None:
    """Map each feature of each query onto 0 to 1; a feature that is constant becomes 0."""
    for query in range(begin, end):
        first, stop = starts[query], starts[query + 1]
        for column in range(features.shape[1]):
            low[column] = high[column] = features[first, column]
        for row in range(first + 1, stop):
            for column in range(features.shape[1]):
                low[column] = min(low[column], features[row, column])
                high[column] = max(high[column], features[row, column])
        for row in range(first, stop):
            for column in range(features.shape[1]):
                span = high[column] - low[column]
                half = 0.5 if span == np.inf else 1.0  # the span of two numbers can overflow
                span = half * high[column] - half * low[column]
                value = half * np.float64(features[row, column]) - half * low[column]
                features[row, column] = value / span if span > 0.0 else 0.0
