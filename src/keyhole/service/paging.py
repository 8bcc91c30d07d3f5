"""Pages of ranker names: there may be ten thousand rankers."""

from collections.abc import Callable, Iterable
from heapq import nsmallest
from typing import NamedTuple


class Names(NamedTuple):
    """A page of names."""

    names: list[str]
    total: int
    """The number of names on all pages."""
    next_after: str | None
    """The name after which the next page starts; None on the last page."""


def page_of(
    names: Iterable[str],
    sees: Callable[[str], bool],
    *,
    limit: int,
    after: str = "",
    search: str = "",
) -> Names:
    """Return the next page of sorted names that may be seen and contain the search text.

    Examples
    --------
    >>> page_of(["shop", "Books", "bookmarks"], lambda _: True, limit=1, search="book")
    Names(names=['Books'], total=2, next_after='Books')
    """
    text = search.lower()
    found = [name for name in names if text in name.lower() and sees(name)]
    page = nsmallest(limit + 1, (name for name in found if name > after))
    return Names(page[:limit], len(found), page[limit - 1] if len(page) > limit else None)
