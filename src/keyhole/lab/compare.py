"""Comparisons: every ranker that fits a world, on the same users, and a verdict."""

import contextlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import keyhole
from keyhole.base.display import Described, Description
from keyhole.base.errors import FloatArray, InvalidInput, KeyholeError, LibraryMissing
from keyhole.base.files import plain
from keyhole.base.lazy import named
from keyhole.experiment.description import (
    BuiltExperiment,
    Experiment,
    fields_of_json,
    is_told_the_best,
    sees_top,
)
from keyhole.game.play import check_playable
from keyhole.game.trace import Trace, mean_and_error
from keyhole.lab.paired import AS_GOOD, BEST, WORSE, PairedVerdict, judge_pairs
from keyhole.lab.price import Price, price_over
from keyhole.lab.results import REGRET, Axes, Curve, list_axes
from keyhole.rankers import RANKERS
from keyhole.rankers.fixed.base import FixedListRanker
from keyhole.rankers.lists.base import ContextualRanker

_RUNS = 20
"""Runs of a comparison where nothing is said: one run tells nothing."""


@dataclass(frozen=True)
class Contender:
    """A ranker by its name, and how it plays; who sees more than the others is not judged."""

    name: str
    built: BuiltExperiment
    is_judged: bool = True

    @property
    def label(self) -> str:
        """What a figure calls it."""
        return self.name if self.is_judged else f"{self.name}, {self.built.reveal}"


@dataclass(frozen=True)
class Contest:
    """Rankers that meet the same users, and those that cannot take part, with the reason."""

    built: BuiltExperiment
    """The experiment of the first of them: the users, and what is the same for all."""
    contenders: tuple[Contender, ...]
    left_out: dict[str, str]
    sees_all: tuple[str, ...] = ()
    """Those beside the others that the price of seeing less is measured by."""
    again: tuple[Contender, ...] = ()
    """The others once more, each shown all."""

    def play(self, progress: Callable[[str], Callable[[int], None]] | None = None) -> "Comparison":
        """Play all on the same users; ``progress`` is told of whom, and then of rounds."""

        def played(each: Contender) -> Result:
            return Result(each, each.built.play(None if progress is None else progress(each.name)))

        results = [played(each) for each in self.contenders]
        results.sort(key=lambda result: float(result.costs.mean()))
        costs = {r.contender.name: r.costs for r in results if r.contender.is_judged}
        again = tuple(played(each) for each in self.again)
        return Comparison(self, tuple(results), judge_pairs(costs), again)


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


@dataclass(frozen=True, repr=False)
class Comparison(Described):
    """Results from best to worst, and who is best among those that see what all see."""

    contest: Contest
    results: tuple[Result, ...]
    verdict: PairedVerdict
    again: tuple[Result, ...] = ()

    @property
    def prices(self) -> dict[str, tuple[Price | None, Price | None]]:
        """What each ranker pays for the keyhole: over the best that sees all, and over itself.

        Empty unless it was asked for. All intervals hold at once with the confidence of the
        verdict, whichever of those that see all is best.
        """
        regrets = {r.contender.name: r.regrets for r in self.results}
        whole = {r.contender.name: r.regrets for r in self.again}
        references = {name: regrets[name] for name in self.contest.sees_all}
        judged = [r.contender.name for r in self.results if r.contender.is_judged]
        n_ratios = len(judged) * len(references) + len(whole)
        if not references:
            return {}
        outside = (1.0 - self.verdict.confidence) / n_ratios
        return {
            name: (
                price_over(regrets[name], references, outside),
                price_over(regrets[name], {n: whole[n] for n in whole if n == name}, outside),
            )
            for name in judged
        }

    @property
    def knows_regret(self) -> bool:
        """Whether the best fixed ranking is known, of which regret is the distance."""
        return not any(bool(np.isnan(result.regrets).any()) for result in self.results)

    @property
    def axes(self) -> Axes:
        """What curves show: regret where it is known, and else the measure itself."""
        return REGRET if self.knows_regret else list_axes(self.contest.built.experiment.measure)

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

    def sentences(self) -> list[str]:
        """Return the verdict in words."""
        return _sentences(self)

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain data, as ``keyhole compare --json`` prints it."""
        return _record(self)

    def to_json(self) -> str:
        """Return it as JSON."""
        return json.dumps(self.as_dict())

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with a row for each ranker, from best to worst.

        Its columns are those fields of :meth:`as_dict` that are one number or one text.
        """
        try:
            import pandas
        except ImportError:
            raise LibraryMissing("Frames need pandas", "frames") from None
        rows = self.as_dict()["rankers"]
        return pandas.DataFrame([{name: row[name] for name in _COLUMNS} for row in rows])

    def plot(self, ax: Any = None, *, log_x: bool = False, log_y: bool = False) -> Any:
        """Draw the curves of all rankers and return the axes; see :func:`keyhole.plot`."""
        draw = named("keyhole.lab.figures.plots:plot")
        labels = [result.contender.label for result in self.results]
        traces = [result.trace for result in self.results]
        return draw(*traces, ax=ax, labels=labels, log_x=log_x, log_y=log_y)

    def _described(self) -> Description:
        verdict, built = self.verdict, self.contest.built
        found = {standing: verdict.named(standing) for standing in (BEST, AS_GOOD, WORSE)}
        rows = [(standing, ", ".join(names)) for standing, names in found.items() if names]
        rows += [("measure", built.measure.label), ("world", built.world.call)]
        rows += [("rounds", f"{built.experiment.rounds:,}"), ("runs", f"{verdict.n_runs:,}")]
        return Description("Comparison", rows)


