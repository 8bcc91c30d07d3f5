"""How much worse than the best weights learnt ones are on new lists, described by names."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from keyhole.base.errors import FloatArray, IntArray, InvalidInput, check_choice, check_integer
from keyhole.batch.averaging import average_weights
from keyhole.batch.ranker import BatchRanker
from keyhole.batch.risk import Risk
from keyhole.batch.solvers import Ball, minimise
from keyhole.bounds import generalisation as bounds
from keyhole.lab.inputs import Description, check_fields
from keyhole.lab.results import Axes, Curve
from keyhole.rankers.lists.gradient import Descent
from keyhole.surrogates import surrogate
from keyhole.surrogates.base import Surrogate
from keyhole.worlds.queries import Queries

VARIED = {
    "items": "documents of a list",
    "queries": "lists to learn from",
    "features": "features of a document",
}
"""What may vary, and what an axis calls it."""
_TOLERANCE = 1e-6
_SHIFT = 6.0
"""Standard deviations that real grades are moved by, as none may be below 0."""


@dataclass(frozen=True)
class RiskSpec(Description):
    """A learner on lists drawn at random, whose excess risk is measured as one number varies.

    ``vary`` is ``items``, ``queries`` or ``features``, and ``points`` are its values in place of
    the field of that name. Documents are uniform on the unit sphere (``documents = "sphere"``) or
    have features uniform in [-1, 1] (``cube``). The first ``informative`` features (all by default)
    have true weights, of Euclidean norm ``strength``; weights are learnt in the smallest ball that
    holds these. Scores have normal ``noise``; ``grades`` are ``real`` (the scores, moved above 0)
    or ``binary`` (whether they are above 0). ``learner``: ``erm``, ``regularised`` (A14),
    ``online`` (averaged descent at the rate of Theorem 35) or ``online-smooth`` (of Eq. 4.7, told
    the loss of the best weights).
    """

    vary: str = "items"
    points: tuple[int, ...] = ()
    surrogate: str = "listnet"
    learner: str = "erm"
    ball: str = "l2"
    queries: int = 100
    items: int = 5
    features: int = 10
    informative: int | None = None
    documents: str = "sphere"
    grades: str = "binary"
    noise: float = 0.5
    strength: float = 5.0
    test_queries: int = 2000
    runs: int = 10
    seed: int = 0
    surrogate_options: dict[str, Any] = field(default_factory=dict)

    @property
    def measure(self) -> str:
        """What is measured, for the label of an axis."""
        return "surrogate loss"

    @property
    def ranker(self) -> str:
        """No ranker of the table: colours follow the labels."""
        return ""

    @property
    def work(self) -> int:
        """Number of rankers to learn."""
        return len(self.points) * self.runs


def reader(vary: str) -> Callable[[dict[str, Any], str], RiskSpec]:
    """Return what makes a description, in which one number varies, of a mapping."""

    def read(fields: dict[str, Any], where: str) -> RiskSpec:
        known = [name for name in RiskSpec.__dataclass_fields__ if name != "vary"]
        check_fields(fields, where, known)
        return RiskSpec(vary=vary, **{**fields, "points": tuple(fields.get("points", ()))})

    return read


@dataclass(frozen=True)
class BuiltRisk:
    """A description that has been checked, and its loss."""

    spec: RiskSpec
    loss: Surrogate

    @property
    def key(self) -> dict[str, Any]:
        """All that the results depend on, as plain data."""
        return self.spec.as_dict()


def build_risk(spec: RiskSpec) -> BuiltRisk:
    """Return the objects that a description names, or raise with a sentence."""
    known = {
        "learner": LEARNERS,
        "ball": ("l1", "l2"),
        "documents": ("sphere", "cube"),
        "grades": ("real", "binary"),
    }
    for name, choices in known.items():
        check_choice(getattr(spec, name), name, choices)
    for name in ("queries", "items", "features", "test_queries", "runs"):
        check_integer(getattr(spec, name), name, at_least=1)
    rising = bool(spec.points) and all(np.diff(spec.points) > 0) and spec.points[0] >= 1
    if not rising:
        raise InvalidInput(f"points must be rising integers of at least 1, got {spec.points}.")
    if spec.learner != "erm" and spec.ball != "l2":
        raise InvalidInput(f"ball of the learner {spec.learner} must be l2, got {spec.ball}.")
    return BuiltRisk(spec, surrogate(spec.surrogate, **spec.surrogate_options))


class Setting(NamedTuple):
    """The numbers of one point, and the true weights."""

    queries: int
    items: int
    truth: FloatArray
    n_informative: int


def setting_at(spec: RiskSpec, point: int) -> Setting:
    """Return the setting of a point."""
    numbers = {**{name: getattr(spec, name) for name in VARIED}, spec.vary: int(point)}
    n_features = numbers["features"]
    n_informative = min(spec.informative or n_features, n_features)
    truth = np.zeros(n_features)
    direction = np.random.default_rng([spec.seed, 0]).normal(size=n_informative)
    truth[:n_informative] = spec.strength * direction / np.linalg.norm(direction)
    return Setting(numbers["queries"], numbers["items"], truth, n_informative)


def draw_lists(
    spec: RiskSpec, setting: Setting, n_queries: int, seed: list[int]
) -> tuple[FloatArray, FloatArray, IntArray]:
    """Return features, grades and starts of lists that are drawn independently."""
    rng = np.random.default_rng(seed)
    n_documents, n_features = n_queries * setting.items, len(setting.truth)
    if spec.documents == "cube":
        features = rng.uniform(-1.0, 1.0, (n_documents, n_features))
    else:
        features = rng.normal(size=(n_documents, n_features))
        features /= np.linalg.norm(features, axis=1, keepdims=True)
    scores = features @ setting.truth + spec.noise * rng.normal(size=n_documents)
    if spec.grades == "binary":
        grades = (scores > 0.0).astype(float)
    else:
        highest = np.abs(setting.truth).sum() if spec.documents == "cube" else spec.strength
        grades = np.maximum(scores + highest + _SHIFT * spec.noise, 0.0)
    return features, grades, np.arange(0, n_documents + 1, setting.items)


class Best(NamedTuple):
    """The least risk on lists held out, and what of it no scores could avoid."""

    risk: Risk
    value: float
    unavoidable: float


def best_of(built: BuiltRisk, setting: Setting) -> Best:
    """Return the least risk over weights of the informative features.

    These are enough: the others have a symmetric law that nothing depends on.
    """
    spec = built.spec
    features, grades, starts = draw_lists(spec, setting, spec.test_queries, [spec.seed, 1])
    told = np.ascontiguousarray(features[:, : setting.n_informative])
    least = least_risk(Risk(built.loss, told, grades, starts), _ball(spec, setting))
    unavoidable = 0.0
    if spec.surrogate == "listnet":  # the entropy of its targets
        by_list = grades.reshape(-1, setting.items)
        chances = np.exp(by_list - by_list.max(axis=1, keepdims=True))
        chances /= chances.sum(axis=1, keepdims=True)
        unavoidable = -float((chances * np.log(chances)).sum(axis=1).mean())
    return Best(Risk(built.loss, features, grades, starts), least, unavoidable)


def _ball(spec: RiskSpec, setting: Setting) -> Ball:
    return Ball(spec.ball, float(np.linalg.norm(setting.truth, 1 if spec.ball == "l1" else 2)))


def least_risk(risk: Risk, ball: Ball) -> float:
    """Return the least mean loss over a ball."""
    return _fitted(risk, ball, 0.0)[0]


def _fitted(risk: Risk, ball: Ball, regularisation: float | str) -> tuple[float, FloatArray]:
    loss = risk.surrogate
    if loss.is_convex and not isinstance(regularisation, str):
        smooth = loss.smoothness(risk.n_items, max_grade=risk.max_grade) is not None
        found = minimise(
            risk, risk.n_features, ball=ball, regularisation=regularisation, smooth=smooth,
            tolerance=_TOLERANCE,
        )  # fmt: skip
        return found.value, found.weights
    ranker = BatchRanker(
        loss, norm=ball.norm, radius=ball.radius, regularisation=regularisation,
        tolerance=_TOLERANCE,
    )  # fmt: skip
    groups = np.repeat(np.arange(risk.n_queries), np.diff(risk.starts))
    ranker.fit(risk.features, risk.relevance, groups)
    return ranker.objective_, ranker.coef_


def learn_once(built: BuiltRisk, setting: Setting, best: Best, run: int) -> float:
    """Return the excess risk of what is learnt from one set of lists."""
    spec, ball = built.spec, _ball(built.spec, setting)
    lists = draw_lists(spec, setting, setting.queries, [spec.seed, 2 + run])
    weights = LEARNERS[spec.learner](built, best, Risk(built.loss, *lists), ball, run)
    return best.risk(weights)[0] - best.value


def _minimised(
    regularisation: float | str, built: BuiltRisk, best: Best, risk: Risk, ball: Ball, run: int
) -> FloatArray:
    return _fitted(risk, ball, regularisation)[1]


def _averaged(
    rate_of: Callable[..., float], built: BuiltRisk, best: Best, risk: Risk, ball: Ball, run: int
) -> FloatArray:
    """Return the mean of the weights that descent passes through."""
    norm = 1.0 if built.spec.documents == "sphere" else math.sqrt(risk.n_features)
    limits = {"max_grade": risk.max_grade, "max_score": ball.radius * norm}
    descent = Descent(
        risk.n_features, risk.n_items, surrogate=built.loss, step="fixed", radius=ball.radius,
        rate=rate_of(best, risk, limits, ball.radius, norm), centred=False,
    )  # fmt: skip
    world = Queries(risk.features, risk.relevance, risk.starts)
    return average_weights(descent, world, rounds=risk.n_queries, seed=run)


def _rate(best: Best, risk: Risk, limits: Any, radius: float, norm: float) -> float:
    steepness = risk.surrogate.lipschitz(risk.n_items, **limits)
    return bounds.best_rate(steepness or 1.0, radius, norm, risk.n_queries)


def _smooth_rate(best: Best, risk: Risk, limits: Any, radius: float, norm: float) -> float:
    curvature = risk.surrogate.smoothness(risk.n_items, **limits)
    if curvature is None:
        raise InvalidInput(f"A smooth loss must be given to online-smooth, got {risk.surrogate}.")
    avoidable = max(best.value - best.unavoidable, 0.0)
    return bounds.smooth_rate(curvature, radius, norm, risk.n_queries, avoidable)


LEARNERS: dict[str, Callable[[BuiltRisk, Best, Risk, Ball, int], FloatArray]] = {
    "erm": partial(_minimised, 0.0),
    "regularised": partial(_minimised, "theory"),
    "online": partial(_averaged, _rate),
    "online-smooth": partial(_averaged, _smooth_rate),
}


def play_risk(label: str, built: BuiltRisk, report: Callable[[int], None] | None = None) -> Curve:
    """Return the excess risk at every point, one run per row."""
    spec = built.spec
    values = np.empty((spec.runs, len(spec.points)))
    for column, point in enumerate(spec.points):
        setting = setting_at(spec, point)
        best = best_of(built, setting)
        for run in range(spec.runs):
            values[run, column] = learn_once(built, setting, best, run)
            if report is not None:
                report(1)
    return Curve(label, np.array(spec.points), values)


def risk_axes(vary: str) -> Callable[[str], Axes]:
    """Return the axes of excess risks against what varies."""

    def axes(measure: str) -> Axes:
        return Axes(VARIED[vary], "excess risk", vary, "excess_risk", "lower is better")

    return axes
