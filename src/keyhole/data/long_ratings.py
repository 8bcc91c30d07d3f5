"""Long ratings: rows of user, item and rating, pivoted to a table of people by items."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from keyhole.base.errors import InvalidInput, shown
from keyhole.base.limits import check_memory

_COLUMNS = {
    "user": r"(user|person|people|customer|rater|respondent|reviewer|visitor)([ _-]?(id|name))?",
    "item": r"(item|product|article|movie|film|book|song|track|document|restaurant)"
    r"([ _-]?(id|name|title))?",
    "rating": r"rating|score|stars?|grade|relevance|vote",
    "time": r"time([ _-]?stamp)?|date([ _-]?time)?",
}
_PATTERNS = {kind: re.compile(text, re.IGNORECASE) for kind, text in _COLUMNS.items()}
_BYTES_PER_CELL = 16

Row = tuple[str, list[str]]
"""Where a row comes from, such as ``line 3``, and its cells."""


def long_columns(names: Sequence[str]) -> tuple[int, int, int] | None:
    """Return the places of user, item and rating; None if the names are not those of such columns.

    Examples
    --------
    >>> long_columns(["userId", "movieId", "rating", "timestamp"]), long_columns(["tea", "milk"])
    ((0, 1, 2), None)
    """
    kinds = [next((k for k, p in _PATTERNS.items() if p.fullmatch(name)), "") for name in names]
    user, item, rating = (kinds.count(kind) for kind in ("user", "item", "rating"))
    if (user, item, rating) != (1, 1, 1) or "" in kinds:
        return None
    return kinds.index("user"), kinds.index("item"), kinds.index("rating")


def pivoted(
    path: Path,
    rows: Sequence[Row],
    places: tuple[int, int, int],
    number: Callable[[str], float | None],
) -> tuple[tuple[str, ...], list[Row]]:
    """Return the items, and a row of ratings per user, empty where a user did not rate an item."""
    user, item, rating = places
    items = {row[item]: None for _, row in rows}
    users: dict[str, dict[str, str]] = {}
    for where, row in rows:
        if not (row[user] and row[item]):
            raise InvalidInput(f"{path}, {where}: a rating must have a user and an item.")
        if number(row[rating]) is None:
            raise InvalidInput(
                f"{path}, {where}: a rating must be a number, got {shown(row[rating])}."
            )
        given = users.setdefault(row[user], {})
        if row[item] in given:
            raise InvalidInput(
                f"{path}, {where}: user {shown(row[user])} must rate item {shown(row[item])} once, "
                f"got a second rating."
            )
        given[row[item]] = row[rating]
    check_memory(
        _BYTES_PER_CELL * len(users) * len(items), f"the table of users by items of {path}"
    )
    return tuple(items), [
        (f"user {shown(name)}", [given.get(each, "") for each in items])
        for name, given in users.items()
    ]
