"""Every argument of a bound has a range: its end is taken, what lies beyond is refused."""

import math
from inspect import signature
from typing import Any

import pytest

from keyhole.base.errors import InvalidInput
from keyhole.bounds import choices, covering, ftpl, generalisation, gradients, perceptrons, scorers
from keyhole.bounds.gradients import ListSize
from keyhole.bounds.guarantees import Problem, guarantees, smallest

POSITIVE = (None, 0.0)  # nothing is the least number above 0
NOT_NEGATIVE = (0.0, -1e-9)
COUNT = (1, 0)
LIST = {"radius": POSITIVE, "norm": POSITIVE, "n_queries": COUNT}
LOSS = {"lipschitz": NOT_NEGATIVE, **LIST}
DOUBT = {"loss_bound": POSITIVE, "n_queries": COUNT, "confidence": (None, 0.0)}
GENERIC = {
    "lipschitz": 1.7, "smoothness": 0.9, "l2_lipschitz": 0.6, "radius": 1.3, "norm": 0.7,
    "n_queries": 211, "n_items": 5, "n_features": 6, "loss_bound": 2.3, "scale": 0.31,
    "confidence": 0.9, "optimal_loss": 0.2, "complexity": 0.4, "mean_loss": 0.3, "point": 0.1,
    "rest": 0.2, "loss": 0.45, "row_norm": 1.1, "margin": 0.21, "max_grade": 2.0, "measure": "NDCG",
    "comparator_loss": 3.0, "constant": 4.0,
}  # fmt: skip

_ALIKE = dict.fromkeys(
    ["lipschitz", "l2_lipschitz", "smoothness"], "constant of the loss|`lipschitz`"
)

RANGES = [
    (covering.l2_covering, LOSS | {"scale": POSITIVE, "n_items": COUNT}),
    (covering.l1_covering, LOSS | {"scale": POSITIVE, "n_items": COUNT, "n_features": COUNT}),
    (covering.l2_complexity, LOSS | {"loss_bound": POSITIVE, "n_items": COUNT}),
    (
        covering.l1_complexity,
        LOSS | {"loss_bound": POSITIVE, "n_items": COUNT, "n_features": COUNT},
    ),
    (covering.local_scale, LIST | {"smoothness": NOT_NEGATIVE, "n_items": COUNT}),
    (
        covering.local_complexity,
        {"loss": NOT_NEGATIVE, "scale": NOT_NEGATIVE, "loss_bound": POSITIVE},
    ),
    (covering.fixed_point, {"scale": NOT_NEGATIVE, "loss_bound": POSITIVE}),
    (generalisation.descent_bound, LOSS),
    (generalisation.best_rate, LIST),
    (generalisation.regularised_bound, LOSS),
    (generalisation.best_regularisation, LOSS),
    (
        generalisation.older_bound,
        LIST | DOUBT | {"l2_lipschitz": NOT_NEGATIVE, "n_items": COUNT},
    ),
    (generalisation.uniform_deviation, DOUBT | {"complexity": NOT_NEGATIVE}),
    (generalisation.erm_bound, DOUBT | {"complexity": NOT_NEGATIVE}),
    (generalisation.smooth_rate, LIST | {"optimal_loss": NOT_NEGATIVE}),
    (
        generalisation.smooth_descent_bound,
        LIST | {"smoothness": NOT_NEGATIVE, "optimal_loss": NOT_NEGATIVE},
    ),
    (generalisation.residual, DOUBT | {"n_queries": (3, 2)}),
    (
        generalisation.largest_loss,
        {"mean_loss": NOT_NEGATIVE, "point": NOT_NEGATIVE, "rest": NOT_NEGATIVE},
    ),
    (generalisation.fast_erm_bound, DOUBT | {"n_queries": (3, 2), "optimal_loss": NOT_NEGATIVE}),
    (perceptrons.n_counted, {"n_items": COUNT}),
    (perceptrons.largest_weight, {"n_items": COUNT, "max_grade": POSITIVE}),
    (perceptrons.classification_constant, {"row_norm": POSITIVE}),
    (perceptrons.slam_constant, {"n_items": COUNT, "row_norm": POSITIVE, "max_grade": POSITIVE}),
    (perceptrons.max_violation_constant, {"row_norm": POSITIVE}),
    (
        perceptrons.mistake_bound,
        {"comparator_loss": NOT_NEGATIVE, "norm": NOT_NEGATIVE, "constant": POSITIVE},
    ),
    (perceptrons.separable_bound, {"margin": POSITIVE}),
    (perceptrons.defeated_rounds, {"row_norm": POSITIVE, "margin": POSITIVE}),
    (ftpl.constants, {"n_items": COUNT, "max_grade": POSITIVE}),
    (scorers.equivariant_dimension, {"n_items": COUNT, "n_features": COUNT}),
]


