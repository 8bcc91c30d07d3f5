"""What the learner gets to see: one file per reveal, one row each in REVEALS."""

from collections.abc import Mapping
from typing import Any

from keyhole.contracts.registry import Table
from keyhole.contracts.reveals import Reveal
from keyhole.reveals.full import Full
from keyhole.reveals.top import Top

_PLAIN = {
    "full": "keyhole.reveals.full:Full",
    "top": "keyhole.reveals.top:Top",
    "choice": "keyhole.reveals.choice:Choice",
}
PLAIN: Table[Reveal] = Table("reveal", Reveal, _PLAIN)
"""The reveals whose feedback is true."""
REVEALS: Table[Reveal] = Table("reveal", Reveal, _PLAIN | {"noisy": "keyhole.reveals.noisy:Noisy"})


def reveal(name: str | Mapping[str, Any] | Reveal, /, **settings: Any) -> Reveal:
    """Return a reveal by its name or spec.

    Examples
    --------
    >>> reveal("top", k=3)
    Top(k=3)
    """
    return REVEALS.make(name, **settings)


def least_reveal(depth: int, n_items: int) -> Reveal:
    """Return the reveal that shows the first positions of a list, and no more than it must."""
    return Full() if depth >= n_items else Top(max(depth, 1))
