"""Contract checks: what every ranker, measure, reveal, world, surrogate and policy must do.

They ship with the package and run over every row of every table in our own tests; run them
over a ranker of your own in the same way::

    from keyhole.checks import check_ranker
    check_ranker(MyRanker(4, horizon=300))

A check raises AssertionError with a sentence that says what broke.
"""

from keyhole.checks.attacks import ATTACKS
from keyhole.checks.living import LIVING_CHECKS
from keyhole.checks.rankers import RANKER_CHECKS
from keyhole.contracts.rankers import Ranker
from keyhole.contracts.worlds import World
from keyhole.worlds.flips import Flips


def check_ranker(ranker: Ranker, world: World | None = None, rounds: int = 120) -> None:
    """Run every check over a ranker, by default on a crowd with flips."""
    if world is None:
        world = Flips(ranker.n_items, n_relevant=max(1, ranker.n_items // 3))
    for check in (*RANKER_CHECKS, *LIVING_CHECKS, *ATTACKS):
        check(ranker, world, rounds)
