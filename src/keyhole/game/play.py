"""The game: rankers meet worlds, are shown what a reveal shows, and are judged by a measure.

``play`` runs whole games in compiled code, many at once, and calls the kernels that the
per-round API calls.
"""

import time
from collections.abc import Callable
from functools import partial
from threading import Event
from typing import Any, NamedTuple, TypeVar

import numpy as np

from keyhole.contracts import (
    Measure,
    MeasureKernel,
    Ranker,
    Reveal,
    Seen,
    World,
    measure_work,
    no_features,
)
from keyhole.errors import (
    MAX_ROUND,
    FeedbackTooSmall,
    FloatArray,
    IntArray,
    InvalidInput,
    check_choice,
    check_integer,
    check_seed,
)
from keyhole.game.comparators import Comparator, comparator_for, new_sums
from keyhole.game.log import Log
from keyhole.game.trace import Trace
from keyhole.kernels.compiled import assemble
from keyhole.kernels.draw import RANKER_STREAM, REVEAL_STREAM, WORLD_STREAM, Draw, stream_of
from keyhole.measures import measure as named_measure
from keyhole.reveals import Full, Top
from keyhole.threads import n_cores, play_runs

_SEGMENT_WORK = 4_000_000
"""Items ranked between two reports of progress: a fraction of a second."""


class _Board(NamedTuple):
    """What one run writes: buffers of the current round, totals, and the curve."""

    ranking: Any
    relevance: Any
    gains: Any
    values: Any
    totals: Any
    cursor: Any
    scores: Any
    best: Any
    snapshots: Any
    offsets: Any


def _round_loop(
    rank: Any,
    update: Any,
    relevance_of: Any,
    reveal: Any,
    prepare: Any,
    score: Any,
    observe: Any,
    best: Any,
) -> Callable[..., None]:
    def play_rounds(
        params: Any,
        state: Any,
        works: Any,
        seed: int,
        run: int,
        world_run: int,
        features: Any,
        checkpoints: Any,
        board: Any,
        sums: Any,
        log: Any,
        first: int,
        end: int,
    ) -> None:
        ranker_params, world_params, reveal_params, measure_params, comparator_params = params
        work, scratch = works
        ranker_stream = stream_of(RANKER_STREAM, run)
        world_stream = stream_of(WORLD_STREAM, world_run)
        reveal_stream = stream_of(REVEAL_STREAM, run)
        ranking, relevance, gains, values = (
            board.ranking,
            board.relevance,
            board.gains,
            board.values,
        )
        total, cursor = board.totals[0], board.cursor[0]
        for t in range(first, end):
            draw = Draw(seed, ranker_stream, t)
            relevance_of(world_params, Draw(seed, world_stream, t), relevance)
            explored, propensity = rank(ranker_params, state, draw, features, ranking, work)
            reveal(reveal_params, Draw(seed, reveal_stream, t), relevance, ranking, values)
            seen = Seen(draw, features, ranking, explored, propensity, values)
            update(ranker_params, state, seen, work)
            offset, norm = prepare(measure_params, relevance, gains, scratch)
            total += score(measure_params, gains, offset, norm, ranking)
            observe(comparator_params, gains, offset, norm, sums)
            if t < log.rounds.shape[0]:
                log.rounds[t] = t
                log.explored[t] = explored
                log.propensities[t] = propensity
                for position in range(ranking.shape[0]):
                    log.rankings[log.starts[t] + position] = ranking[position]
                    log.values[log.starts[t] + position] = values[position]
            if t + 1 == checkpoints[cursor]:
                board.scores[cursor] = total
                board.best[cursor] = best(comparator_params, sums)
                if cursor < board.snapshots.shape[0]:
                    board.offsets[cursor] = sums.offset[0]
                    for index in range(sums.sums.shape[0]):
                        board.snapshots[cursor, index] = sums.sums[index]
                cursor += 1
        board.totals[0], board.cursor[0] = total, cursor

    return play_rounds


