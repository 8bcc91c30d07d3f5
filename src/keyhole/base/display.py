"""How things show themselves: a title and a few rows, as text and as HTML for notebooks.

Whatever a session prints is short: a line where all of it fits on one, a small table elsewhere,
and never an array. A class says what is worth telling (:meth:`Described._described`); how that is
cut, laid out and escaped is decided here, once.
"""

import html
import math
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple, Protocol

import numpy as np

_LONGEST_LINE = 100
_LONGEST_TITLE = 160
_LONGEST_VALUE = 240
_MOST_ROWS = 12
_MOST_VALUES = 8
"""Values that are written in full; of more than these, only the first few are."""
_FIRST_VALUES = 3
_DEEPEST = 2
"""Lists in lists that are still looked into."""


class Description(NamedTuple):
    """What is told of a thing: a title, and names with values.

    Examples
    --------
    >>> short = Description("Policy(n_actions=3)", [("rows", "1,000"), ("features", "4")])
    >>> print(short.text())
    Policy(n_actions=3): rows 1,000; features 4
    >>> print(short._replace(title="A" * 90).text())
    AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA
      rows      1,000
      features  4
    >>> print(Description("<b>").html())
    <div class="keyhole"><strong>&lt;b&gt;</strong></div>
    """

    title: str
    rows: Sequence[tuple[str, str]] = ()

    def _shortened(self) -> tuple[str, list[tuple[str, str]]]:
        """Return title and rows as they are shown: few, short, and on one line each."""
        rows = [(on_one_line(name, 40), on_one_line(value)) for name, value in self.rows]
        if len(rows) > _MOST_ROWS:
            rows = [*rows[: _MOST_ROWS - 1], ("…", f"{len(rows) - _MOST_ROWS + 1} more")]
        return on_one_line(self.title, _LONGEST_TITLE), rows

    def text(self) -> str:
        """Return one line, or a small table where one line would be too long."""
        title, rows = self._shortened()
        if not rows:
            return title
        line = f"{title}: {'; '.join(f'{name} {value}' for name, value in rows)}"
        if len(line) <= _LONGEST_LINE:
            return line
        width = max(len(name) for name, _ in rows)
        return "\n".join([title, *(f"  {name:<{width}}  {value}" for name, value in rows)])

    def html(self) -> str:
        """Return a small table for notebooks, in which no name is markup."""
        title, rows = self._shortened()
        cells = [
            f'<tr><th style="text-align: left">{html.escape(name)}</th>'
            f'<td style="text-align: left">{html.escape(value)}</td></tr>'
            for name, value in rows
        ]
        table = f"<table>{''.join(cells)}</table>" if cells else ""
        return f'<div class="keyhole"><strong>{html.escape(title)}</strong>{table}</div>'


class _Describes(Protocol):
    def _described(self) -> Description: ...


def description_of(thing: _Describes) -> Description:
    """Return what a thing tells of itself; of one that is not made whole, what it is.

    Debuggers show things that are half made, and tracebacks those whose making has failed.
    """
    try:
        return thing._described()
    except Exception:
        return Description(f"<{type(thing).__name__} that is not made yet>")


class Described:
    """Something that tells of itself in a line or a small table.

    A dataclass must be made with ``repr=False``, or it writes its own; a ``NamedTuple``, which can
    have no other base, calls :func:`description_of` in methods of its own.

    Examples
    --------
    >>> class Tree(Described):
    ...     def _described(self):
    ...         return Description("Tree", [("species", "oak"), ("rings", "90")])
    >>> Tree()
    Tree: species oak; rings 90
    """

    @abstractmethod
    def _described(self) -> Description:
        """Return a title and rows. It computes nothing that takes long."""

    def __repr__(self) -> str:
        return description_of(self).text()

    def _repr_html_(self) -> str:
        return description_of(self).html()


def on_one_line(text: Any, longest: int = _LONGEST_VALUE) -> str:
    r"""Return text without line breaks or other control characters, cut in the middle if long.

    Examples
    --------
    >>> on_one_line("two\nlines"), on_one_line("a" * 50 + "z" * 50, 9)
    ('two\\nlines', 'aaaa…zzzz')
    """
    whole = str(text)
    half = (longest - 1) // 2
    if len(whole) > longest:
        whole = f"{whole[:half]}…{whole[-half:]}"
    return "".join(
        character if character.isprintable() else repr(character)[1:-1] for character in whole
    )


def some_of(values: Sequence[Any], most: int = _MOST_VALUES) -> str:
    """Return the first of some values, and how many there are where not all are shown.

    Examples
    --------
    >>> some_of(["ant", "bee"]), some_of(range(100_000))
    ('ant, bee', '0, 1, 2, 3, 4, 5, 6, 7 … (100,000 in all)')
    """
    shown = ", ".join(on_one_line(value, 30) for value in islice(values, most))
    return shown if len(values) <= most else f"{shown} … ({len(values):,} in all)"


def counted(number: int, what: str) -> str:
    """Return how many there are of something, in the singular where there is one.

    Examples
    --------
    >>> counted(1, "row"), counted(2_000, "row"), counted(0, "row")
    ('1 row', '2,000 rows', '0 rows')
    """
    return f"{number:,} {what}{'s' * (number != 1)}"


def short(value: Any, depth: int = _DEEPEST) -> str:
    """Return a setting as Python writes it, or what it is where that is long.

    Examples
    --------
    >>> short([1, 2]), short(list("abcdefghijk")), short(np.zeros((40, 3)))
    ('[1, 2]', "['a', 'b', 'c', … 11 in all]", '<40 by 3 values>')
    """
    is_list = isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.ndim > 0)
    shape = _shape(value) if is_list else ()
    if len(shape) > 1 and math.prod(shape) > _MOST_VALUES:
        return f"<{' by '.join(map(str, shape))} values>"
    if (is_list or isinstance(value, Mapping)) and not depth:
        return f"<{len(value)} values>"
    if isinstance(value, Mapping):
        pairs = (f"{short(name, 0)}: {short(each, depth - 1)}" for name, each in value.items())
        return f"{{{_first_few(pairs, len(value))}}}"
    if is_list:
        return f"[{_first_few((short(each, depth - 1) for each in value), len(value))}]"
    try:
        return on_one_line(repr(value.item() if isinstance(value, np.generic) else value))
    except Exception:  # a number of too many digits, or whatever a class of theirs raises
        return f"<{type(value).__name__}>"


def _shape(values: Any) -> tuple[int, ...]:
    """Return the shape of an array, or of lists in a list as their first one tells it."""
    if isinstance(values, np.ndarray):
        return values.shape
    first = values[0] if values else None
    return (len(values), len(first)) if isinstance(first, list | tuple) else (len(values),)


def _first_few(parts: Iterable[str], n_parts: int) -> str:
    """Return all parts of a list, or the first of many and how many there are."""
    if n_parts <= _MOST_VALUES:
        return ", ".join(parts)
    return ", ".join([*islice(parts, _FIRST_VALUES), f"… {n_parts} in all"])
