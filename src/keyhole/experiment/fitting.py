"""A ranker for the lists that it is to rank: what of them it can be told, and what it learns."""

from collections.abc import Mapping
from typing import Any

from keyhole.base.errors import InvalidInput
from keyhole.contracts.measures import Measure
from keyhole.contracts.rankers import Ranker
from keyhole.contracts.registry import all_settings
from keyhole.rankers.fixed.base import FixedListRanker
from keyhole.rankers.lists.base import ContextualRanker

_NEAR = {"rtopk": "contextual-rtopk", "random": "random-lists"}


def check_kind(name: str, cls: type[Ranker], *, queries: bool) -> Any:
    """Return the class of a ranker, or raise if it is not one of this kind of list."""
    if issubclass(cls, ContextualRanker if queries else FixedListRanker):
        return cls
    if not queries:
        raise InvalidInput(
            f"ranker must be one of a fixed list, got {name!r}, which ranks query-document lists, "
            f"as in keyhole learn."
        )
    hint = f" Did you mean {_NEAR[name]!r}?" if name in _NEAR else ""
    raise InvalidInput(
        f"ranker must be one of query-document lists, which are lists that come with each request, "
        f"got {name!r}, which ranks one fixed list.{hint}"
    )


def can_be_tuned_for(cls: type[Ranker], measure: Measure, max_grade: float) -> bool:
    """Return whether a ranker can be tuned for a measure; where it cannot, DCG is the nearest."""
    return not cls.needs_gain_per_item or measure.is_gain_per_item(max_grade)


def settings_for(
    cls: type[Ranker], told: Mapping[str, Any], options: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the settings of a ranker: what it takes of what is known of the lists, and options.

    Options come first: whoever gives one wants it.
    """
    known = all_settings(cls)
    return {**{name: value for name, value in told.items() if name in known}, **options}
