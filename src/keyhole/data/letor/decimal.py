"""Decimal text to the nearest double, compiled: the same bits as Python's ``float``.

Notes
-----
A mantissa of at most 2^53 and a power of ten of at most 10^22 are exact doubles, so one division
or multiplication of the two is rounded correctly [Clinger1990]_. Numbers of up to 18 digits and
powers of ten up to 10^100 go through the algorithm of Eisel and Lemire [Lemire2021]_, which also
tells the rare ones it cannot decide. Whatever else there is, is left to the caller.

References
----------
.. [Clinger1990] W. D. Clinger, "How to read floating point numbers accurately", PLDI 1990.
.. [Lemire2021] D. Lemire, "Number parsing at a gigabyte per second", Software: Practice and
   Experience 51 (8), 2021.
"""

import math
from typing import Any

import numpy as np

from keyhole.kernels.compiled import kernel, rare_kernel

_EXACT_MANTISSA = 2**53
_EXACT_POWER = 22
_POWERS = np.array([float(10**k) for k in range(_EXACT_POWER + 1)])
_MAX_DIGITS = 18
PLAIN_DIGITS = 15
"""So many digits are below 2^53, and their power of ten is exact too."""
_MAX_EXPONENT = 9999
_REACH = 100


def _five(power: int) -> int:
    """Return 128 leading bits of 5^power, rounded as the algorithm's proof asks."""
    fives = 5 ** abs(power)
    if power >= 0:
        shift = 128 - fives.bit_length()
        return fives << shift if shift >= 0 else fives >> -shift
    if power >= -27:
        return (1 << (fives.bit_length() + 127)) // fives + 1
    inverse = (1 << (2 * fives.bit_length() + 128)) // fives + 1
    return inverse >> (inverse.bit_length() - 128)


_FIVES = [_five(power) for power in range(-_REACH, _REACH + 1)]
_FIVES_HIGH = np.array([five >> 64 for five in _FIVES], np.uint64)
_FIVES_LOW = np.array([five & (2**64 - 1) for five in _FIVES], np.uint64)
_TWOS_REACH = 500
_TWOS = np.array([2.0**power for power in range(-_TWOS_REACH, _TWOS_REACH + 1)])

_U1, _U9, _U32, _U63 = np.uint64(1), np.uint64(9), np.uint64(32), np.uint64(63)
_LOW_HALF = np.uint64(2**32 - 1)
_LAST_BITS = np.uint64(2**9 - 1)
_ALL_BITS = np.uint64(2**64 - 1)
_U0, _U3 = np.uint64(0), np.uint64(3)

# Eight bytes at once, the first of them lowest.
_U8, _U16 = np.uint64(8), np.uint64(16)
_ZEROS = np.uint64(0x3030303030303030)
_ABOVE_NINE = np.uint64(0x7676767676767676)
_TOP_BITS = np.uint64(0x8080808080808080)
_ONES = np.uint64(0x0101010101010101)
_SIX_THEN_OTHER = np.uint64(1 << 63)
_TWO, _TWOS_MASK = np.uint64(10 * 2**8 + 1), np.uint64(0x00FF00FF00FF00FF)
_FOUR, _FOURS_MASK = np.uint64(100 * 2**16 + 1), np.uint64(0x0000FFFF0000FFFF)
_EIGHT = np.uint64(10000 * 2**32 + 1)


@kernel
def byte(text: Any, p: int) -> Any:
    """Return the byte at ``p``, which is not negative: Numba would count from the end.

    Interpreted it is a plain number: NumPy's own bytes would wrap around at 256 in a sum.
    """
    return int(text[np.uintp(p)])


@kernel
def word(text: Any, p: int) -> Any:
    """Return the eight bytes at ``p`` as a number; the compiler makes it one load."""
    found = np.uint64(byte(text, p))
    for k in range(1, 8):
        found = found | (np.uint64(byte(text, p + k)) << np.uint64(8 * k))
    return found


@kernel
def find_either(text: Any, p: int, one: int, other: int) -> int:
    """Return where one of two bytes is first found from ``p`` on; there must be one."""
    ones, others = np.uint64(one) * _ONES, np.uint64(other) * _ONES
    while True:
        a, b = word(text, p) ^ ones, word(text, p) ^ others
        # The top bit of the first byte that is 0 in ``a`` or ``b`` is set, and none before it.
        if (((a - _ONES) & ~a) | ((b - _ONES) & ~b)) & _TOP_BITS:
            break
        p += 8
    while byte(text, p) != one and byte(text, p) != other:
        p += 1
    return p


@kernel
def _append_digits(text: Any, p: int, mantissa: int) -> tuple[int, int]:
    """Append the digits at ``p`` to a number; return it and where they end.

    Six digits, as LETOR's files have them behind the point, are read at once.
    """
    value = word(text, p) ^ _ZEROS
    no_digit = ((value + _ABOVE_NINE) | value) & _TOP_BITS
    if no_digit << _U8 == _SIX_THEN_OTHER:
        value = ((value << _U16) * _TWO >> _U8) & _TWOS_MASK
        value = (value * _FOUR >> _U16) & _FOURS_MASK
        return mantissa * 1_000_000 + int(np.int64(value * _EIGHT >> _U32)), p + 6
    while 48 <= byte(text, p) <= 57:
        mantissa = mantissa * 10 + (byte(text, p) - 48)
        p += 1
    return mantissa, p


