"""A stamp changes with whatever a compiled function is made of, and with nothing else."""

import math
from typing import Any, NamedTuple

import numpy as np
import pytest

from keyhole.kernels.compiled import kernel
from keyhole.kernels.stamps import stamp_of

TEXT = '''
def outer(x, y=DEFAULT):
    """DOC"""
    # a comment
    a = helper(x) + CONSTANT
    return a + TABLE[0] + PAIR[1] + math.sqrt(y) INNER
'''
HELPER = "def helper(x):\n    return x HOW"


class Pair(NamedTuple):
    first: Any
    second: Any


class Renamed(NamedTuple):
    first: Any
    third: Any


def made(
    default="2.0", doc="What it does.", constant=3, table=(1.0, 2.0), pair=(4, 5), inner="",
    how="+ 1", kind=Pair, filename="<one>", options=None,
):  # fmt: skip
    names = {
        "math": math, "CONSTANT": constant, "TABLE": np.array(table), "PAIR": pair, "Kind": kind,
    }  # fmt: skip
    exec(compile(HELPER.replace("HOW", how), filename, "exec"), names)
    names["helper"] = kernel(names["helper"])
    source = TEXT.replace("DEFAULT", default).replace("DOC", doc).replace("INNER", inner)
    exec(compile(source, filename, "exec"), names)
    return stamp_of(names["outer"], options)


def test_equal_functions_have_equal_stamps_wherever_they_stand():
    assert made() == made(filename="<another file, further down>")
    assert made() == made(doc="It says something else.")
    assert made(inner="+ Kind(1, 2).first") == made(inner="+ Kind(1, 2).first")


@pytest.mark.parametrize(
    "change",
    [
        {"default": "2.5"}, {"constant": 4}, {"constant": 3.0}, {"constant": True},
        {"table": (1.0, 2.0000001)}, {"table": (1, 2)}, {"pair": (4, 6)}, {"pair": (4, 5, 6)},
        {"inner": "+ 1"}, {"how": "+ 2"}, {"how": "- 1"}, {"options": {"forceinline": True}},
    ],
    ids=str,
)  # fmt: skip
def test_whatever_a_function_is_made_of_changes_its_stamp(change):
    assert made(**change) not in (None, made())


def test_the_fields_of_a_tuple_are_part_of_it():
    assert made(inner="+ Kind(1, 2).first") != made(inner="+ Kind(1, 2).first", kind=Renamed)


def test_closures_and_functions_that_call_themselves():
    def factory(number):
        def inner(x):
            return x + number

        return inner

    assert stamp_of(factory(1)) == stamp_of(factory(1)) != stamp_of(factory(2))

    def again(n):
        return 1 if n == 0 else n * again(n - 1)

    assert stamp_of(again) is not None


def test_what_may_change_without_a_trace_has_no_stamp():
    unknown: Any = object()

    def reads(x):
        return unknown

    assert stamp_of(reads) is None
