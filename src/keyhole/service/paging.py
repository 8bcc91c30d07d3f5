"""Rankers by name, a page at a time: there may be ten thousand of them."""

from collections.abc import Callable, Iterable
from heapq import nsmallest
from typing import NamedTuple


class Names(NamedTuple):
    """A page of names."""

    names: list[str]
    total: int
    """How many names there are on all pages."""
    next_after: str | None
    """The name after which the next page begins; None where this is the last one."""


def page_of(
    names: Iterable[str],
    sees: Callable[[str], bool],
    *,
    limit: int,
    after: str = "",
    search: str = "",
) -> Names:
    """Return the first names in order after one, of those that may be seen and hold a text.

    Examples
    --------
    >>> page_of(["shop", "Books", "bookmarks"], lambda _: True, limit=1, search="book")
    Names(names=['Books'], total=2, next_after='Books')
    """
    text = search.lower()
    found = [name for name in names if text in name.lower() and sees(name)]
    page = nsmallest(limit + 1, (name for name in found if name > after))
    return Names(page[:limit], len(found), page[limit - 1] if len(page) > limit else None)
