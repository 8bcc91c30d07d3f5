"""Lists judged on the log of a ranker: unbiased, covered as stated, and promoted only if better."""

import numpy as np
import pytest

from keyhole.base.errors import InvalidInput
from keyhole.offline.items import seen_items
from keyhole.service.commands import EvaluationRequest
from keyhole.service.evaluations import evaluate
from keyhole.service.events import body_of
from tests.service.desks import ANIMALS, answer, configure, engine_of, rank

_LIKED = {"ant": 0.8, "bee": 0.6, "cat": 0.3, "dog": 0.1}
_WEIGHTS = 1.0 / np.log2(np.arange(2, 6))
_WORST = ANIMALS[::-1]


def worth(order):
    return float(sum(w * _LIKED[name] for w, name in zip(_WEIGHTS, order, strict=True)))


def played(n_rounds, seed, lost=0.2, **asked):
    """Return the engine of a ranker that a crowd has played with; some answers are lost."""
    engine = engine_of(seed=seed, **asked)
    rng = np.random.default_rng(seed)
    for _ in range(n_rounds):
        shown = rank(engine)
        liked = [float(rng.random() < _LIKED[name]) for name in shown.ranking]
        if rng.random() >= lost:
            answer(engine, shown.event_id, liked[: shown.k])
    return engine


def judged(engine, **asked):
    live = engine.ranker("animals")
    best = tuple(live.learner.best())
    return evaluate(engine.store, "animals", live.config, best, EvaluationRequest(**asked))


_LOGS = 100
_FEWEST = 89
"""Of 100 intervals of 95 % each, fewer cover with a chance below one in a hundred."""


@pytest.mark.parametrize(
    "asked",
    [{"ranker": "rtopk", "settings": {"horizon": 100}}, {"ranker": "random", "k": 2}, {}],
    ids=["rtopk", "random", "keystone"],
)
def test_a_hundred_logs_cover_the_true_value_as_stated(asked):
    values, covered, nearly, wrong = [], 0, 0, 0
    for seed in range(_LOGS):
        engine = played(100, seed, **asked)
        said = judged(engine, policy=_WORST)["policy"]["importance-weighted"]
        values.append(said["value"])
        covered += said["interval"][0] <= worth(_WORST) <= said["interval"][1]
        nearly += (
            said["approximate_interval"][0] <= worth(_WORST) <= said["approximate_interval"][1]
        )
        wrong += abs(with_conditional_chances(engine) - worth(_WORST)) < 0.2
    error = np.std(values) / np.sqrt(_LOGS)
    assert abs(np.mean(values) - worth(_WORST)) < 3.5 * error
    assert covered >= 95  # of bets, which are conservative; test_coverage.py has both sides
    if asked:  # the default ranker shows what is bad too seldom for a normal approximation
        assert nearly >= _FEWEST
    if "settings" in asked:  # where chances depend on the past, that past must not be divided by
        assert wrong < _LOGS / 4


def test_predictions_of_the_same_block_do_not_leak_into_values():
    """RTop-kF shows each item once in a block: one that was seen in it cannot be seen again.

    Everybody likes everything, so what is seen predicts the rest without an error, and no value
    differs from the truth but by when items were explored. Predictions from all rounds before are
    off by half a list in the first block, a sixth of the value of three blocks.
    """
    values = []
    for seed in range(150):
        engine = engine_of(seed=seed, ranker="rtopk", settings={"horizon": 84})
        for _ in range(21):
            shown = rank(engine)
            answer(engine, shown.event_id, [1.0])
        values.append(judged(engine, policy=_WORST)["policy"]["doubly-robust"]["value"])
    error = np.std(values) / np.sqrt(len(values))
    off = np.mean(values) - _WEIGHTS.sum()
    assert abs(off) < 3.5 * error


