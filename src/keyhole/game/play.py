"""Games: rankers meet worlds, are shown what a reveal shows, and are judged by a measure.

``play`` runs whole games in compiled code, many at once, and calls the kernels that the
per-round API calls. Lists may be fixed or come with every query, from memory or from a stream.
"""

import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from keyhole.base.errors import (
    MAX_ROUND,
    FeedbackTooSmall,
    FloatArray,
    IntArray,
    InvalidInput,
    check_choice,
    check_integer,
    check_seed,
    shown,
)
from keyhole.base.limits import check_memory
from keyhole.base.threads import Stop, n_cores, play_runs
from keyhole.contracts.lists import read_only
from keyhole.contracts.measures import Measure, measure_work
from keyhole.contracts.rankers import Ranker
from keyhole.contracts.reveals import Reveal
from keyhole.contracts.states import are_finite, state_arrays
from keyhole.contracts.worlds import World
from keyhole.game.comparators import Comparator, Sums, comparator_for, new_sums
from keyhole.game.log import Log
from keyhole.game.loop import GameBuffers, loop_of
from keyhole.game.run_end import RunEnd
from keyhole.game.trace import Trace
from keyhole.game.trace_files import COMPARATORS
from keyhole.kernels.native import NativeCode
from keyhole.measures import measure as named_measure
from keyhole.reveals import least_reveal

_BYTES_PER_RUN = 2000
"""What a run takes besides its state, curve and log."""
_SEGMENT_WORK = 4_000_000
"""Items ranked, or features looked at, between two reports of progress: part of a second."""


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


def check_playable(
    ranker: Ranker, world: World, reveal: Reveal, measure: Measure, rounds: int
) -> None:
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
    ranker_described: dict[str, Any]
    world: World
    reveal: Reveal
    measure: Measure
    comparator: Comparator
    play_rounds: Callable[..., None]
    begin: int
    end: int
    seed: int
    same_users: bool
    checkpoints: IntArray
    final: bool
    record: bool
    start: Trace | None


def _new_board(game: _Game, before: RunEnd | None) -> GameBuffers:
    n_items, n_points = game.world.n_items, len(game.checkpoints)
    n_kept = n_points if game.final else 0
    return GameBuffers(
        np.empty(n_items, np.int64),
        np.empty(game.ranker.kernel.note_size(game.ranker.params)),
        np.empty(n_items),
        np.empty(n_items),
        np.empty(n_items),
        np.zeros(2) if before is None else before.totals.copy(),
        np.zeros(1, np.int64),
        np.empty(n_points),
        np.empty(n_points),
        np.empty(n_points),
        np.empty((n_kept, game.comparator.n_sums)),
        np.empty(n_kept),
    )


