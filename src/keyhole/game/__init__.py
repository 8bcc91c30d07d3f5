"""Games: rankers meet worlds, are shown what a reveal shows, and are judged by a measure."""

from keyhole.game.comparators import best_fixed
from keyhole.game.log import Log, replay
from keyhole.game.play import play
from keyhole.game.stream import LetorStream
from keyhole.game.trace import Trace

__all__ = ["LetorStream", "Log", "Trace", "best_fixed", "play", "replay"]