@pytest.mark.parametrize(("bound", "ranges"), RANGES, ids=[bound.__name__ for bound, _ in RANGES])
def test_ends_of_the_ranges(bound, ranges):
    given = {name: GENERIC[name] for name in signature(bound).parameters if name in GENERIC}
    if bound is ftpl.constants:
        given["measure"] = "DCG"
    bound(**given)
    for name, (end, beyond) in ranges.items():
        bound(**given | {name: 1e-6 if end is None else end})
        with pytest.raises(InvalidInput, match=f"(`{name}`|{_ALIKE.get(name)}) must be"):
            bound(**given | {name: beyond})


def test_confidence_is_below_one():
    assert generalisation.residual(1.0, 10, 1.0 - 1e-9) > generalisation.residual(1.0, 10, 0.9)
    with pytest.raises(InvalidInput, match="`confidence` below 1"):
        generalisation.residual(1.0, 10, 1.0)


@pytest.mark.parametrize(
    ("name", "end", "beyond"),
    [
        ("n_queries", 3, 2),
        ("n_items", 1, 0),
        ("radius", 1e-9, 0.0),
        ("norm", 1e-9, 0.0),
        ("confidence", 1e-9, 0.0),
        ("confidence", 1.0 - 1e-9, 1.0),
        ("n_features", 1, 0),
        ("loss_bound", 1e-9, 0.0),
        ("optimal_loss", 0.0, -1e-9),
    ],
)
def test_ends_of_a_problem(name, end, beyond):
    usual = {"surrogate": "listnet", "n_queries": 100, "n_items": 5}
    assert getattr(Problem(**usual | {name: end}), name) == end
    with pytest.raises(InvalidInput, match=f"`{name}` must be"):
        Problem(**usual | {name: beyond})


def test_defaults_of_a_problem():
    usual = Problem("listnet", 100, 5)
    told = Problem("listnet", 100, 5, radius=1.0, norm=1.0, ball="l2", confidence=0.95, max_grade=1)
    assert guarantees(usual) == guarantees(told)
    assert usual.max_score == 1.0
    assert Problem("listnet", 100, 5, radius=3.0, norm=2.0).max_score == 6.0


def test_the_ball_decides_the_euclidean_norm():
    ball: dict[str, Any] = {"surrogate": "listnet", "n_queries": 100, "n_items": 5, "norm": 2.0}
    assert Problem(**ball).euclidean_norm == 2.0
    assert Problem(**ball, n_features=9).euclidean_norm == 2.0
    assert Problem(**ball, n_features=9, ball="l1").euclidean_norm == 6.0
    assert any(
        row.source == "Theorem 40" for row in guarantees(Problem(**ball, n_features=9, ball="l1"))
    )
    assert not any(row.source == "Theorem 40" for row in guarantees(Problem(**ball)))


def test_the_smallest_comes_first():
    found = guarantees(Problem("listnet", 100, 5, optimal_loss=0.1))
    values = [row.value for row in found if row.value is not None]
    assert values == sorted(values)
    assert smallest(found) == found[0]
    assert smallest(found[len(values) :]) is None
    assert smallest([]) is None


# ------------------------------------------------------------------ B4, B5, B8 at plain numbers


def test_perceptron_constants_at_plain_numbers():
    assert perceptrons.n_counted("NDCG@3", 5) == 3
    assert perceptrons.n_counted("NDCG@9", 5) == perceptrons.n_counted("AP", 5) == 5
    assert perceptrons.largest_weight("AP", 5, 2) == 1.0
    assert perceptrons.largest_weight("NDCG@3", 7, 2) == 3 * 2.0
    assert perceptrons.largest_weight("NDCG", 7) == 3.0
    assert perceptrons.slam_constant("NDCG@3", 7, row_norm=2.0, max_grade=2) == 4 * 3 * 4 * 6
    assert perceptrons.slam_constant("NDCG@3", 7, row_norm=2.0) == 4 * 3 * 4 * 2
    assert perceptrons.max_violation_constant(3.0) == 36.0
    assert perceptrons.classification_constant(3.0) == 9.0
    assert perceptrons.separable_bound(0.5, 3.0) == 12.0
    with pytest.raises(InvalidInput, match="must be NDCG, NDCG@n or AP, got DCG"):
        perceptrons.n_counted("DCG", 5)


def test_mistake_bounds_at_plain_numbers():
    assert perceptrons.mistake_bound(16.0, 3.0, 4.0) == 16 + 3 * 8 + 4 * 9
    assert perceptrons.mistake_bound(16.0, 3.0, 4.0, 0.25) == (16 + 9 / 0.5) / 0.5
    assert perceptrons.mistake_bound(16.0, 3.0, 4.0, 0.5) == math.inf
    assert perceptrons.mistake_bound(16.0, 3.0, 4.0, 0.49) < math.inf
    with pytest.raises(InvalidInput, match="`rate` must be a number above 0"):
        perceptrons.mistake_bound(16.0, 3.0, 4.0, 0.0)
    assert perceptrons.bounds_itself(2.0, 1.0, 4.0)
    assert not perceptrons.bounds_itself(2.0 + 1e-9, 1.0, 4.0)


