"""One experiment: a ranker on the lists of a world, described by names and numbers, then built."""

import json
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Self

from keyhole.base.described import PlainData, default_of, described
from keyhole.base.display import Described, Description
from keyhole.base.errors import InvalidInput, check_integer, check_seed, shown
from keyhole.contracts.measures import Measure
from keyhole.contracts.rankers import Ranker
from keyhole.contracts.registry import all_settings, check_options
from keyhole.contracts.reveals import Reveal
from keyhole.contracts.worlds import World
from keyhole.experiment.fitting import can_be_tuned_for, check_kind, settings_for
from keyhole.experiment.worlds import Lists, Named, has_queries, make_world, row_norm, top_grade
from keyhole.game.comparators import best_fixed
from keyhole.game.play import play
from keyhole.game.trace import Trace
from keyhole.measures import measure as named_measure
from keyhole.rankers import RANKERS
from keyhole.rankers.fixed.plain import Fixed
from keyhole.reveals import REVEALS, least_reveal
from keyhole.reveals.noisy import Noisy
from keyhole.reveals.top import Top
from keyhole.surrogates import SURROGATES, surrogate as named_surrogate
from keyhole.surrogates.base import Surrogate
from keyhole.worlds.choices import Choices

_DIGITS = 10
_OF_FIXED_LISTS = ("items", "reveal", "same_users", "comparator", "measure_options")
_OF_QUERIES = ("noise",)
"""Fields that the plain data of one kind of list alone has where they are at their defaults."""


@dataclass(frozen=True, repr=False)
class Experiment(PlainData, Described):
    """A ranker that learns on the lists of a world, by names: nothing that is not plain data.

    The world says which kind of lists they are. A name of ``keyhole list`` or a file of people by
    items (``.csv``) has one list for everybody; ``graded`` and ``separable``, LETOR files (a list
    of paths) and ``data:FOLDER`` have query-document lists. A ``surrogate`` among the options of
    a ranker is a name, or a mapping of its ``name`` and its own options.

    Examples
    --------
    >>> from keyhole import Experiment
    >>> experiment = Experiment(items=5, top=1, rounds=1000, runs=2)
    >>> experiment
    Experiment: ranker keystone; world flips; measure DCG; items 5; rounds 1000; top 1; runs 2
    >>> Experiment.from_json(experiment.to_json()) == experiment
    True
    >>> experiment.build().ranker
    Keystone(n_items=5, horizon=1000, measure=DCG())
    >>> round(experiment.play().average_regret.mean, 3) > 0
    True
    """

    ranker: str = described(None)
    world: Named = described(
        "flips",
        "The source of relevance: a name of 'keyhole list', or a .csv file of people by items "
        "whose header names the items.",
        type=str,
    )
    measure: str = described(None, "The measure of a ranking: DCG (default), NDCG@10, SumLoss, …")
    items: int | None = described(None, "Length of the list. Default: the world's own.")
    rounds: int = described(10_000, "Rounds to play.")
    top: int | None = described(
        None, "Positions revealed in each round. Default: as many as the ranker needs."
    )
    reveal: str | None = described(
        None, "The feedback: top, full, choice:single or choice:set. Default: top."
    )
    noise: float = described(
        0.0,
        "Share of the revealed labels that are replaced by random grades; scores stay true.",
        option="--label-noise",
    )
    runs: int = described(1, "Independent runs, played on all cores.")
    seed: int = described(0, "The random seed.")
    same_users: bool = described(False, "Use the same users in all runs.")
    comparator: str = described(
        "prefix",
        "Regret against the best ranking of the rounds so far (prefix) or of all rounds (final).",
    )
    points: int = described(200)
    ranker_options: dict[str, Any] = described({})
    world_options: dict[str, Any] = described({})
    measure_options: dict[str, Any] = described({})

    def __post_init__(self) -> None:
        several = isinstance(self.world, list | tuple)
        world = [str(path) for path in self.world] if several else str(self.world)
        object.__setattr__(self, "world", world)
        for name in ("ranker_options", "world_options", "measure_options"):
            if not isinstance(getattr(self, name), Mapping):
                raise InvalidInput(
                    f"`{name}` must be settings by their names, got {shown(getattr(self, name))}."
                )
        queries = has_queries(world)
        if not self.ranker:
            object.__setattr__(self, "ranker", "recall" if queries else "keystone")
        if not self.measure:
            object.__setattr__(self, "measure", "NDCG@10" if queries else "DCG")

    @property
    def has_queries(self) -> bool:
        """Whether its lists come with queries, and are not one list for everybody."""
        return has_queries(self.world)

    @property
    def work(self) -> int:
        """Number of rounds to play, in all runs together."""
        return self.rounds * self.runs

    # ------------------------------------------------------------------------------- plain data

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain data: what its kind of list has, and what else is not at default."""
        of_others = _OF_FIXED_LISTS if self.has_queries else _OF_QUERIES
        return self._given(of_others)

    def to_json(self) -> str:
        """Return it as JSON, of which :meth:`from_json` makes an equal one."""
        return json.dumps(self.as_dict())

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the experiment that :meth:`to_json` wrote, or name the field that is wrong."""
        return cls.of(fields_of_json(text), "an experiment")

    def _given(self, left_out: tuple[str, ...]) -> dict[str, Any]:
        """Return the fields by name, but of some only those that are not at their defaults."""
        given = {each.name: getattr(self, each.name) for each in fields(self)}
        usual = {each.name: default_of(each) for each in fields(self)}
        return {
            name: dict(value) if isinstance(value, dict) else value
            for name, value in given.items()
            if name not in left_out or value != usual[name]
        }

    def _described(self) -> Description:
        always = ("ranker", "world", "measure")
        given = self._given(tuple(each.name for each in fields(self) if each.name not in always))
        return Description("Experiment", [(name, str(value)) for name, value in given.items()])

    # ------------------------------------------------------------------------------- the objects

    def build(self) -> "BuiltExperiment":
        """Return the objects that it names, or raise with a sentence."""
        check_integer(self.rounds, "rounds", at_least=1)
        check_integer(self.runs, "`runs`", at_least=1)
        check_seed(self.seed)
        return self.build_on(*make_world(self.world, self.items, self.world_options))

    def build_on(
        self, world: World, notes: Sequence[str] = (), lists: Lists | None = None
    ) -> "BuiltExperiment":
        """Return the same where its world, and what is noted of it, are there."""
        if self.top is not None and not world.n_features:
            check_integer(self.top, "top", at_least=1, at_most=world.n_items, bound="items=")
        measure = named_measure(self.measure, **self.measure_options)
        with warnings.catch_warnings(record=True) as caught:  # a reader of results wants them too
            warnings.simplefilter("always")
            fit = _fit_to_queries if world.n_features else _fit_to_fixed_list
            ranker, ranker_notes = fit(self, world, measure)
        ranker_notes += [str(warning.message).rstrip(".") for warning in caught]
        reveal = _revealed(self.reveal, self.top, ranker)
        if self.noise:
            reveal = Noisy(reveal, noise=self.noise, max_grade=top_grade(world))
        return BuiltExperiment(
            self, ranker, world, reveal, measure, tuple(notes), tuple(ranker_notes), lists
        )

    def play(self, progress: Callable[[int], None] | None = None) -> Trace:
        """Play it and return its curves; see :func:`keyhole.play`."""
        return self.build().play(progress)


