"""The compiled loop: one for fixed lists and query-document lists."""

from collections.abc import Callable
from typing import Any, NamedTuple

from keyhole.contracts.rankers import Ranker, Seen
from keyhole.contracts.reveals import Reveal
from keyhole.contracts.worlds import World, whole_matrix
from keyhole.game.comparators import Comparator
from keyhole.kernels.compiled import assemble, kernel, rare_kernel
from keyhole.kernels.draw import RANKER_STREAM, REVEAL_STREAM, WORLD_STREAM, Draw, stream_of


class GameBuffers(NamedTuple):
    """What one run writes: buffers of the current round, totals, and the curve."""

    ranking: Any
    note: Any
    relevance: Any
    gains: Any
    values: Any
    totals: Any
    cursor: Any
    scores: Any
    greedy: Any
    best: Any
    snapshots: Any
    offsets: Any


@kernel
def _as_shown(params: Any, state: Any, features: Any, judge: Any, shown: float) -> float:
    """Stand in for the greedy score of a ranker that never explores."""
    return shown


@kernel
def _not_asked(params: Any, state: Any, features: Any, judge: Any, shown: float) -> float:
    """Stand in for the greedy score where nobody asked for it."""
    return 0.0


def _greedy_score(greedy: Any, score: Any) -> Callable[..., float]:
    def score_greedy(params: Any, state: Any, features: Any, judge: Any, shown: float) -> float:
        explored, gains, offset, norm, measure_params, work, out = judge
        if not explored:
            return shown
        greedy(params, state, features, out, work)
        return score(measure_params, gains, offset, norm, out)

    return score_greedy


@rare_kernel
def write_down(log: Any, row: int, seen: Any) -> None:
    """Put what a round showed and revealed into a log."""
    place, n_items = log.starts[row], seen.ranking.shape[0]
    log.rounds[row] = seen.draw.round
    log.explored[row] = seen.explored
    log.propensities[row] = seen.propensity
    for index in range(seen.note.shape[0]):
        log.notes[row, index] = seen.note[index]
    log.starts[row + 1] = place + n_items
    for position in range(n_items):
        log.rankings[place + position] = seen.ranking[position]
        log.values[place + position] = seen.values[position]
        for column in range(log.features.shape[1]):
            log.features[place + position, column] = seen.features[position, column]


@rare_kernel
def mark(board: Any, cursor: int, total: float, greedy_total: float, sums: Any) -> None:
    """Put a point onto the curve."""
    board.scores[cursor] = total
    board.greedy[cursor] = greedy_total
    if cursor < board.snapshots.shape[0]:
        board.offsets[cursor] = sums.offset[0]
        for index in range(sums.sums.shape[0]):
            board.snapshots[cursor, index] = sums.sums[index]


def _round_loop(
    changing: bool,
    prepare_list: Any,
    rank: Any,
    take_note: Any,
    update: Any,
    score_greedy: Any,
    relevance_of: Any,
    query: Any,
    upcoming: Any,
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
        matrix: Any,
        rows: Any,
        checkpoints: Any,
        board: Any,
        sums: Any,
        log: Any,
        log_first: int,
        begin_round: int,
        end_round: int,
    ) -> None:
        # `rows` are the matrix that a world may write to, read-only as in all calls of rankers.
        ranker_params, world_params, reveal_params, measure_params, comparator_params = params
        work, scratch = works
        ranker_stream = stream_of(RANKER_STREAM, run)
        world_stream = stream_of(WORLD_STREAM, world_run)
        reveal_stream = stream_of(REVEAL_STREAM, run)
        total, greedy_total, cursor = board.totals[0], board.totals[1], board.cursor[0]
        features, ranking, values = rows, board.ranking, board.values
        relevance, gains, spare = board.relevance, board.gains, scratch.order
        for t in range(begin_round, end_round):
            draw, users = Draw(seed, ranker_stream, t), Draw(seed, world_stream, t)
            later, end_later = 0, 0
            if changing:
                begin, stop = query(world_params, users, matrix)
                features, n_items = rows[begin:stop], stop - begin
                ranking, values = board.ranking[:n_items], board.values[:n_items]
                relevance, gains = board.relevance[:n_items], board.gains[:n_items]
                spare = scratch.order[:n_items]
                later, end_later = upcoming(world_params, Draw(seed, world_stream, t + 1), matrix)
            relevance_of(world_params, users, relevance)
            prepare_list(ranker_params, state, features, rows[later:end_later], work)
            explored, propensity = rank(ranker_params, state, draw, features, ranking, work)
            take_note(ranker_params, work, board.note)
            reveal(reveal_params, Draw(seed, reveal_stream, t), relevance, ranking, values)
            offset, norm = prepare(measure_params, relevance, gains, scratch)
            shown = score(measure_params, gains, offset, norm, ranking)
            total += shown
            judge = (explored, gains, offset, norm, measure_params, work, spare)
            greedy_total += score_greedy(ranker_params, state, features, judge, shown)
            seen = Seen(draw, features, ranking, explored, propensity, values, board.note)
            update(ranker_params, state, seen, work)
            observe(comparator_params, gains, offset, norm, sums)
            if t - log_first < log.rounds.shape[0]:
                write_down(log, t - log_first, seen)
            if t + 1 == checkpoints[cursor]:
                board.best[cursor] = best(comparator_params, sums)
                mark(board, cursor, total, greedy_total, sums)
                cursor += 1
        board.totals[0], board.totals[1], board.cursor[0] = total, greedy_total, cursor

    return play_rounds


def _loop_of_one_list(*parts: Any) -> Callable[..., None]:
    return _round_loop(False, *parts)


def _loop_of_lists(*parts: Any) -> Callable[..., None]:
    return _round_loop(True, *parts)


def loop_of(
    ranker: Ranker,
    world: World,
    reveal: Reveal,
    measure: Any,
    comparator: Comparator,
    *,
    greedy: bool,
) -> Callable[..., None]:
    """Return the loop of a game, compiled for the kernels of its parts.

    ``greedy``: add up what would have been scored without exploring as well.
    """
    own = ranker.kernel
    score_greedy: Any = _as_shown if greedy else _not_asked
    if greedy and own.greedy is not None:
        score_greedy = assemble(_greedy_score, own.greedy, measure.score, inline=True)
    changing = world.kernel.query is not whole_matrix
    return assemble(
        _loop_of_lists if changing else _loop_of_one_list,
        own.prepare,
        own.rank,
        own.note,
        own.update,
        score_greedy,
        *world.kernel,
        reveal.kernel.reveal,
        *measure,
        comparator.observe,
        comparator.best,
    )
