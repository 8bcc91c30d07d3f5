"""What the checks of a ranker's life must refuse: one broken promise each, and none is accepted."""

from typing import Any

import numpy as np
import pytest

from keyhole import FTPL, Flips
from keyhole.base.errors import InvalidInput
from keyhole.checks import living
from keyhole.contracts.lists import Feedback
from keyhole.contracts.repeats import Rounds
from keyhole.rankers.lists.gradient import Descent
from keyhole.worlds.queries import Queries

pytestmark = pytest.mark.interpreted

WORLD = Flips(4, n_relevant=2)
ROUNDS = 9


def changed(**methods):
    """Return a ranker, whose class has no name of its own, with some methods changed."""
    return type("Changed", (FTPL,), {"__module__": "__main__", **methods})(4, max_grade=1)


@pytest.mark.parametrize("check", living.LIVING_CHECKS)
def test_what_keeps_its_promises_passes(check):
    check(changed(), WORLD, ROUNDS)
    check(FTPL(4, max_grade=1), WORLD, ROUNDS)


def broken(check, sentence, **methods):
    with pytest.raises(AssertionError, match=sentence):
        check(changed(**methods), WORLD, ROUNDS)


def test_specs():
    def with_more(self, **settings):
        """Return one that has something of which the spec does not tell."""
        again = FTPL.fresh(self, **settings)
        again.number = 1
        return again

    def by_number(self, query=None, *, round=None):
        shown = FTPL.rank(self, query, round=round)
        shown.ranking[:] = np.roll(shown.ranking, getattr(self, "number", 0))
        return shown

    check = living.check_spec_round_trip
    broken(check, "must make a ranker that plays as it does", fresh=with_more, rank=by_number)
    told = property(lambda self: {**FTPL.spec.fget(self), "told": id(self)})  # type: ignore[attr-defined]
    broken(check, "The spec of Changed must make one like it", spec=told)


def test_saved_rankers():
    def forgotten(self, query=None, *, round=None):
        shown = FTPL.rank(self, query, round=round)
        shown.ranking[:] = np.roll(shown.ranking, getattr(self, "n_updates", 0))
        return shown

    def counting(self, impression, feedback):
        FTPL.update(self, impression, feedback)
        self.n_updates = getattr(self, "n_updates", 0) + 1

    def early(self, arrays):
        FTPL.load_state_dict(self, arrays)
        self.next_round += 1
        return self

    def partly(self):
        arrays = FTPL.state_dict(self)
        return {**arrays, "scores": np.floor(arrays["scores"] / 2)}

    check = living.check_saved_goes_on
    for methods in (
        {"rank": forgotten, "update": counting}, {"load_state_dict": early},
        {"state_dict": partly},
    ):  # fmt: skip
        broken(check, "A loaded Changed must go on where it was saved", **methods)
    told = property(lambda self: {**FTPL.spec.fget(self), "told": id(self)})  # type: ignore[attr-defined]
    broken(check, "A loaded Changed must have the spec it had", spec=told)


def carried(change):
    """Return how a list is changed, and what else is changed with it."""

    def with_items(self, items):
        again = FTPL.with_items(self, items)
        change(self, again)
        return again

    return with_items


def test_lists_that_have_not_changed():
    def forget(_, again):
        again.state.scores[:] = 0.0

    def other_round(before, again):
        again.next_round = before.next_round + 1

    check = living.check_same_items_change_nothing
    for change in (forget, other_round):
        broken(check, "must go on as it was where the items are the same",
               with_items=carried(change))  # fmt: skip
    broken(check, "The same items must leave Changed as it is", with_items=carried(rename))


def rename(_, again):
    again.settings["rate"] = 77.0


def test_names():
    def by_name(_, again):
        again.state.scores[0] += len(str(again.items[0])) + 1.0

    def first_by_name(self, query=None):
        return sorted(self.items, key=lambda name: (str(name)[:5] == "other", str(name)))[
            :: 1 if str(self.items[0]).startswith("item") else -1
        ]

    check = living.check_names_do_not_matter
    broken(check, "must commute with changing its list", with_items=carried(by_name))
    broken(check, "must not depend on what items are called", best=first_by_name)


def test_visitors():
    def raise_others(before, again):
        again.state.scores[:1] += 1.0 * (len(again.items) > len(before.items))

    def forget_round(before, again):
        if len(again.items) < len(before.items):
            again.next_round = 0

    def never(self, items):
        if len(items) > self.n_items:
            raise InvalidInput("There is no room for more.")
        return FTPL.with_items(self, items)

    def too_long(self, items):
        if len(items) > self.n_items:
            raise InvalidInput("`n_items` must be at most 4.")
        return FTPL.with_items(self, items)

    check = living.check_visitors_leave_no_trace
    broken(check, "what it knew of the others", with_items=carried(raise_others))
    broken(check, "must leave the ranking of Changed as it was", with_items=carried(forget_round))
    broken(check, "must take one item more: There is no room", with_items=never)
    check(changed(with_items=too_long), WORLD, ROUNDS)


def test_late_answers():
    def drop(self, impression, feedback):
        if impression.query.items in (None, self.items):
            FTPL.update(self, impression, feedback)

    def doubled(self, impression, feedback):
        FTPL.update(self, impression, feedback)
        if impression.query.items not in (None, self.items):
            self.rounds = Rounds()  # or the second would be known for one
            FTPL.update(self, impression, feedback)

    def turned(self, impression, feedback):
        if impression.query.items not in (None, self.items):
            feedback = Feedback(feedback.values[::-1].copy())
        FTPL.update(self, impression, feedback)

    check = living.check_late_answers_find_their_items
    for update in (drop, doubled, turned):
        broken(check, "must be credited to the items that Changed had shown", update=update)


def test_rankers_of_lists_that_change_take_no_items():
    features = np.random.default_rng(0).random((40, 2))
    lists = Queries(features, np.arange(40) % 2, np.arange(0, 41, 4))

    class Taking(Descent):
        def with_items(self, items: Any):
            return items and self

    checks = set(living.LIVING_CHECKS) - set(living.KEEPING_CHECKS)
    for check in checks:
        check(Descent(2, 4), lists, ROUNDS)
        with pytest.raises(AssertionError, match="Taking must refuse items: its lists change"):
            check(Taking(2, 4), lists, ROUNDS)