def fields_of_json(text: str) -> dict[str, Any]:
    """Return the fields of an experiment that JSON holds, or raise."""
    try:
        given = json.loads(text)
    except ValueError as error:
        raise InvalidInput(f"An experiment must be JSON: {error}.") from None
    if not isinstance(given, dict):
        raise InvalidInput(f"An experiment must be a JSON object, got {shown(given)}.")
    return given


@dataclass(frozen=True)
class BuiltExperiment:
    """The objects of an experiment, and what a reader of its results should know."""

    experiment: Experiment
    ranker: Ranker
    world: World
    reveal: Reveal
    measure: Measure
    world_notes: tuple[str, ...]
    ranker_notes: tuple[str, ...]
    lists: Lists | None = None
    """The query-document lists that were read from files, if it learns on such."""

    @property
    def notes(self) -> tuple[str, ...]:
        """All that a reader of its results should know."""
        return self.world_notes + self.ranker_notes

    @property
    def key(self) -> dict[str, Any]:
        """All that the results depend on, as plain data."""
        data = {} if self.lists is None else {"data": self.lists.digest}
        return {**self.experiment.as_dict(), **data}

    def beside(self, ranker: str, options: Mapping[str, Any], **sees: Any) -> "BuiltExperiment":
        """Return the same for another ranker, which meets the same users."""
        other = replace(self.experiment, ranker=ranker, ranker_options=dict(options), **sees)
        return other.build_on(self.world, self.world_notes, self.lists)

    def play(self, progress: Callable[[int], None] | None = None) -> Trace:
        """Play it and return its curves."""
        own = self.experiment
        return play(
            self.ranker, self.world, reveal=self.reveal, measure=self.measure, rounds=own.rounds,
            seed=own.seed, runs=own.runs, same_users=own.same_users, comparator=own.comparator,
            n_points=own.points, progress=progress,
        )  # fmt: skip


# ----------------------------------------------------------------------------- the ranker


