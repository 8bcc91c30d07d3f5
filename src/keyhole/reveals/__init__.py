"""What the learner gets to see: one file per reveal, one row each in REVEALS."""

from keyhole.contracts import Reveal
from keyhole.reveals.choice import Choice
from keyhole.reveals.full import Full
from keyhole.reveals.top import Top

REVEALS: dict[str, type[Reveal]] = {"full": Full, "top": Top, "choice": Choice}

__all__ = ["REVEALS", "Choice", "Full", "Top"]
