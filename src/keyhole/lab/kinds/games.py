"""A game described by names and numbers, as the command line and studies give it."""

import inspect
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import keyhole
from keyhole.base.errors import InvalidInput, check_choice, check_integer, check_seed, shown
from keyhole.base.files import plain
from keyhole.contracts.measures import Measure
from keyhole.contracts.rankers import Ranker
from keyhole.contracts.registry import all_settings, check_options, options_of
from keyhole.contracts.reveals import Reveal
from keyhole.contracts.worlds import World, whole_matrix
from keyhole.data.people import PEOPLE_ORDERS, people_in_order
from keyhole.data.ratings import read_ratings
from keyhole.game.comparators import best_fixed
from keyhole.game.play import play
from keyhole.game.trace import Trace
from keyhole.lab.inputs import DATA_PREFIX, DataMissing, Description, data_folder
from keyhole.measures import measure as named_measure
from keyhole.rankers import RANKERS
from keyhole.rankers.fixed.base import FixedListRanker
from keyhole.rankers.fixed.plain import Fixed
from keyhole.reveals import REVEALS, least_reveal
from keyhole.reveals.top import Top
from keyhole.worlds import WORLDS
from keyhole.worlds.choices import Choices
from keyhole.worlds.table import Ratings, Recorded, Shuffled

_DIGITS = 10
_FILE_OPTIONS = (
    "threshold", "grades", "n_chosen", "scale", "columns", "missing", "delimiter", "decimal",
    "header", "index", "ids",
)  # fmt: skip


@dataclass(frozen=True)
class GameSpec(Description):
    """A game by names: everything a run needs, and nothing that is not plain data."""

    ranker: str = "rtopk"
    world: str = "flips"
    measure: str = "DCG"
    items: int | None = None
    rounds: int = 10_000
    top: int | None = None
    reveal: str | None = None
    runs: int = 1
    seed: int = 0
    same_users: bool = False
    comparator: str = "prefix"
    points: int = 200
    ranker_options: dict[str, Any] = field(default_factory=dict)
    world_options: dict[str, Any] = field(default_factory=dict)
    measure_options: dict[str, Any] = field(default_factory=dict)

    @property
    def work(self) -> int:
        """Number of rounds to play, in all runs together."""
        return self.rounds * self.runs


@dataclass(frozen=True)
class BuiltGame:
    """The objects of a game, and what a reader of its results should know."""

    spec: GameSpec
    ranker: Ranker
    world: World
    reveal: Reveal
    measure: Measure
    notes: tuple[str, ...]

    @property
    def key(self) -> dict[str, Any]:
        """All that the results depend on, as plain data."""
        return self.spec.as_dict()


def _data_path(world: str) -> Path:
    if not world.startswith(DATA_PREFIX):
        return Path(world)
    path = data_folder() / world.removeprefix(DATA_PREFIX)
    if not path.exists():
        raise DataMissing(f"{world.removeprefix(DATA_PREFIX)} is not in {data_folder()}.")
    return path


def _is_file(world: str) -> bool:
    ending = re.search(r"\.([ct]sv(\.\w+)?|npz)$", world)
    return world.startswith(DATA_PREFIX) or ending is not None


def has_lists_that_change(cls: type[World]) -> bool:
    """Return whether the lists of a world come with queries: games are of one fixed list."""
    return cls.kernel.query is not whole_matrix


def _is_made_of_numbers(cls: type[World]) -> bool:
    """Return whether a world of one list can be named: others need arrays, in Python or a file."""
    needed = [value for value in all_settings(cls).values() if value is inspect.Parameter.empty]
    return not needed and not has_lists_that_change(cls)


