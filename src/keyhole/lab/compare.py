"""Comparisons: every ranker that fits a world, on the same users, and a verdict."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import keyhole
from keyhole.base.errors import FloatArray, InvalidInput, KeyholeError, check_integer, check_seed
from keyhole.base.files import plain
from keyhole.contracts.measures import Measure
from keyhole.contracts.rankers import Ranker
from keyhole.contracts.registry import options_of
from keyhole.contracts.reveals import Reveal
from keyhole.contracts.worlds import World
from keyhole.game.play import check_playable, play
from keyhole.game.trace import Trace, mean_and_error
from keyhole.lab.kinds.games import GameSpec, build_on, build_world, is_told_the_best
from keyhole.lab.kinds.lists import (
    ListSpec,
    build_world_of_lists,
    feedback_of,
    list_axes,
    make_ranker,
)
from keyhole.lab.paired import AS_GOOD, WORSE, PairedVerdict, judge_pairs
from keyhole.lab.results import REGRET, Axes, Curve
from keyhole.measures import measure as named_measure
from keyhole.rankers import RANKERS
from keyhole.rankers.fixed.base import FixedListRanker
from keyhole.rankers.lists.base import ContextualRanker
from keyhole.reveals import least_reveal
from keyhole.reveals.top import Top

Options = dict[str, dict[str, Any]]
"""Settings of rankers by their names."""


@dataclass(frozen=True)
class Contender:
    """A ranker, what it is shown, and what a reader should know; who sees more is not judged."""

    name: str
    ranker: Ranker
    reveal: Reveal
    notes: tuple[str, ...]
    is_judged: bool = True

    @property
    def label(self) -> str:
        """What a figure calls it."""
        return self.name if self.is_judged else f"{self.name}, {self.reveal}"


@dataclass(frozen=True)
class Contest:
    """Rankers that meet the same users, and those that cannot take part, with the reason."""

    spec: GameSpec | ListSpec
    world: World
    measure: Measure
    contenders: tuple[Contender, ...]
    left_out: dict[str, str]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Result:
    """What a contender did."""

    contender: Contender
    trace: Trace

    @property
    def costs(self) -> FloatArray:
        """What each run cost per round: score, or its negative, so that less is better.

        Runs of one number meet the same users, so the best fixed ranking is the same, and
        differences are those of regret.
        """
        scores = self.trace.scores[:, -1] / self.trace.rounds[-1]
        return scores if self.trace.is_loss else -scores

    @property
    def regrets(self) -> FloatArray:
        """Average regret of each run, NaN where the best ranking is not known."""
        return self.trace.regret[:, -1] / self.trace.rounds[-1]


@dataclass(frozen=True)
class Comparison:
    """Results from best to worst, and who is best among those that see what all see."""

    contest: Contest
    results: tuple[Result, ...]
    verdict: PairedVerdict

    @property
    def knows_regret(self) -> bool:
        """Whether the best fixed ranking is known, of which regret is the distance."""
        return not any(bool(np.isnan(result.regrets).any()) for result in self.results)

    @property
    def axes(self) -> Axes:
        """What curves show: regret where it is known, and else the measure itself."""
        return REGRET if self.knows_regret else list_axes(self.contest.spec.measure)

    @property
    def curves(self) -> list[Curve]:
        """One curve per contender, from best to worst."""
        found = []
        for result in self.results:
            trace, name = result.trace, result.contender.label
            regret = Curve.of(name, trace)
            shown = Curve(name, trace.rounds, trace.scores / trace.rounds)
            found.append(regret if self.knows_regret else shown)
        return found


def _contend(
    names: Sequence[str] | None, base: type, make: Callable[[str], Contender], check: Any
) -> tuple[list[Contender], dict[str, str]]:
    """Return the named rankers, or those of a kind that fit, and why the others do not."""
    contenders, left_out = [], {}
    for name in names or [name for name, cls in RANKERS.items() if issubclass(cls, base)]:
        try:
            contender = make(name)
            check(contender)
        except KeyholeError as error:
            if names:  # whoever asks for it wants to know
                raise
            left_out[name] = str(error)
        else:
            contenders.append(contender)
    if not contenders:
        raise InvalidInput("At least one ranker must fit what is shown and judged, but none does.")
    return contenders, left_out


def _check(world: World, measure: Measure, rounds: int) -> Callable[[Contender], None]:
    def check(contender: Contender) -> None:
        check_playable(contender.ranker, world, contender.reveal, measure, rounds)

    return check


def contest_of_games(
    spec: GameSpec, names: Sequence[str] | None, beside: Sequence[str], options: Options
) -> Contest:
    """Return a comparison on one fixed list, in which all see the top of the description.

    Rankers ``beside`` see what they need.
    """
    check_integer(spec.rounds, "rounds", at_least=1)
    check_integer(spec.runs, "runs", at_least=1)
    check_seed(spec.seed)
    world, notes = build_world(spec)

    def make(name: str, *, is_judged: bool = True) -> Contender:
        if is_told_the_best(name) and is_judged and "ranking" not in options.get(name, {}):
            raise InvalidInput(f"{name} is told the best ranking in hindsight and learns nothing.")
        told: dict[str, Any] = {"ranker": name, "ranker_options": options.get(name, {})}
        own = replace(spec, **told) if is_judged else replace(spec, **told, top=None)
        game = build_on(own, world, [])
        return Contender(name, game.ranker, game.reveal, game.notes, is_judged)

    measure = named_measure(spec.measure, **spec.measure_options)
    contenders, left_out = _contend(
        names, FixedListRanker, make, _check(world, measure, spec.rounds)
    )
    more = [make(name, is_judged=False) for name in beside]
    left_out = {name: why for name, why in left_out.items() if name not in beside}
    return Contest(spec, world, measure, (*contenders, *more), left_out, tuple(notes))


def contest_of_lists(
    spec: ListSpec, names: Sequence[str] | None, beside: Sequence[str], options: Options
) -> Contest:
    """Return a comparison on query-document lists, in which all see the top of the description."""
    check_integer(spec.rounds, "rounds", at_least=1)
    check_integer(spec.runs, "runs", at_least=1)
    check_seed(spec.seed)
    world, _ = build_world_of_lists(spec)
    top = Top(1 if spec.top is None else spec.top)

    def make(name: str, *, is_judged: bool = True) -> Contender:
        takes_k = is_judged and "k" in options_of(RANKERS.find(name))
        ranker = make_ranker(
            name, world, options.get(name, {}), top=top.k if takes_k else None, seed=spec.seed
        )
        shown = top if is_judged else least_reveal(ranker.depth, world.n_items)
        return Contender(name, ranker, feedback_of(shown, spec.noise, world), (), is_judged)

    measure = named_measure(spec.measure)
    contenders, left_out = _contend(
        names, ContextualRanker, make, _check(world, measure, spec.rounds)
    )
    more = [make(name, is_judged=False) for name in beside]
    left_out = {name: why for name, why in left_out.items() if name not in beside}
    return Contest(spec, world, measure, (*contenders, *more), left_out, ())


def play_contest(
    contest: Contest, progress: Callable[[str], Callable[[int], None]] | None = None
) -> Comparison:
    """Play all contenders on the same users; ``progress`` is told of whom, and then of rounds."""
    spec, results = contest.spec, []
    for contender in contest.contenders:
        trace = play(
            contender.ranker, contest.world, reveal=contender.reveal, measure=contest.measure,
            rounds=spec.rounds, seed=spec.seed, runs=spec.runs, n_points=spec.points,
            progress=None if progress is None else progress(contender.name),
        )  # fmt: skip
        results.append(Result(contender, trace))
    results.sort(key=lambda result: float(result.costs.mean()))
    costs = {r.contender.name: r.costs for r in results if r.contender.is_judged}
    return Comparison(contest, tuple(results), judge_pairs(costs))


def sentences(comparison: Comparison) -> list[str]:
    """Return the verdict in words."""
    verdict, spec = comparison.verdict, comparison.contest.spec
    others = list(verdict.gaps)[1:]
    if not others:
        return [f"{verdict.best} is the only ranker compared"]
    if verdict.n_runs < 2:
        return [f"{verdict.best} did best, but one run tells nothing: --runs 20 would"]
    close, worse = verdict.named(AS_GOOD), verdict.named(WORSE)
    said = [f"{verdict.best} is best in the mean of {verdict.n_runs} runs"]
    if not close:
        nearest = verdict.gaps[others[0]]
        said[0] += (
            f", and better than every other: than {others[0]}, the next, by {nearest.mean:.4f} "
            f"({nearest.low:.4f} to {nearest.high:.4f})"
        )
    else:
        said.append(f"Not told apart from it: {', '.join(close)}")
        if worse:
            said.append(f"Worse than it: {', '.join(worse)}")
    lies = (
        "The difference lies in its interval"
        if verdict.n_pairs == 1
        else f"All {verdict.n_pairs} differences between two rankers lie in their intervals"
    )
    said.append(
        f"{lies} with {verdict.confidence:.0%} confidence (Student, paired by run, Bonferroni)"
    )
    beside = [r for r in comparison.results if not r.contender.is_judged]
    said += [
        f"{result.contender.name} sees more ({result.contender.reveal}) and is not judged: "
        f"{_ahead(result, comparison)}"
        for result in beside
    ]
    if spec.runs < 5:
        said.append("With so few runs intervals are wide: --runs 20 tells more apart")
    return said


def _ahead(result: Result, comparison: Comparison) -> str:
    """Return how a ranker that sees more stands to the best of those that do not."""
    best = next(r for r in comparison.results if r.contender.name == comparison.verdict.best)
    gap = judge_pairs({"it": result.costs, "best": best.costs})
    (other,) = (name for name in gap.gaps if name != gap.best)
    found = gap.gaps[other]
    names = {"it": result.contender.name, "best": best.contender.name}
    apart = "better" if found.standing == WORSE else "better in the mean, but not told apart"
    return (
        f"{names[gap.best]} is {apart}, by {found.mean:.4f} ({found.low:.4f} to {found.high:.4f})"
    )


def as_record(comparison: Comparison) -> Any:
    """Return a comparison as plain data, ready for JSON."""
    verdict, contest = comparison.verdict, comparison.contest
    rows = []
    for result, curve in zip(comparison.results, comparison.curves, strict=True):
        name, gap = result.contender.name, verdict.gaps.get(result.contender.name)
        means, errors = mean_and_error(curve.values)
        rows.append(
            {
                "ranker": name,
                "sees": str(result.contender.reveal),
                "is_judged": result.contender.is_judged,
                "average_regret": result.trace.average_regret.mean,
                "average_regret_error": result.trace.average_regret.error,
                "average_score": result.trace.average_score.mean,
                "average_score_error": result.trace.average_score.error,
                "standing": None if gap is None else gap.standing,
                "worse_by": None if gap is None else gap.mean,
                "worse_by_interval": None if gap is None else [gap.low, gap.high],
                "by_run": (result.regrets if comparison.knows_regret else curve.values[:, -1]),
                "curve": [[int(t), float(y)] for t, y in zip(curve.x, means, strict=True)],
                "curve_error": [float(e) for e in errors],
                "notes": list(result.contender.notes),
                "settings": result.contender.ranker.described(),
                "seconds": result.trace.seconds,
            }
        )
    return plain(
        {
            "best": verdict.best,
            "not_told_apart": verdict.named(AS_GOOD),
            "worse": verdict.named(WORSE),
            "confidence": verdict.confidence,
            "n_pairs": verdict.n_pairs,
            "verdict": sentences(comparison),
            "measure": str(contest.measure),
            "sees": next(str(each.reveal) for each in contest.contenders if each.is_judged),
            "is_loss": contest.measure.is_loss,
            "rankers": rows,
            "left_out": contest.left_out,
            "notes": list(contest.notes),
            "spec": {k: v for k, v in contest.spec.as_dict().items() if not k.startswith("ranker")},
            "version": keyhole.__version__,
        }
    )
