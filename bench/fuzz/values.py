"""What attacks are made of: numbers at the ends of their ranges, wrong types, broken text."""

import math
import random
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

WHOLE = (0, 1, 2, 3, 4, 5, 7, -1, -7, 100, 2**31 - 1, 2**31, 2**47, 2**53 + 1, 2**62, 2**63 - 1)
HUGE = (2**63, 2**64, -(2**63), 10**30, 10**400)
REAL = (0.0, -0.0, 0.5, 1.0, 1.5, -0.5, 0.1, 3.0, 5e-324, 1e-300, 1e-9, 1e9, 1e300, 1.7e308, -1e308)
NOT_FINITE = (math.nan, math.inf, -math.inf)
WORDS = (
    "", " ", "x", "1", "nan", "inf", "-1", "1e999", "None", "true", "DCG", "NDCG@10", "NDCG@0",
    "NDCG@99999999999999999999", "rtopk", "ftpl", "kl", "random", "\x00", "a\nb", "é", "\ud800",
    "../..", "x" * 3000, "os:system", "keyhole:RTopK", "keyhole.rankers:Nothing", "no.py:Class",
    "%s%n", "{0}", "`n`", "[red]", "1_0", "\uff10",
)  # fmt: skip


class Strange:
    """An object that answers no question."""

    def __repr__(self) -> str:
        return "Strange()"


def _containers() -> tuple[Any, ...]:
    return (
        [], [1], [0, 1, 2], [[1, 2], [3]], [None], ["a", "b"], (), (1, 2), {}, {"name": "DCG"},
        {"name": "nothing"}, {"name": 3}, {1: 2}, {"name": "rtopk", "version": "99.0"},
        np.array(3), np.array([1.0, 2.0]), np.array([]), np.zeros((2, 3)), np.array([np.nan, 1.0]),
        np.array(["a", "b"]), np.array([None, 1], dtype=object), np.zeros((0, 3)),
        np.array([2**63], dtype=np.uint64), np.array([1 + 2j]), np.array(["2020"], "datetime64[D]"),
    )  # fmt: skip


def _others() -> tuple[Any, ...]:
    return (
        None, True, False, b"x", b"\xff", bytearray(b"1"), 1 + 2j, Fraction(1, 3), Decimal("NaN"),
        Decimal("1e400"), object, Strange(), len, range(3), np.float32(0.5), np.int8(3),
        np.uint64(2**63), np.bool_(True), np.float64("nan"), np.str_("a"), np.datetime64("NaT"),
        Ellipsis, NotImplemented, float, "DCG".join,
    )  # fmt: skip


def value(chance: random.Random) -> Any:
    """Return any value at all."""
    kinds = (WHOLE, HUGE, REAL, NOT_FINITE, WORDS, _containers(), _others())
    return chance.choice(chance.choice(kinds))


def real(chance: random.Random) -> float:
    """Return a number, one of four at the end of a range or not finite."""
    if chance.random() < 0.75:
        return chance.choice((0.0, 1.0, chance.random(), chance.gauss(0, 3), chance.randint(0, 4)))
    return chance.choice((*REAL, *NOT_FINITE))


def whole(chance: random.Random) -> int:
    """Return a whole number, often a small one."""
    return chance.randint(0, 6) if chance.random() < 0.5 else chance.choice((*WHOLE, *HUGE))


def wrong_number(chance: random.Random) -> Any:
    """Return what is no number, whoever reads it."""
    return chance.choice(
        (
            math.nan,
            "x",
            "",
            None,
            [],
            [1],
            {},
            "1e",
            b"1",
            Strange(),
            1 + 2j,
            Decimal("NaN"),
            object,
        )
    )


def array(chance: random.Random, length: int | None = None) -> Any:
    """Return an array of numbers, mostly of one dimension, not all of them finite or fitting."""
    shape: Any = chance.randint(0, 6) if length is None else length
    if chance.random() < 0.2:
        shape = chance.choice(((), (2, 3), (0,), (1,), (5, 1), (5, 5), (1, 1, 5)))
    numbers = np.random.default_rng(chance.getrandbits(32))
    made: Any = numbers.random(shape)
    made = chance.choice((made, np.round(made), made * 4, made - 0.5, np.full(shape, real(chance))))
    dtype = chance.choice(
        (np.float64,) * 6
        + (np.float32, np.int64, np.int8, np.bool_, object, "U3", ">f8", "F", "f2")
    )
    with np.errstate(all="ignore"):
        return made.astype(dtype)


def flipped(chance: random.Random, content: bytes) -> bytes:
    """Return bytes with a few of them changed, cut out, doubled or cut off."""
    changed = bytearray(content)
    for _ in range(chance.choice((1, 1, 1, 2, 5, 20))):
        if not changed:
            break
        place = chance.randrange(len(changed))
        end = min(len(changed), place + chance.choice((1, 2, 8, 100)))
        match chance.randrange(7):
            case 0:
                changed[place] ^= 1 << chance.randrange(8)
            case 1:
                changed[place] = chance.choice((0, 255, 10, 13, 9, 44, 34, 45, 46, 101, 58, 0xC3))
            case 2:
                del changed[place:end]
            case 3:
                del changed[place:]
            case 4:
                changed[place:place] = changed[place:end]
            case 5:
                changed[place:place] = bytes(chance.randrange(256) for _ in range(5))
            case 6:
                changed[place:end] = bytes(end - place)
    return bytes(changed)


_TOKENS = (
    "nan", "inf", "-1", "1e400", "-1e308", "1e999999999", "1/0", "99999999999999999999", "", "x",
    "-", "0x10", '"', ",", "\r", "\n", "\t", " ", "#", ":", "qid:", "é", "\x00", "{", "[", "null",
    "true", "0", "1", "0.5", "1e-320", "30000000", "3/7", "\ufeff", "\u00a0",
)  # fmt: skip


def reworded(chance: random.Random, text: str) -> str:
    """Return text of which a few words have become others."""
    words = _split(text)
    for _ in range(chance.choice((1, 1, 1, 2, 3, 8))):
        place = chance.randrange(len(words))
        match chance.randrange(4):
            case 0 | 1:
                words[place] = chance.choice(_TOKENS)
            case 2:
                words[place : place + 1] = []
            case 3:
                words.insert(place, chance.choice(words))
        words = words or [""]
    return "".join(words)


def renumbered(chance: random.Random, content: bytes) -> bytes:
    """Return text of which a few digits have become others: it can mostly be read still."""
    changed = bytearray(content)
    places = [place for place, byte in enumerate(changed) if byte in b"0123456789"] or [0]
    for _ in range(chance.choice((1, 1, 2, 5))):
        changed[chance.choice(places)] = ord(str(chance.randrange(10)))
    return bytes(changed)


def _split(text: str) -> list[str]:
    """Return the words of a text and what is between them."""
    words, current, kind = [], "", None
    for character in text:
        now = character.isalnum() or character in ".+-_"
        if current and (not now or now != kind):
            words.append(current)
            current = ""
        current, kind = current + character, now
    return [*words, current]