_COLUMNS = (
    "ranker", "sees", "is_judged", "average_regret", "average_regret_error", "average_score",
    "average_score_error", "standing", "worse_by", "seconds",
)  # fmt: skip


def compare(
    rankers: Sequence[str] | None = None,
    experiment: Experiment | Mapping[str, Any] | str | None = None,
    *,
    against: Sequence[str] = (),
    options: Mapping[str, Mapping[str, Any]] | None = None,
    price: bool = False,
    progress: Callable[[str], Callable[[int], None]] | None = None,
    **fields: Any,
) -> Comparison:
    """Play rankers on the same users, of whom all see the same, and judge which is best.

    Parameters
    ----------
    rankers
        Their names; by default all of ``keyhole list`` that fit.
    experiment
        What they play: an :class:`~keyhole.Experiment`, or a mapping of its fields, or JSON of
        them. The ranker that it names takes part if it is among ``rankers``.
    against
        Rankers that are shown all that they need, and so are not judged.
    options
        Settings of rankers by their names.
    price
        Whether to play also all rankers that see everything, and each that is compared with
        everything shown, to say how many times as much is lost by seeing less.
    progress
        Called with the name of each ranker before it plays, for what is then called with the
        number of rounds played since the last call.
    fields
        Fields of the experiment, over those that it has. Where nothing is said, the first
        position is revealed (``top=1``) and there are 20 ``runs``.

    Examples
    --------
    >>> import keyhole
    >>> names = ["rtopk", "keystone", "random"]
    >>> comparison = keyhole.compare(names, items=20, rounds=500, runs=4)
    >>> comparison.verdict.best, comparison.verdict.named("worse")
    ('keystone', ['rtopk', 'random'])
    >>> comparison.sentences()[-1]
    'With so few runs intervals are wide: --runs 20 tells more apart'
    """
    if isinstance(experiment, Experiment):
        asked = replace(experiment, **fields)
    else:
        given = fields_of_json(experiment) if isinstance(experiment, str) else experiment or {}
        asked = Experiment.of({"runs": _RUNS, **given, **fields}, "an experiment")
    return contest(asked, rankers, against, options or {}, price).play(progress)


def contest(
    experiment: Experiment,
    names: Sequence[str] | None = None,
    beside: Sequence[str] = (),
    options: Mapping[str, Mapping[str, Any]] = {},
    price: bool = False,
) -> Contest:
    """Return the named rankers, or all that fit, in an experiment in which they see the same.

    That is the first position where the experiment does not say; rankers ``beside`` see what they
    need. For a ``price``, all that see everything are beside them, and they play once more with
    everything shown.
    """
    if price and experiment.has_queries:
        raise InvalidInput(
            "`price` must be left out for query-document lists: it is a ratio of regrets, and the "
            "best ranking of each is not known."
        )
    if experiment.top is None and experiment.reveal is None:
        experiment = replace(experiment, top=1)
    options = {experiment.ranker: experiment.ranker_options, **options}
    base = ContextualRanker if experiment.has_queries else FixedListRanker
    chance = "random-lists" if experiment.has_queries else "random"
    usual: dict[str, Any] = {"ranker": chance, "ranker_options": {}, "top": None}
    first = replace(experiment, **usual).build()
    first = replace(first, experiment=experiment)
    contenders: list[Contender] = []
    left_out: dict[str, str] = {}
    for name in names or [name for name, cls in RANKERS.items() if issubclass(cls, base)]:
        try:
            contenders.append(_contender(name, first, options.get(name, {})))
        except KeyholeError as error:
            if names:  # whoever asks for it wants to know
                raise
            if name not in beside:
                left_out[name] = str(error)
    if not contenders:
        raise InvalidInput("At least one ranker must fit what is shown and judged, but none does.")
    more = [_beside(name, first, options) for name in beside]
    if not price:
        return Contest(first, (*contenders, *more), left_out)
    more += [
        each
        for each in _fitting(
            [name for name in RANKERS if name not in beside],
            lambda name: _beside(name, first, options),
        )
        if each.built.ranker.depth == first.world.n_items and each.name not in _names(contenders)
    ]
    shown_all = replace(first, experiment=replace(first.experiment, top=first.world.n_items))
    again = _fitting(
        _names(contenders), lambda name: _contender(name, shown_all, options.get(name, {}))
    )
    sees_all = [each.name for each in more if each.built.ranker.depth == first.world.n_items]
    return Contest(first, (*contenders, *more), left_out, tuple(sees_all), tuple(again))