def _play_run(game: _Game, run: int, report: Callable[[int], None], stop: Stop) -> RunEnd:
    ranker, world, comparator = game.ranker, game.world, game.comparator
    n_items = world.n_items
    before = None if game.start is None else game.start.ends[run]
    state = ranker.kernel.init(ranker.params, n_items, ranker.n_features)
    sums = new_sums(comparator.n_sums)
    if before is not None:
        state = ranker.fresh().load_state_dict(before.state).state
        _check_continues(comparator, before)
        sums.sums[:], sums.offset[:] = before.sums.sums, before.sums.offset
    works = (ranker.kernel.work(ranker.params, n_items), measure_work(n_items))
    board = _new_board(game, before)
    measure_params = game.measure.params(n_items)
    n_logged = game.end - game.begin if game.record else 0
    note_size = len(board.note)
    log = Log.empty(game.seed, run, n_logged, n_items, note_size=note_size)
    for part, first_of_part, end_of_part in world.parts(game.begin, game.end):
        params = (
            ranker.params, part.params, game.reveal.params, measure_params, comparator.params
        )  # fmt: skip
        matrix = part.matrix()
        if game.record and log.features.shape[1] != matrix.shape[1]:
            log = Log.empty(
                game.seed, run, n_logged, n_items, matrix.shape[1], matrix.dtype, note_size
            )
        step = max(1, _SEGMENT_WORK // max(n_items * max(1, matrix.shape[1]), comparator.n_sums))
        for first in range(first_of_part, end_of_part, step):
            if stop.asked:
                break
            end = min(first + step, end_of_part)
            game.play_rounds(
                params, state, works, game.seed, run, 0 if game.same_users else run, matrix,
                read_only(matrix), game.checkpoints, board, sums, log, game.begin, first, end,
            )  # fmt: skip
            if not are_finite(state):
                raise InvalidInput(
                    f"The game must leave the state of {type(ranker).__name__} finite, but by "
                    f"round {end} it is not: features or relevance are too large for its settings."
                )
            report(end - first)
    return RunEnd(
        state_arrays(
            {**game.ranker_described, "seed": game.seed, "run": run}, state._asdict(), game.end
        ),
        board.totals,
        sums,
        board.scores,
        board.greedy,
        *_best_scores(game, board, sums, before),
        log.trimmed() if game.record else None,
    )


def _check_continues(comparator: Comparator, before: RunEnd) -> None:
    """Raise unless an earlier part of a game was compared as this one is."""
    n_sums = len(before.sums.sums)
    if n_sums != comparator.n_sums:
        raise InvalidInput(
            f"`start` must be of a call with the same world and measure, whose comparator keeps "
            f"{comparator.n_sums} sums, got {n_sums}."
        )


def _best_scores(
    game: _Game, board: GameBuffers, sums: Sums, before: RunEnd | None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return what the best ranking scored at the points, and what it was computed of."""
    snapshots, offsets, comparator = board.snapshots, board.offsets, game.comparator
    if not game.final or comparator.kind == "none":
        return board.best, snapshots, offsets
    if before is not None:
        snapshots = np.concatenate([before.snapshots, snapshots])
        offsets = np.concatenate([before.offsets, offsets])
    ranking = comparator.best_ranking(sums.sums)
    return comparator.scores_of(ranking, snapshots, offsets), snapshots, offsets


def play(
    ranker: Ranker,
    world: World,
    *,
    reveal: Reveal | None = None,
    measure: str | Measure | None = None,
    rounds: int,
    seed: int = 0,
    runs: int = 1,
    same_users: bool = False,
    comparator: str = "prefix",
    greedy: bool | None = None,
    n_points: int | None = 200,
    record: bool = False,
    start: Trace | None = None,
    n_threads: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> Trace:
    """Play whole games in compiled code and return their curves.

    Parameters
    ----------
    ranker
        Its settings are used; every run starts from a fresh state.
    world, reveal, measure
        Where lists and relevance come from, what is shown of them (default: as much as the
        ranker needs), and how rankings are judged (default: DCG for a fixed list, NDCG@10 for
        query-document lists).
    rounds, seed, runs
        Length and number of the games; run i of a seed is the same whatever ``runs`` is.
    same_users
        Whether all runs meet the same users, so that only the ranker's draws differ.
    comparator
        Regret at a checkpoint is against the best ranking of the rounds so far (``prefix``)
        or of the whole game (``final``). There is none for query-document lists.
    greedy
        Whether to score also what would have been shown without exploring. Default: for
        query-document lists only, where that costs little.
    n_points
        Checkpoints of the curve; None for every round. Memory does not depend on ``rounds``
        otherwise.
    record
        Keep a log of every run, to replay.
    start
        Go on from the end of an earlier call with the same arguments: with its states, after its
        last round, adding to its totals.
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
    parts: Any = ((ranker, "ranker", Ranker), (world, "world", World))
    for given, noun, base in parts:
        if not isinstance(given, base):
            raise InvalidInput(
                f"`{noun}` must be a {noun} that is made, as by keyhole.{noun}(...), got "
                f"{shown(given)}."
            )
    changing = bool(world.n_features)
    measure = named_measure(("NDCG@10" if changing else "DCG") if measure is None else measure)
    if reveal is None:
        reveal = least_reveal(ranker.depth, world.n_items)
    runs = check_integer(runs, "`runs`", at_least=1)
    if start is not None and not isinstance(start, Trace):
        raise InvalidInput(f"`start` must be what an earlier call returned, got {shown(start)}.")
    if start is not None and start.n_runs != runs:
        raise InvalidInput(f"`start` must have the {runs} runs to go on with, got {start.n_runs}.")
    begin = 0 if start is None else int(start.rounds[-1])
    most = MAX_ROUND - 1 - begin
    end = begin + check_integer(rounds, "`rounds`", at_least=1, at_most=most)
    check_playable(ranker, world, reveal, measure, end)
    check_choice(comparator, "`comparator`", COMPARATORS)
    if n_points is not None:
        check_integer(n_points, "`n_points`", at_least=2)
    compared = comparator_for(measure, world.n_items, world.is_binary, changing=changing)
    judge = measure.kernel_for(world.is_binary and not changing)
    greedy = changing if greedy is None else greedy
    n_kept = end if n_points is None else min(n_points, end)
    per_point = 24.0 + (8.0 * compared.n_sums if comparator == "final" else 0.0)
    logged = 40.0 * rounds * world.n_items if record else 0.0
    per_run = _BYTES_PER_RUN + sum(array.nbytes for array in ranker.state) + logged
    check_memory(
        runs * (per_run + n_kept * per_point), f"{runs} runs with {n_kept} points of a curve each"
    )
    points = checkpoints_of(end, n_points)
    game = _Game(
        ranker, ranker.described(), world, reveal, measure, compared,
        loop_of(ranker, world, reveal, judge, compared, greedy=greedy),
        begin, end, check_seed(seed), same_users, points[points > begin],
        comparator == "final", record, start,
    )  # fmt: skip
    began = time.perf_counter()
    native = NativeCode(game.play_rounds, runs * (end - begin))

    def told(n_rounds: int) -> None:
        native.after(n_rounds)
        if progress is not None:
            progress(n_rounds)

    try:
        finished = play_runs(partial(_play_run, game), runs, n_threads or n_cores(), told)
    finally:
        native.close()
    played = Trace.of(
        game.checkpoints, finished, measure.is_loss, comparator, compared.kind,
        greedy=greedy, seconds=time.perf_counter() - began,
        ranker=ranker.call, world=world.call, measure=measure.label, sees=str(reveal),
    )  # fmt: skip
    return played if start is None else start.followed_by(played)
