"""Can this feedback teach this measure at all?"""

from keyhole.monitoring.games import Game

__all__ = ["Game"]
