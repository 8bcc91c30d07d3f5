"""Logs of impressions and feedback: arrays that a kernel would index, and their replay."""

import random
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from bench.fuzz import values
from bench.fuzz.rounds import answer_of, cast, query_of
from bench.fuzz.scene import ANY, BAD, GOOD, Attack, Scene
from keyhole import Log, replay
from keyhole.base.files import write_arrays
from keyhole.contracts.lists import Feedback
from keyhole.rankers import RANKERS

_N_ROWS = 12


@cache
def _good_log(name: str) -> Log:
    """Return the log of some rounds of a ranker."""
    made, chance, pairs = cast(name), random.Random(name), []
    for _ in range(_N_ROWS):
        shown = made.rank(query_of(made, chance))
        answer = Feedback(np.array(answer_of(made, shown, chance)))
        made.update(shown, answer)
        pairs.append((shown, answer))
    return Log.of(made, pairs)


def warm() -> None:
    """Compile the replays of all rankers."""
    for name in RANKERS:
        replay(cast(name), _good_log(name))


Hurt = Callable[[random.Random, Log], tuple[str, str, Log]]


def _set(array: Any, chance: random.Random, value: Any) -> Any:
    """Return an array with another value at one place."""
    changed = array.copy()
    changed.flat[chance.randrange(array.size)] = value
    return changed


def _replaced(log: Log, name: str, value: Any) -> Log:
    """Return a log with something else in one of its fields."""
    fields: dict[str, Any] = {name: value}
    return log._replace(**fields)


def _rankings(chance: random.Random, log: Log) -> tuple[str, str, Log]:
    wrong = chance.choice((10**9, -5 * 10**6, 2**62, -1, 5, 6, -(2**63)))
    return (
        BAD,
        "items out of range in a log",
        log._replace(rankings=_set(log.rankings, chance, wrong)),
    )


def _twice(chance: random.Random, log: Log) -> tuple[str, str, Log]:
    rankings = log.rankings.copy()
    row = next(row for row in range(_N_ROWS) if log.starts[row + 1] - log.starts[row] > 1)
    rankings[log.starts[row]] = rankings[log.starts[row] + 1]
    return BAD, "an item twice in a log", log._replace(rankings=rankings)


def _rounds(chance: random.Random, log: Log) -> tuple[str, str, Log]:
    wrong = chance.choice((2**62, 2**63 - 1, -1, -(2**63), 2**47))
    return (
        BAD,
        "a round out of range in a log",
        log._replace(rounds=_set(log.rounds, chance, wrong)),
    )


def _late_rounds(chance: random.Random, log: Log) -> tuple[str, str, Log]:
    wrong = chance.choice((0, 10**6, 2**40, 2**47 - 1))
    return GOOD, "a late round in a log", log._replace(rounds=_set(log.rounds, chance, wrong))


def _values(chance: random.Random, log: Log) -> tuple[str, str, Log]:
    wrong = chance.choice((np.inf, -np.inf, -1.0, -1e308))
    return (
        BAD,
        "impossible relevance in a log",
        log._replace(values=_set(log.values, chance, wrong)),
    )


def _hidden(chance: random.Random, log: Log) -> tuple[str, str, Log]:
    wrong = chance.choice((np.nan, 1e308, 3.0, 1e300, 0.5))
    return (
        ANY,
        "hidden or huge relevance in a log",
        log._replace(values=_set(log.values, chance, wrong)),
    )


def _propensities(chance: random.Random, log: Log) -> tuple[str, str, Log]:
    wrong = chance.choice((0.0, np.nan, -1.0, np.inf, 5e-324, 2.0, 1e308))
    explored = np.full_like(log.explored, chance.random() < 0.5)
    return (
        ANY,
        "propensities in a log",
        log._replace(propensities=np.full_like(log.propensities, wrong), explored=explored),
    )


def _starts(chance: random.Random, log: Log) -> tuple[str, str, Log]:
    wrong = chance.choice((-1, 10**9, 2**62, -(2**62), len(log.values) + 1))
    return BAD, "wrong starts in a log", log._replace(starts=_set(log.starts, chance, wrong))


def _disorder(chance: random.Random, log: Log) -> tuple[str, str, Log]:
    starts = chance.choice(
        (log.starts[::-1].copy(), log.starts + 1, log.starts * 2, log.starts[:0])
    )
    return BAD, "starts in disorder", log._replace(starts=starts)