def with_conditional_chances(engine):
    """Return what importance weighting would say that divides by what is logged as conditional."""
    total, n = 0.0, 0
    answers = {e.key: body_of(e) for e in engine.store.events("animals") if e.kind == "feedback"}
    for event in engine.store.events("animals"):
        if event.kind == "rank" and event.key in answers:
            ranked, n = body_of(event), n + 1
            if ranked.p_conditional is not None:
                name = ANIMALS[ranked.ranking[0]]
                weight = _WEIGHTS[_WORST.index(name)]
                total += weight * answers[event.key].relevance[0] / ranked.p_conditional
    return total / n


def test_better_lists_are_promoted_and_worse_ones_are_not():
    engine = played(1_500, 0, ranker="random")
    better = judged(engine, policy=ANIMALS)
    assert better["verdict"] == "promote"
    uniform = _WEIGHTS.mean() * sum(_LIKED.values())
    assert 0.0 < better["lower_bound"] < worth(ANIMALS) - uniform
    assert judged(engine, policy=_WORST)["verdict"] == "keep"
    same = judged(engine, policy="uniform", baseline="uniform")
    assert same["verdict"] == "keep"
    assert same["difference"]["doubly-robust"]["value"] == 0.0
    assert judged(engine, policy=ANIMALS, baseline=_WORST)["verdict"] == "promote"
    assert judged(engine, policy=ANIMALS, bound="student-t")["lower_bound"] > better["lower_bound"]


def test_losses_are_judged_as_well():
    engine = played(800, 1, ranker="random", measure="SumLoss")
    assert judged(engine, policy=ANIMALS)["verdict"] == "promote"
    value = judged(engine, policy=ANIMALS)["policy"]["doubly-robust"]["value"]
    true = -sum((place + 1) * _LIKED[name] for place, name in enumerate(ANIMALS))
    assert abs(value - true) < 0.3


def test_late_feedback_counts_and_rounds_of_another_list_do_not():
    from keyhole.service.commands import Expire

    engine = played(30, 0)
    n_rows = judged(engine)["rows"]
    shown = rank(engine)
    engine.execute(Expire("animals", (engine.ranker("animals").seq_of[shown.event_id],)))
    answer(engine, shown.event_id, [1.0])
    assert judged(engine)["rows"] == n_rows + 1
    assert judged(engine, after=engine.ranker("animals").seq - 40)["rows"] < n_rows
    configure(engine, items=[*ANIMALS, "eel"], seed=0)
    with pytest.raises(InvalidInput, match="at least 10 answered rounds"):
        judged(engine)


def test_what_cannot_be_judged_says_why():
    with pytest.raises(InvalidInput, match="of one that does not"):
        judged(played(30, 0, ranker="thompson"))
    with pytest.raises(InvalidInput, match="every item had a chance"):
        judged(played(30, 0, ranker="fixed"))
    with pytest.raises(InvalidInput, match="name each of the 4 items"):
        judged(played(30, 0), policy=["ant", "bee"])
    engine = engine_of()
    configure(engine, "queries", n_features=2)
    live = engine.ranker("queries")
    with pytest.raises(InvalidInput, match="of requests"):
        evaluate(engine.store, "queries", live.config, (), EvaluationRequest())


def test_predictions_of_the_past_leave_no_bias():
    rng = np.random.default_rng(0)
    gains = (rng.random((20_000, 1)) < 0.3) * 1.0
    seen = rng.random((20_000, 1)) < 0.5
    chances = np.where(seen, 0.5, np.nan)
    ones = np.ones_like(gains)
    plain = seen_items(gains, chances, ones)
    robust = seen_items(gains, chances, ones, predicted=0.9 * ones, base=np.full(20_000, 0.9))
    right = seen_items(gains, chances, ones, predicted=0.3 * ones, base=np.full(20_000, 0.3))
    for estimate in (plain, robust, right):
        assert abs(estimate.value - 0.3) < 4.0 * estimate.error
    assert right.error < plain.error < robust.error
    with pytest.raises(InvalidInput, match="above 0 and at most 1"):
        seen_items(gains, 0.0 * ones, ones)
    with pytest.raises(InvalidInput, match="go together"):
        seen_items(gains, chances, ones, predicted=ones)
    with pytest.raises(InvalidInput, match="of one shape"):
        seen_items(gains, chances, ones[:5])
