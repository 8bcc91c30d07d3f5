"""KEYSTONE: audited means, lifts by value, and a safe learner beside them."""

from typing import Any, ClassVar, Self, Unpack

import numpy as np

from keyhole.base.display import some_of
from keyhole.base.errors import MAX_ROUND, FloatArray, IntArray, InvalidInput, check_ranking
from keyhole.bounds import ftpl, keystone
from keyhole.contracts.lists import Impression
from keyhole.contracts.rows import ANY_CROWD, SOLID, Guarantee, Look, Question
from keyhole.rankers.fixed.audited import MOST_BUCKETS, Histograms, odd_items
from keyhole.rankers.fixed.base import Arrays, FixedListRanker, GameFacts, places_in
from keyhole.rankers.fixed.exploration_value import value_table
from keyhole.rankers.fixed.keystone_rounds import ROUNDS, KeystoneParams
from keyhole.rankers.fixed.safe import ALARMS, FLOOR_RATE, LEAD_SQUARES, VARIANCE, safe_params


def _bound(question: Question, rounds: float) -> float:
    constants = keystone.constants(
        question.measure, question.n_items, question.k, question.max_grade
    )
    return keystone.safety_bound(constants, rounds)


class Keystone(FixedListRanker):
    """KEYSTONE: audited means and lifts by value, with a learner beside them that is always safe.

    Parameters
    ----------
    n_items, game
        See :class:`~keyhole.rankers.fixed.base.GameFacts`; the horizon is of no concern. The
        measure must have gains per item: SumLoss, PairwiseLoss (two grades), InversionLoss, DCG or
        Precision.

    Notes
    -----
    Items are shown by their mean gain, of which a test for changes drops what no longer holds. An
    item below the first k is lifted there where what may be gained by knowing it better, over as
    long as the crowd has been as it is, is more than what showing it is expected to cost. A second
    learner, follow-the-perturbed-leader over importance-weighted estimates, is played as often as
    it has earned; with any crowd fixed in advance, regret is of order T^(2/3) whatever the first
    one does.

    Examples
    --------
    >>> ranker = Keystone(5)
    >>> impression = ranker.rank()
    >>> ranker.update(impression, 1)
    >>> ranker.best()[0] == impression.items[0]
    True
    """

    label = "Keystone"
    look = Look("#D55E00", SOLID, "o")
    guarantee = Guarantee(
        2 / 3,
        f"{ANY_CROWD}, without knowing the horizon; in practice between those that see all on "
        f"crowds that stay (on flips .0129; leader .0040, ftpl .0202), and ahead of leader, the "
        f"best of them, on crowds that change (study winners)",
        "a theorem of this project",
        _bound,
    )
    needs_gain_per_item: ClassVar[bool] = True
    by_item: ClassVar[tuple[str, ...] | None] = (*Histograms._fields, "waits", "estimates")
    kernel = ROUNDS

    def __init__(self, n_items: int, **game: Unpack[GameFacts]) -> None:
        super().__init__(n_items, **game)
        ftpl.constants(self.measure, self.n_items, self.max_grade)  # refuses other measures
        weights = self.measure.weights(self.n_items) * (-1.0 if self.measure.is_loss else 1.0)
        weights = weights - weights[-1]
        self.params = KeystoneParams(
            self.k,
            self.measure.exponential_gain,
            ftpl.largest_gain(self.measure, self.max_grade),
            np.ascontiguousarray(weights),
            value_table(),
            *safe_params(weights, self.k),
        )

    @property
    def depth(self) -> int:
        return self.k

    @property
    def n_alarms(self) -> int:
        return int(self.state.numbers[ALARMS])

    def beliefs(self) -> tuple[FloatArray, FloatArray] | None:
        """Return the audited means: what no longer holds has been dropped from them."""
        with self.lock:
            return self.state.mean.copy(), self.state.spread.copy()

    def chances(self, impression: Impression) -> FloatArray | None:
        return impression.note[: self.k]

    def least_chance(self, impression: Impression) -> float | None:
        if self.k == self.n_items:
            return 1.0
        return FLOOR_RATE * (impression.round + 1.0) ** (-1.0 / 3.0) / self.n_items

    def check_state(self, arrays: Arrays) -> None:
        for name in ("held", "order"):
            check_ranking(arrays[name], self.n_items, f"`{name}` of the state")
        if int(arrays["n_buckets"].max()) > MOST_BUCKETS:
            raise InvalidInput(
                f"`n_buckets` of the state must be at most {MOST_BUCKETS}, got "
                f"{arrays['n_buckets'].max()}."
            )
        highest = {"mean": 1.0, "spread": 1.0, "suspect": 1.0}
        for name in Histograms._fields:
            if not 0.0 <= arrays[name].min() <= arrays[name].max() <= highest.get(name, MAX_ROUND):
                raise InvalidInput(
                    f"`{name}` of the state must be between 0 and {highest.get(name, MAX_ROUND)}, "
                    f"got {arrays[name].min()} to {arrays[name].max()}."
                )
        for item in odd_items(arrays["counts"], arrays["n_buckets"])[:1]:
            counts = arrays["counts"][item, : arrays["n_buckets"][item]]
            raise InvalidInput(
                f"`counts` of the state must halve from bucket to bucket down to 1, with at most "
                f"three of a size, got {some_of(counts.tolist(), 5)} for item {item}."
            )
        sums = arrays["numbers"][[VARIANCE, LEAD_SQUARES, ALARMS]]
        if arrays["spread"].min() == 0.0 or sums.min() < 0.0:
            raise InvalidInput("`spread` and `numbers` of the state must be those of a Keystone.")

    def carried(
        self, arrays: Arrays, other: Self, where: IntArray, newcomers: float | None = None
    ) -> dict[str, Any]:
        """Let new items begin unseen, with the mean of the others' estimated totals."""
        moved = {name: array.copy() for name, array in arrays.items()}
        fresh = other.kernel.init(other.params, len(where), 0)._asdict()
        stay = where >= 0
        for name in self.by_item or ():
            moved[name] = fresh[name]
            moved[name][stay] = arrays[name][where[stay]]
        if stay.any():
            moved["estimates"][~stay] = arrays["estimates"][where[stay]].mean()
        there = {int(item): place for place, item in enumerate(where) if item >= 0}
        for name in ("held", "order"):
            known = [there[item] for item in arrays[name].tolist() if item in there]
            moved[name] = np.array([*known, *np.flatnonzero(~stay)], dtype=np.int64)
        moved["order"] = _by_mean(moved["order"], moved["mean"])
        return moved

    def _credit(self, earlier: Self, before: Arrays) -> None:
        """Take over what is known of the items that both lists have."""
        where = places_in(earlier.items, self.items)
        own, stay = self.state._asdict(), where >= 0
        own["estimates"][~stay] += own["mean"][~stay]  # as every update adds
        for name, array in earlier.carried(earlier.state._asdict(), self, where).items():
            if name in (self.by_item or ()):
                own[name][stay] = array[stay]
            else:
                own[name][...] = array
        own["order"][...] = _by_mean(own["order"], own["mean"])


def _by_mean(order: IntArray, mean: FloatArray) -> IntArray:
    """Return items by mean, ties as they were."""
    return order[np.argsort(-mean[order], kind="stable")]