def _lengths(chance: random.Random, log: Log) -> tuple[str, str, Log]:
    name = chance.choice(("rounds", "explored", "propensities", "rankings", "values"))
    array = getattr(log, name)
    cut: Any = chance.choice((array[:-1], array[:0], np.tile(array, 2), array[:, None]))
    return BAD, "arrays of a log that do not fit", _replaced(log, name, cut)


def _features(chance: random.Random, log: Log) -> tuple[str, str, Log]:
    if not log.features.size:
        wide = np.zeros((len(log.features), 2))
        return BAD, "features in a log of a fixed list", log._replace(features=wide)
    wrong = chance.choice((np.nan, np.inf, -np.inf))
    return (
        BAD,
        "features in a log that are not finite",
        log._replace(features=_set(log.features, chance, wrong)),
    )


def _huge_features(chance: random.Random, log: Log) -> tuple[str, str, Log]:
    scale = chance.choice((1e100, 1e154, 1e308, 1e-320))
    return ANY, "huge features in a log", log._replace(features=log.features * scale)


def _kinds(chance: random.Random, log: Log) -> tuple[str, str, Log]:
    name = chance.choice(Log._fields)
    given: Any = getattr(log, name)
    dtype = chance.choice(("f4", "f8", "i4", "U5", "c16", "O", "u8", ">i8", "f2"))
    return (
        ANY,
        "arrays of a log of other kinds",
        _replaced(log, name, np.asarray(given).astype(dtype)),
    )


def _anything(chance: random.Random, log: Log) -> tuple[str, str, Log]:
    name = chance.choice(Log._fields)
    return ANY, "anything in a log", _replaced(log, name, values.value(chance))


def _source(chance: random.Random, log: Log) -> tuple[str, str, Log]:
    wrong: Any = chance.choice((-1, 2**63, 2**64, "x", None, 1.5, np.nan))
    return BAD, "seed or run of a log", _replaced(log, chance.choice(("seed", "run")), wrong)


def _nothing(chance: random.Random, log: Log) -> tuple[str, str, Log]:
    return GOOD, "a good log", log


_HURTS: tuple[Hurt, ...] = (
    _rankings, _rankings, _twice, _rounds, _late_rounds, _values, _hidden, _hidden, _propensities,
    _propensities, _starts, _disorder, _lengths, _features, _huge_features, _kinds, _anything,
    _source, _nothing, _nothing,
)  # fmt: skip


def draw(chance: random.Random) -> Attack:
    """Return the replay of a log, given or read from a file."""
    name, hurt = chance.choice([*RANKERS]), chance.choice(_HURTS)
    by_file = chance.random() < 0.4
    what = f"{name}: {hurt.__name__.strip('_')}{' in a file' if by_file else ''}"

    def act(scene: Scene) -> None:
        label, kind, log = hurt(chance, _good_log(name))
        if by_file:
            log = _through_a_file(scene, log, label, kind)
            if log is None:
                return
        told = "; ".join(f"{n}={v!r}" for n, v in log._asdict().items())

        def attack() -> Any:
            return scene.watch(replay(cast(name), log), name)

        made = scene.attempt(f"replay({told})", attack, label, kind)
        if made is not None:
            scene.attempt("rank", lambda: made.rank(query_of(made, chance)), kind=kind)
            scene.attempt("part", lambda: log.part(0, 2), kind=kind)
            scene.attempt("joined", lambda: log.followed_by(log), kind=kind)

    return Attack(what, act)


def _through_a_file(scene: Scene, log: Log, label: str, kind: str) -> Any:
    """Return a log that was written and read; reading may find what is wrong, replaying must."""
    arrays: dict[str, Any] = {}
    try:
        arrays = {name: np.asarray(array) for name, array in log._asdict().items()}
    except ValueError:
        return None
    if any(array.dtype.kind in "OV" for array in arrays.values()):
        return None  # what a file of plain arrays cannot hold
    path = scene.folder / "log.npz"
    write_arrays(path, arrays)
    scene.write("log.npz", path.read_bytes())
    return scene.attempt(
        f"Log.load of {arrays}", lambda: Log.load(path), ANY if label == BAD else label, kind
    )