@kernel
def _high_product(a: Any, b: Any) -> Any:
    """Return the upper 64 bits of the product of two 64-bit words."""
    a_high, a_low, b_high, b_low = a >> _U32, a & _LOW_HALF, b >> _U32, b & _LOW_HALF
    middle = a_high * b_low + ((a_low * b_low) >> _U32)
    other = a_low * b_high + (middle & _LOW_HALF)
    return a_high * b_high + (middle >> _U32) + (other >> _U32)


@rare_kernel
def nearest(mantissa: int, exponent: int) -> float:
    """Return the double nearest to ``mantissa`` times ten to ``exponent``, or NaN if in doubt.

    The algorithm of Eisel and Lemire, without subnormal numbers and infinity, which the range of
    its arguments excludes.
    """
    if mantissa == 0:
        return 0.0
    if mantissa < 0 or not -_REACH <= exponent <= _REACH:
        return math.nan
    word, zeros = np.uint64(mantissa), 0
    while word >> _U63 == _U0:
        word = word << _U1
        zeros += 1
    high_five = _FIVES_HIGH[exponent + _REACH]
    low, high = word * high_five, _high_product(word, high_five)
    if high & _LAST_BITS == _LAST_BITS:
        more = _high_product(word, _FIVES_LOW[exponent + _REACH])
        low = low + more
        if more > low:
            high = high + _U1
    if low == _ALL_BITS and not -27 <= exponent <= 55:
        return math.nan
    upper = high >> _U63
    shift = upper + _U9
    bits = high >> shift
    if low <= _U1 and -4 <= exponent <= 23 and bits & _U3 == _U1 and bits << shift == high:
        bits = bits - _U1  # half way between two doubles: to the even one
    bits = (bits + (bits & _U1)) >> _U1
    power = ((217706 * exponent) >> 16) + 63 + np.int64(upper) - zeros - 52
    return float(np.int64(bits)) * _TWOS[power + _TWOS_REACH]


@rare_kernel
def _long(text: Any, begin: int, n_digits: int, mantissa: int, exponent: int) -> float:
    """Return a number that is not of the short kind, or NaN if in doubt."""
    p = begin
    while n_digits > _MAX_DIGITS and (byte(text, p) == 48 or byte(text, p) == 46):
        n_digits -= byte(text, p) == 48
        p += 1
    return nearest(mantissa, exponent) if n_digits <= _MAX_DIGITS else math.nan


@kernel
def _power(text: Any, p: int) -> tuple[int, int, int]:
    """Return the power of ten at ``p``, where it ends and how many digits it has."""
    down = byte(text, p) == 45
    if down or byte(text, p) == 43:
        p += 1
    begin, power = p, 0
    while 48 <= byte(text, p) <= 57:
        power = min(power * 10 + (byte(text, p) - 48), _MAX_EXPONENT)
        p += 1
    return -power if down else power, p, p - begin


@kernel
def plain_decimal(text: Any, p: int) -> tuple[float, int, int]:
    """Read a number of some digits and a point; return it, its end and its count of digits.

    It is right if the count is between 1 and 15.
    """
    negative = byte(text, p) == 45
    p += negative
    begin, mantissa, exponent = p, 0, 0
    while 48 <= byte(text, p) <= 57:
        mantissa = mantissa * 10 + (byte(text, p) - 48)
        p += 1
    n_digits = p - begin
    if byte(text, p) == 46:
        point = p + 1
        mantissa, p = _append_digits(text, point, mantissa)
        exponent = p - point
        n_digits += exponent
    if n_digits > PLAIN_DIGITS:
        return 0.0, p, n_digits
    value = float(mantissa) / _POWERS[np.uintp(exponent)]
    return -value if negative else value, p, n_digits


@kernel
def decimal(text: Any, p: int) -> tuple[float, int, bool]:
    """Read the number at ``p``; return it, where it ended, and whether it can be trusted.

    If not, the token is too long, too large or too small, or no number at all.
    """
    c = byte(text, p)
    negative = c == 45
    if negative or c == 43:
        p += 1
    begin = p
    mantissa = 0
    while 48 <= byte(text, p) <= 57:
        mantissa = mantissa * 10 + (byte(text, p) - 48)
        p += 1
    n_digits, exponent = p - begin, 0
    if byte(text, p) == 46:
        p += 1
        point = p
        mantissa, p = _append_digits(text, p, mantissa)
        exponent = point - p
        n_digits -= exponent
    if n_digits == 0:
        return math.nan, p, False
    if byte(text, p) == 101 or byte(text, p) == 69:
        power, p, digits = _power(text, p + 1)
        if digits == 0:
            return math.nan, p, False
        exponent += power
    c = byte(text, p)
    if not (c <= 35 and c in (32, 10, 35, 9, 13)):
        return math.nan, p, False
    if n_digits <= _MAX_DIGITS and mantissa <= _EXACT_MANTISSA and abs(exponent) <= _EXACT_POWER:
        value = float(mantissa)
        if exponent < 0:
            value /= _POWERS[-exponent]
        elif exponent > 0:
            value *= _POWERS[exponent]
    else:
        value = _long(text, begin, n_digits, mantissa, exponent)
    return -value if negative else value, p, not math.isnan(value)