def checkpoints_of(rounds: int, n_points: int | None = 200) -> IntArray:
    """Return the round counts at which a curve is recorded.

    Half of them are evenly spaced and half geometrically; all rounds if ``n_points`` is None
    or at least ``rounds``.
    """
    if n_points is None or n_points >= rounds:
        return np.arange(1, rounds + 1)
    even = np.linspace(0, rounds, n_points // 2 + 1)[1:]
    geometric = np.geomspace(1, rounds, n_points - n_points // 2)
    return np.unique(np.concatenate([even, geometric]).round().astype(np.int64))


def check_game(ranker: Ranker, world: World, reveal: Reveal, measure: Measure, rounds: int) -> None:
    """Raise unless the ranker can play this game."""
    check_integer(rounds, "`rounds`", at_least=1, at_most=MAX_ROUND - 1)
    if world.length is not None and rounds > world.length:
        raise InvalidInput(
            f"`rounds` must be at most the {world.length} recorded ones, got {rounds}."
        )
    for name, own, given in (
        ("n_items", ranker.n_items, world.n_items),
        ("n_features", ranker.n_features, world.n_features),
    ):
        if own != given:
            raise InvalidInput(
                f"`{name}` of {type(ranker).__name__} must be {given}, as in the world, got {own}."
            )
    shown = reveal.depth(world.n_items)
    needed = min(ranker.depth, world.n_items)
    if shown < needed:
        raise FeedbackTooSmall(
            f"{type(ranker).__name__} needs the relevance of the first {needed} of "
            f"{world.n_items} positions, but {reveal} shows only {shown}."
        )
    for judge, largest in ((ranker, ranker.max_grade), (measure, measure.max_grade)):
        if world.max_grade > largest:
            raise InvalidInput(
                f"`max_grade` of {type(judge).__name__} must be at least {world.max_grade:g}, the "
                f"largest relevance in the world, got {largest:g}."
            )
    if np.isnan(measure.params(world.n_items).empty):
        raise InvalidInput("`empty` of a measure must be a number in a game: no list is skipped.")


class _Game(NamedTuple):
    """Everything the runs of one call of :func:`play` share."""

    ranker: Ranker
    world: World
    reveal: Reveal
    measure: Measure
    kernel: MeasureKernel
    comparator: Comparator
    rounds: int
    seed: int
    same_users: bool
    checkpoints: IntArray
    final: bool
    record: bool


T = TypeVar("T")


class _Run(NamedTuple):
    scores: FloatArray
    best: FloatArray
    state: dict[str, Any]
    log: Log | None


def _play_run(game: _Game, run: int, report: Callable[[int], None], stop: Event) -> _Run:
    ranker, world, n_items = game.ranker, game.world, game.world.n_items
    n_points, n_sums = len(game.checkpoints), game.comparator.n_sums
    measure_params = game.measure.params(n_items)
    play_rounds = assemble(
        _round_loop,
        ranker.kernel.rank,
        ranker.kernel.update,
        world.kernel.relevance,
        game.reveal.kernel.reveal,
        *game.kernel,
        game.comparator.observe,
        game.comparator.best,
    )
    params = (
        ranker.params,
        world.params,
        game.reveal.params,
        measure_params,
        game.comparator.params,
    )
    state = ranker.kernel.init(ranker.params, n_items, 0)
    works = (ranker.kernel.work(ranker.params, n_items), measure_work(n_items))
    board = _Board(
        np.empty(n_items, np.int64),
        np.empty(n_items),
        np.empty(n_items),
        np.empty(n_items),
        np.zeros(1),
        np.zeros(1, np.int64),
        np.empty(n_points),
        np.empty(n_points),
        np.empty((n_points if game.final else 0, n_sums)),
        np.empty(n_points if game.final else 0),
    )
    sums = new_sums(n_sums)
    log = Log.empty(game.seed, run, game.rounds if game.record else 0, n_items)
    step = max(1, _SEGMENT_WORK // max(n_items, n_sums))
    for first in range(0, game.rounds, step):
        if stop.is_set():
            break
        end = min(first + step, game.rounds)
        play_rounds(
            params,
            state,
            works,
            game.seed,
            run,
            0 if game.same_users else run,
            no_features(n_items),
            game.checkpoints,
            board,
            sums,
            log,
            first,
            end,
        )
        report(end - first)
    best = board.best
    if game.final and game.comparator.kind != "none":
        ranking = game.comparator.best_ranking(sums.sums)
        best = game.comparator.scores_of(ranking, board.snapshots, board.offsets)
    return _Run(board.scores, best, state._asdict(), log if game.record else None)


def play(
    ranker: Ranker,
    world: World,
    *,
    reveal: Reveal | None = None,
    measure: str | Measure = "DCG",
    rounds: int,
    seed: int = 0,
    runs: int = 1,
    same_users: bool = False,
    comparator: str = "prefix",
    n_points: int | None = 200,
    record: bool = False,
    n_threads: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> Trace:
    """Play whole games in compiled code and return their curves.

    Parameters
    ----------
    ranker
        Its settings are used; every run starts from a fresh state.
    world, reveal, measure
        Where relevance comes from, what is shown of it (default: as much as the ranker
        needs), and how rankings are judged.
    rounds, seed, runs
        Length and number of the games; run i of a seed is the same whatever ``runs`` is.
    same_users
        Whether all runs meet the same users, so that only the ranker's draws differ.
    comparator
        Regret at a checkpoint is against the best ranking of the rounds so far (``prefix``)
        or of the whole game (``final``).
    n_points
        Checkpoints of the curve; None for every round. Memory does not depend on ``rounds``
        otherwise.
    record
        Keep a log of every run, to replay.
    n_threads
        Runs played at once; default, the cores at hand. It changes no result.
    progress
        Called with the number of rounds played since the last call, from one thread at a time.

    Examples
    --------
    >>> from keyhole import Flips, RTopK, play
    >>> trace = play(RTopK(5, horizon=1000), Flips(5, n_relevant=2), rounds=1000, runs=2)
    >>> trace.average_regret.mean > 0
    True
    """
    measure = named_measure(measure)
    if reveal is None:
        reveal = Full() if ranker.depth == world.n_items else Top(max(ranker.depth, 1))
    check_game(ranker, world, reveal, measure, rounds)
    check_choice(comparator, "`comparator`", ("prefix", "final"))
    runs = check_integer(runs, "`runs`", at_least=1)
    if n_points is not None:
        check_integer(n_points, "`n_points`", at_least=2)
    game = _Game(
        ranker,
        world,
        reveal,
        measure,
        measure.kernel_for(world.is_binary),
        comparator_for(measure, world.n_items, world.is_binary),
        rounds,
        check_seed(seed),
        same_users,
        checkpoints_of(rounds, n_points),
        comparator == "final",
        record,
    )
    began = time.perf_counter()
    finished = play_runs(partial(_play_run, game), runs, n_threads or n_cores(), progress)
    return Trace(
        game.checkpoints,
        np.array([run.scores for run in finished]),
        np.array([run.best for run in finished]),
        measure.is_loss,
        comparator,
        game.comparator.kind,
        tuple(run.state for run in finished),
        tuple(run.log for run in finished if run.log is not None),
        time.perf_counter() - began,
    )