def is_told_the_best(ranker: str) -> bool:
    """Return whether a ranker shows the best ranking in hindsight where no other is given."""
    return RANKERS.find(ranker) is Fixed


def _fit_to_fixed_list(
    own: Experiment, world: World, judged_by: Measure
) -> tuple[Ranker, list[str]]:
    """Return the ranker of an experiment on one fixed list, and notes on it."""
    cls = check_kind(own.ranker, RANKERS.find(own.ranker), queries=False)
    options, notes = dict(own.ranker_options), []
    known = check_options(cls, options)
    max_grade = max(world.max_grade, 1.0)
    tuned_for: Measure | str = judged_by
    if not can_be_tuned_for(cls, judged_by, max_grade):
        tuned_for = "DCG"
        notes.append(
            f"{own.ranker} is tuned for DCG: it has no guarantee for {judged_by.label}, whose "
            f"gains depend on the whole list"
        )
    if "n_chosen" in known and isinstance(world, Choices):
        options.setdefault("n_chosen", world.n_chosen)
    if is_told_the_best(own.ranker) and "ranking" not in options:
        options["ranking"] = best_fixed(world, measure=judged_by, rounds=own.rounds, seed=own.seed)
        notes.append("fixed shows the best ranking in hindsight of the first run")
    told = {
        "n_items": world.n_items,
        "horizon": own.rounds,
        "k": 1 if own.top is None else own.top,
        "measure": tuned_for,
        "max_grade": max_grade,
        "items": world.item_names,
        "seed": own.seed,
    }
    return cls(**settings_for(cls, told, options)), notes


def _fit_to_queries(own: Experiment, world: World, _: Measure) -> tuple[Ranker, list[str]]:
    """Return the ranker of an experiment on query-document lists, told their grades and norms.

    The ``top`` documents are revealed of each list: it must be able to use them all.
    """
    cls, top = check_kind(own.ranker, RANKERS.find(own.ranker), queries=True), own.top
    options = dict(own.ranker_options)
    known = check_options(cls, options)
    if "surrogate" in known:
        options["surrogate"] = _surrogate(options.get("surrogate", known["surrogate"]), world)
    told: dict[str, Any] = {
        "n_features": world.n_features,
        "n_items": world.n_items,
        "max_grade": max(world.max_grade, 1.0),
        "seed": own.seed,
    }
    if "row_norm" in known and "row_norm" not in options:
        told["row_norm"] = row_norm(world)
    if top is not None and "k" in known and options.setdefault("k", top) != top:
        raise InvalidInput(
            f"`k` of {cls.__name__} must be the top {top} shown, got {options['k']}."
        )
    ranker = cls(**settings_for(cls, told, options))
    if top is not None and "k" not in known:
        learns = "every document" if ranker.depth else "no document"
        raise InvalidInput(
            f"top must not be given for {cls.__name__}, which learns from the relevance of "
            f"{learns}, got {top}."
        )
    return ranker, []


def _surrogate(given: str | Mapping[str, Any], world: World) -> Surrogate:
    """Return a surrogate for the lists of a world, told their top grade where it can be."""
    options = {"name": given} if isinstance(given, str) else dict(given)
    name = options.pop("name")
    if "max_grade" in check_options(SURROGATES.find(name), options):
        options = {"max_grade": top_grade(world), **options}
    return named_surrogate(name, **options)


def sees_top(ranker: str, top: int) -> dict[str, Any]:
    """Return the fields by which a ranker is shown the top: not all of them can be told its k."""
    takes_k = "k" in all_settings(RANKERS.find(ranker))
    return {"top": top} if takes_k else {"top": None, "reveal": f"top:{top}"}


# ----------------------------------------------------------------------------- what is shown


def _revealed(given: str | None, top: int | None, ranker: Ranker) -> Reveal:
    if given is None:
        return least_reveal(ranker.depth, ranker.n_items) if top is None else Top(top)
    name, _, text = str(given).partition(":")
    if name not in REVEALS and text:  # file.py:Class or module:Class
        name, text = given, ""
    cls: Any = REVEALS.find(name)
    if cls is not Top and top is not None:
        raise InvalidInput(f"top must be left out with the reveal {name}, got {top}.")
    takes = list(check_options(cls, {}))
    if text and not takes:
        raise InvalidInput(f"reveal {name!r} takes no option, got {text!r} after the colon.")
    if cls is not Top:
        return REVEALS.make(name, **({takes[0]: text} if text else {}))
    if text and top is not None:
        raise InvalidInput(f"top must be given once, got {top} and {given}.")
    if text and not (text.isascii() and text.isdecimal() and len(text) < _DIGITS):
        raise InvalidInput(f"reveal must be top or such as top:3, got {shown(given)}.")
    return Top(int(text) if text else max(ranker.depth if top is None else top, 1))