def build_world(spec: GameSpec) -> tuple[World, list[str]]:
    """Return the world of a description, and notes on it."""
    options = dict(spec.world_options)
    if not _is_file(spec.world):
        if spec.world in WORLDS and has_lists_that_change(WORLDS[spec.world]):
            raise InvalidInput(
                f"world must be one fixed list, got {spec.world!r}, whose lists change with the "
                f"query: keyhole learn is for those."
            )
        known = [name for name, row in WORLDS.items() if _is_made_of_numbers(row)]
        if ":" not in spec.world:
            check_choice(spec.world, "world (a name, or a .csv file of people by items)", known)
        cls: Any = WORLDS.find(spec.world)
        check_options(cls, options)
        return cls(**({} if spec.items is None else {"n_items": spec.items}), **options), []
    order = options.pop("order", "drawn")
    check_choice(order, "`order` of a world read from a file", PEOPLE_ORDERS)
    for name in options:
        check_choice(name, "An option of a world read from a file", (*_FILE_OPTIONS, "order"))
    table = read_ratings(_data_path(spec.world), **options)
    kind = {"drawn": Ratings, "shuffled": Shuffled}.get(order, Recorded)
    world = kind(people_in_order(table.values, order), item_names=table.item_names)
    if spec.items is not None and spec.items != world.n_items:
        raise InvalidInput(
            f"items must be {world.n_items}, the columns of {spec.world}, got {spec.items}."
        )
    notes = [f"{len(table.values)} people, {world.n_items} items from {spec.world}"]
    if table.has_index:
        named = "the first column" if "ids" not in options else f"the column {options['ids']!r}"
        notes.append(f"{named} names the people and is no item")
    if table.n_dropped:
        notes.append(f"{table.n_dropped} people left out: a rating is missing")
    return world, notes


def is_told_the_best(ranker: str) -> bool:
    """Return whether a ranker shows the best ranking in hindsight where no other is given."""
    return RANKERS.find(ranker) is Fixed


def _build_ranker(spec: GameSpec, world: World, judged_by: Measure) -> tuple[Ranker, list[str]]:
    cls: Any = RANKERS.find(spec.ranker)
    if not issubclass(cls, FixedListRanker):
        raise InvalidInput(
            f"ranker must be one of a fixed list, got {spec.ranker!r}, which ranks query-document "
            f"lists: keyhole learn is for those."
        )
    options, notes = dict(spec.ranker_options), []
    check_options(cls, options)
    max_grade = max(world.max_grade, 1.0)
    tuned_for: Measure | str = judged_by
    if cls.needs_gain_per_item and not judged_by.is_gain_per_item(max_grade):
        tuned_for = "DCG"
        notes.append(
            f"{spec.ranker} is tuned for DCG: it has no guarantee for {judged_by.label}, whose "
            f"gains depend on the whole list"
        )
    if "n_chosen" in options_of(cls) and isinstance(world, Choices):
        options.setdefault("n_chosen", world.n_chosen)
    if is_told_the_best(spec.ranker) and "ranking" not in options:
        options["ranking"] = best_fixed(
            world, measure=judged_by, rounds=spec.rounds, seed=spec.seed
        )
        notes.append("fixed shows the best ranking in hindsight of the first run")
    ranker = cls(
        world.n_items,
        **{
            "horizon": spec.rounds,
            "k": 1 if spec.top is None else spec.top,
            "measure": tuned_for,
            "max_grade": max_grade,
            "items": world.item_names,
            "seed": spec.seed,
            **options,
        },
    )
    return ranker, notes


def _build_reveal(spec: GameSpec, ranker: Ranker) -> Reveal:
    if spec.reveal is None and spec.top is None:
        return least_reveal(ranker.depth, ranker.n_items)
    name, _, option = ("top" if spec.reveal is None else spec.reveal).partition(":")
    if name not in REVEALS and option:  # file.py:Class or module:Class
        name, option = str(spec.reveal), ""
    cls: Any = REVEALS.find(name)
    if cls is not Top and spec.top is not None:
        raise InvalidInput(f"top must be left out with the reveal {name}, got {spec.top}.")
    takes = list(options_of(cls))
    if option and not takes:
        raise InvalidInput(f"reveal {name!r} takes no option, got {option!r} after the colon.")
    if cls is not Top:
        return REVEALS.make(name, **({takes[0]: option} if option else {}))
    if option and spec.top is not None:
        raise InvalidInput(f"top must be given once, got {spec.top} and {spec.reveal}.")
    if option and not (option.isascii() and option.isdecimal() and len(option) < _DIGITS):
        raise InvalidInput(f"reveal must be top or such as top:3, got {shown(spec.reveal)}.")
    shown_to = ranker.depth if spec.top is None else spec.top
    return Top(int(option) if option else max(shown_to, 1))