def _names(contenders: Sequence[Contender]) -> list[str]:
    return [each.name for each in contenders]


def _fitting(names: Sequence[str], make: Callable[[str], Contender]) -> list[Contender]:
    """Return those that can take part."""
    found = []
    for name in names:
        with contextlib.suppress(KeyholeError):
            found.append(make(name))
    return found


def _beside(
    name: str, first: BuiltExperiment, options: Mapping[str, Mapping[str, Any]]
) -> Contender:
    """Return a ranker that is shown what it needs."""
    return Contender(name, first.beside(name, options.get(name, {}), top=None, reveal=None), False)


def _contender(name: str, first: BuiltExperiment, options: Mapping[str, Any]) -> Contender:
    """Return a ranker that is shown what all are shown, or raise if it does not fit."""
    if is_told_the_best(name) and "ranking" not in options:
        raise InvalidInput(f"{name} is told the best ranking in hindsight and learns nothing.")
    own = first.experiment
    sees = {} if own.top is None else sees_top(name, own.top)
    built = first.beside(name, options, **sees)
    check_playable(built.ranker, built.world, built.reveal, built.measure, own.rounds)
    return Contender(name, built)


def _sentences(comparison: Comparison) -> list[str]:
    """Return the verdict in words."""
    verdict = comparison.verdict
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
        f"{result.contender.name} sees more ({result.contender.built.reveal}) and is not judged: "
        f"{_ahead(result, comparison)}"
        for result in beside
    ]
    said += _prices(comparison)
    if verdict.n_runs < 5:
        said.append("With so few runs intervals are wide: --runs 20 tells more apart")
    return said


def _prices(comparison: Comparison) -> list[str]:
    """Return how many times as much is lost by seeing less, in words."""
    prices, said = comparison.prices, []
    for name, (of_best, of_own) in prices.items():
        if of_best is None:
            continue
        if of_best.ratio is None:
            said.append(
                f"{name} loses {of_best.more:.4f} more than {of_best.over}, which sees all and is "
                f"no worse than the best fixed ranking"
            )
            continue
        itself = ""
        if of_own is not None and of_own.ratio is not None:
            itself = f", and {of_own} times as much as itself with everything revealed"
        said.append(
            f"{name} loses {of_best} times as much as {of_best.over}, the best that sees "
            f"all{itself}"
        )
    if said:
        said.append(
            f"All intervals of these ratios hold at once with {comparison.verdict.confidence:.0%} "
            f"confidence (Fieller, paired by run, Bonferroni), whoever is best of those that see "
            f"all: {', '.join(comparison.contest.sees_all)}"
        )
    return said


def _price_record(price: Price | None) -> dict[str, Any] | None:
    if price is None:
        return None
    return {
        "over": price.over, "more": price.more, "ratio": price.ratio,
        "interval": None if price.interval is None else list(price.interval),
    }  # fmt: skip


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


def _record(comparison: Comparison) -> Any:
    """Return a comparison as plain data, ready for JSON."""
    verdict, contest = comparison.verdict, comparison.contest
    rows = []
    for result, curve in zip(comparison.results, comparison.curves, strict=True):
        name, gap = result.contender.name, verdict.gaps.get(result.contender.name)
        means, errors = mean_and_error(curve.values)
        of_best, of_own = comparison.prices.get(name, (None, None))
        rows.append(
            {
                "ranker": name,
                "sees": str(result.contender.built.reveal),
                "is_judged": result.contender.is_judged,
                "average_regret": result.trace.average_regret.mean,
                "average_regret_error": result.trace.average_regret.error,
                "average_score": result.trace.average_score.mean,
                "average_score_error": result.trace.average_score.error,
                "standing": None if gap is None else gap.standing,
                "worse_by": None if gap is None else gap.mean,
                "worse_by_interval": None if gap is None else [gap.low, gap.high],
                "price": _price_record(of_best),
                "price_over_itself": _price_record(of_own),
                "by_run": (result.regrets if comparison.knows_regret else curve.values[:, -1]),
                "curve": [[int(t), float(y)] for t, y in zip(curve.x, means, strict=True)],
                "curve_error": [float(e) for e in errors],
                "notes": list(result.contender.built.ranker_notes),
                "settings": result.contender.built.ranker.described(),
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
            "verdict": comparison.sentences(),
            "measure": str(contest.built.measure),
            "sees": next(str(each.built.reveal) for each in contest.contenders if each.is_judged),
            "is_loss": contest.built.measure.is_loss,
            "rankers": rows,
            "left_out": contest.left_out,
            "notes": list(contest.built.world_notes),
            "spec": {
                k: v
                for k, v in contest.built.experiment.as_dict().items()
                if not k.startswith("ranker")
            },
            "version": keyhole.__version__,
        }
    )