def test_unavoidable_losses_at_plain_numbers():
    assert perceptrons.least_loss("AP") == 0.5
    assert perceptrons.least_loss("NDCG@1") == perceptrons.least_loss("AP@1") == 1.0
    assert perceptrons.least_loss("NDCG@2") == pytest.approx(1 - math.log(2) / math.log(3))
    assert perceptrons.defeated_rounds(0.6, 0.2) == 9  # a little less in binary
    assert perceptrons.defeated_rounds(1.0, 0.3) == 11
    assert perceptrons.defeated_rounds(1.0, 0.3, tight=True) == 44
    assert perceptrons.unavoidable_loss("AP", row_norm=1.0, margin=0.3) == 5.5
    assert perceptrons.unavoidable_loss("AP", row_norm=1.0, margin=0.3, tight=True) == 22.0


SIZE = ListSize(n_items=4, row_norm=2.0, radius=1.5, max_grade=2.0)


@pytest.mark.parametrize(
    ("kind", "constant", "worst"),
    [
        ("squared", 4 * (4 * 2 * 5.0) ** 2, 4 * 25.0),
        ("ranksvm", (2 * 4 * 3.0) ** 2, 6 * 7.0),
        ("kl", (8 * math.exp(3.0)) ** 2, 4 * (math.exp(2.0) * 4 + math.exp(-3.0))),
    ],
)
def test_gradient_constants_at_plain_numbers(kind, constant, worst):
    assert SIZE.max_score == 3.0
    assert gradients.estimate_constant(kind, SIZE) == pytest.approx(constant, rel=1e-12)
    assert gradients.worst_loss(kind, SIZE) == pytest.approx(worst, rel=1e-12)
    for name in SIZE._fields:
        gradients.worst_loss(kind, SIZE._replace(**{name: 1}))
        with pytest.raises(InvalidInput, match=f"`{name}` must be"):
            gradients.worst_loss(kind, SIZE._replace(**{name: 0}))


def test_scores_of_exploration_are_in_the_worst_loss():
    small = SIZE._replace(radius=0.1)  # scores of at most 0.2, but exploration scores up to 1
    assert gradients.worst_loss("squared", small) == 4 * 9.0
    grade = SIZE._replace(max_grade=5.0)
    expected = (8 * math.exp(5.0)) ** 2
    assert gradients.estimate_constant("kl", grade) == pytest.approx(expected, rel=1e-12)


def test_the_regret_of_given_settings():
    bound = gradients.regret_bound(16.0, 5.0, 3.0, 100.0, rate=0.5, mix=0.25)
    assert bound == 0.25 * 5 * 100 + 9 / 1.0 + 0.5 * 16 * 100 / 0.5
    for name in ("rate", "mix"):
        with pytest.raises(InvalidInput, match=f"`{name}` must be a number above 0"):
            gradients.regret_bound(1.0, 1.0, 1.0, 1.0, **{"rate": 1.0, "mix": 1.0, name: 0.0})


# ------------------------------------------------------------------ B7, B9, B12 at plain numbers


def test_choices_at_plain_numbers():
    assert choices.blocked_bound(5, 2, 3, 100.0, 4.0, 6.0) == pytest.approx(
        6 * 3 * 4 + 100 * 5 * math.sqrt(6 * math.log(2) / 4)
    )
    assert choices.blocked_bound(5, 5, 1, 0.0, 4.0, 6.0) == 4.0
    assert choices.best_n_blocks(5, 5, 1, 100.0, 6.0) == pytest.approx(
        (5 * math.sqrt(6 * math.log(2)) * 100 / 2) ** (2 / 3)
    )
    assert choices.choice_bound(5, 100.0, 6.0, 0.5) == pytest.approx(
        25 * math.log(2) / 1.0 + 0.5 * 600 / 2
    )


def test_the_largest_gain_is_of_grade_one_unless_told():
    assert ftpl.largest_gain("DCG") == ftpl.largest_gain("SumLoss") == 1.0
    assert (ftpl.largest_gain("DCG", 3), ftpl.largest_gain("SumLoss", 3)) == (7.0, 3.0)


def test_lists_of_scorers_may_not_be_huge():
    assert scorers.equivariant_dimension(5, 2) == 4
    with pytest.raises(InvalidInput, match="must be at most 5000, got 5002"):
        scorers.equivariant_dimension(1, 5002)


def test_smooth_losses_bound_themselves_to_the_last_digit():
    limit = 6.0 * 0.5 * 3.0 * 0.25  # 6 H (f + f') |s - s'|^2, with losses 2 and 1
    gap = [0.0, math.sqrt(1.0 / 9.0)]
    assert limit > 1.0
    assert scorers.bounds_itself(0.5, (2.0, 1.0), [0.0, 0.0], gap)
    assert not scorers.bounds_itself(0.5, (2.0, 1.0), [0.0, 0.0], [0.1, gap[1] * (1 - 1e-9)])
    assert scorers.bounds_itself(0.5, (0.0, 0.0), [1.0], [1.0])
