"""Learning on query-document lists: the compiled loop over a stream, judged as it goes."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from keyhole.contracts import Measure, Ranker, Reveal, Seen, World, measure_work
from keyhole.errors import FloatArray, IntArray, check_integer, check_seed
from keyhole.game.play import check_game, checkpoints_of
from keyhole.kernels.compiled import assemble, kernel
from keyhole.kernels.draw import RANKER_STREAM, REVEAL_STREAM, WORLD_STREAM, Draw, stream_of
from keyhole.measures import measure as named_measure
from keyhole.reveals import Full, Top

_SEGMENT_WORK = 2_000_000
"""Features looked at between two reports of progress."""


class _Board(NamedTuple):
    """Buffers of the current round, totals and the curve."""

    ranking: Any
    relevance: Any
    gains: Any
    values: Any
    totals: Any
    cursor: Any
    shown: Any
    greedy: Any


def _list_loop(
    prepare_list: Any,
    rank: Any,
    update: Any,
    greedy: Any,
    relevance_of: Any,
    query: Any,
    upcoming: Any,
    reveal: Any,
    prepare: Any,
    score: Any,
) -> Callable[..., None]:
    def learn_rounds(
        params: Any,
        state: Any,
        works: Any,
        seed: int,
        run: int,
        matrix: Any,
        checkpoints: Any,
        board: Any,
        first: int,
        end: int,
    ) -> None:
        ranker_params, world_params, reveal_params, measure_params = params
        work, scratch = works
        ranker_stream = stream_of(RANKER_STREAM, run)
        world_stream = stream_of(WORLD_STREAM, run)
        reveal_stream = stream_of(REVEAL_STREAM, run)
        cursor = board.cursor[0]
        for t in range(first, end):
            draw, users = Draw(seed, ranker_stream, t), Draw(seed, world_stream, t)
            begin, stop = query(world_params, users, matrix)
            features, n_items = matrix[begin:stop], stop - begin
            ranking, values = board.ranking[:n_items], board.values[:n_items]
            relevance, gains = board.relevance[:n_items], board.gains[:n_items]
            relevance_of(world_params, users, relevance)
            offset, norm = prepare(measure_params, relevance, gains, scratch)
            later, end_later = upcoming(world_params, Draw(seed, world_stream, t + 1), matrix)
            prepare_list(ranker_params, state, features, matrix[later:end_later], work)
            explored, propensity = rank(ranker_params, state, draw, features, ranking, work)
            shown = score(measure_params, gains, offset, norm, ranking)
            board.totals[0] += shown
            reveal(reveal_params, Draw(seed, reveal_stream, t), relevance, ranking, values)
            if explored:  # what it would have shown otherwise
                best = scratch.order[:n_items]
                greedy(ranker_params, state, features, best, work)
                board.totals[1] += score(measure_params, gains, offset, norm, best)
            else:
                board.totals[1] += shown
            seen = Seen(draw, features, ranking, explored, propensity, values)
            update(ranker_params, state, seen, work)
            if t + 1 == checkpoints[cursor]:
                board.shown[cursor] = board.totals[0]
                board.greedy[cursor] = board.totals[1]
                cursor += 1
        board.cursor[0] = cursor

    return learn_rounds


@dataclass(frozen=True)
class Learning:
    """Totals at checkpoints of the lists shown, and of those that greed would have shown."""

    rounds: IntArray
    shown: FloatArray
    greedy: FloatArray
    state: dict[str, Any]
    seconds: float

    @property
    def average_score(self) -> float:
        """Running mean over the lists shown."""
        return float(self.shown[-1] / self.rounds[-1])

    @property
    def average_greedy_score(self) -> float:
        """Running mean over the lists that would have been shown without exploring."""
        return float(self.greedy[-1] / self.rounds[-1])


def _joined(start: Learning, rest: Learning) -> Learning:
    return Learning(
        np.concatenate([start.rounds, rest.rounds]),
        np.concatenate([start.shown, rest.shown]),
        np.concatenate([start.greedy, rest.greedy]),
        rest.state,
        start.seconds + rest.seconds,
    )


@kernel
def _as_shown(params: Any, state: Any, features: Any, out: Any, work: Any) -> None:
    """Stand in for the greedy list of a ranker that never explores."""


def learn(
    ranker: Ranker,
    world: World,
    *,
    measure: str | Measure = "NDCG@10",
    reveal: Reveal | None = None,
    rounds: int,
    seed: int = 0,
    n_points: int | None = 200,
    progress: Callable[[int], None] | None = None,
    start: Learning | None = None,
    horizon: int | None = None,
) -> Learning:
    """Let a ranker learn on a stream of lists, in compiled code.

    Parameters
    ----------
    ranker
        Its settings are used; it starts from a fresh state.
    world, measure
        Where lists and relevance come from, and how rankings are judged.
    reveal
        What the ranker sees (default: as much as it needs).
    rounds, seed
        Number of lists; everything random follows from the seed.
    n_points, progress
        See :func:`keyhole.game.play.play`.
    start
        Go on from the end of an earlier call: with its state, after its last round, adding
        to its totals.
    horizon
        Rounds of the whole, of which this call is a part: the points of the curve are
        those of a single call. Default: up to the last round of this one.

    Examples
    --------
    >>> import numpy as np
    >>> from keyhole.rankers.lists import Descent
    >>> from keyhole.worlds.queries import Queries
    >>> features = np.random.default_rng(0).random((400, 3))
    >>> grades = (features[:, 0] > 0.5).astype(float)
    >>> world = Queries(features, grades, np.arange(0, 401, 10))
    >>> learn(Descent(3, 10), world, rounds=2000).average_score > 0.95
    True
    """
    measure = named_measure(measure)
    needed = min(ranker.depth, world.n_items)
    if reveal is None:
        reveal = Full() if needed == world.n_items else Top(max(needed, 1))
    begin = 0 if start is None else int(start.rounds[-1])
    last = begin + check_integer(rounds, "`rounds`", at_least=1)
    check_game(ranker, world, reveal, measure, last)
    seed = check_seed(seed)
    n_items, matrix = world.n_items, world.matrix()
    points = checkpoints_of(last if horizon is None else horizon, n_points)
    checkpoints = np.append(points[(points > begin) & (points < last)], last)
    learn_rounds = assemble(
        _list_loop,
        ranker.kernel.prepare,
        ranker.kernel.rank,
        ranker.kernel.update,
        ranker.kernel.greedy or _as_shown,
        *world.kernel,
        reveal.kernel.reveal,
        *measure.kernel,
    )
    params = (ranker.params, world.params, reveal.params, measure.params(n_items))
    state = ranker.kernel.init(ranker.params, n_items, ranker.n_features)
    if start is not None:
        before = {**start.state, "next_round": np.array(begin)}
        state = ranker.fresh().load_state_dict(before).state
    works = (ranker.kernel.work(ranker.params, n_items), measure_work(n_items))
    board = _Board(
        np.empty(n_items, np.int64),
        np.empty(n_items),
        np.empty(n_items),
        np.empty(n_items),
        np.zeros(2) if start is None else np.array([start.shown[-1], start.greedy[-1]]),
        np.zeros(1, np.int64),
        np.empty(len(checkpoints)),
        np.empty(len(checkpoints)),
    )
    began = time.perf_counter()
    step = max(1, _SEGMENT_WORK // max(1, n_items * matrix.shape[1]))
    for first in range(begin, last, step):
        end = min(first + step, last)
        learn_rounds(params, state, works, seed, ranker.run, matrix, checkpoints, board, first, end)
        if progress is not None:
            progress(end - first)
    seconds = time.perf_counter() - began
    learnt = Learning(checkpoints, board.shown, board.greedy, state._asdict(), seconds)
    return learnt if start is None else _joined(start, learnt)