def build(spec: GameSpec) -> BuiltGame:
    """Return the objects that a description names, or raise with a sentence."""
    check_integer(spec.rounds, "rounds", at_least=1)
    check_integer(spec.runs, "`runs`", at_least=1)
    check_seed(spec.seed)
    return build_on(spec, *build_world(spec))


def build_on(spec: GameSpec, world: World, world_notes: list[str]) -> BuiltGame:
    """Return the same where the world of the description, and what is noted of it, are there."""
    if spec.top is not None:
        check_integer(spec.top, "top", at_least=1, at_most=world.n_items, bound="items=")
    measure = named_measure(spec.measure, **spec.measure_options)
    with warnings.catch_warnings(record=True) as caught:  # a reader of results wants them too
        warnings.simplefilter("always")
        ranker, ranker_notes = _build_ranker(spec, world, measure)
    ranker_notes += [str(warning.message).rstrip(".") for warning in caught]
    reveal = _build_reveal(spec, ranker)
    return BuiltGame(spec, ranker, world, reveal, measure, (*world_notes, *ranker_notes))


def play_game(game: BuiltGame, progress: Callable[[int], None] | None = None) -> Trace:
    """Play what a description names."""
    spec = game.spec
    return play(
        game.ranker,
        game.world,
        reveal=game.reveal,
        measure=game.measure,
        rounds=spec.rounds,
        seed=spec.seed,
        runs=spec.runs,
        same_users=spec.same_users,
        comparator=spec.comparator,
        n_points=spec.points,
        progress=progress,
    )


def learnt_ranking(ranker: Ranker, trace: Trace) -> list[Any]:
    """Return what the ranker of the first run would show at the end, without exploring."""
    with warnings.catch_warnings():  # what is odd about its settings was said when it was made
        warnings.simplefilter("ignore")
        return ranker.fresh().load_state_dict(trace.states[0]).best()


def summary(game: BuiltGame, trace: Trace) -> dict[str, Any]:
    """Return the results of a game as plain data, ready for JSON."""
    rounds, means, errors = trace.curve()
    slope = trace.slope()
    n_played = int(trace.rounds[-1]) * trace.n_runs
    notes = list(game.notes)
    if trace.regret_is_lower_bound:
        notes.append(
            f"regret is a lower bound: the best fixed ranking for {game.measure.label} is the best "
            f"that a local search found"
        )
    if trace.exact == "none":
        notes.append(
            f"regret is not known: the best fixed ranking for {game.measure.label} is found by "
            f"trying all rankings, which takes at most 8 items"
        )
    return plain(
        {
            "average_regret": trace.average_regret.mean,
            "average_regret_error": trace.average_regret.error,
            "average_score": trace.average_score.mean,
            "average_score_error": trace.average_score.error,
            "best_fixed_score": trace.best_fixed_score.mean,
            "slope": slope.value,
            "slope_interval": [slope.low, slope.high],
            "curve": [[int(t), float(y)] for t, y in zip(rounds, means, strict=True)],
            "curve_error": [float(e) for e in errors],
            "measure": str(game.measure),
            "is_loss": trace.is_loss,
            "reveal": str(game.reveal),
            "item_names": game.world.item_names,
            "learnt_ranking": learnt_ranking(game.ranker, trace),
            "spec": game.spec.as_dict(),
            "notes": notes,
            "seconds": trace.seconds,
            "rounds_per_second": n_played / trace.seconds if trace.seconds else None,
            "version": keyhole.__version__,
        }
    )
