"""Many rounds of a ranker of one list in one call.

To call a kernel from Python takes ten times as long as a short list takes in it: whoever has many
rounds to rank, or to learn from, pays that once.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from keyhole.base.errors import FloatArray, IntArray
from keyhole.contracts.lists import Impression, Query
from keyhole.contracts.rankers import Ranker, Seen
from keyhole.kernels.checking import all_finite, is_ranking
from keyhole.kernels.compiled import assemble
from keyhole.kernels.draw import RANKER_STREAM, Draw, stream_of


def _rank_loop(prepare: Any, rank: Any, take_note: Any) -> Callable[..., None]:
    def rank_rounds(
        params: Any,
        state: Any,
        work: Any,
        features: Any,
        seed: int,
        stream: int,
        first: int,
        rankings: Any,
        explored: Any,
        propensities: Any,
        notes: Any,
    ) -> None:
        for row in range(rankings.shape[0]):
            draw = Draw(seed, stream, first + row)
            prepare(params, state, features, features[:0], work)
            explored[row], propensities[row] = rank(
                params, state, draw, features, rankings[row], work
            )
            take_note(params, work, notes[row])

    return rank_rounds


def rank_many(ranker: Ranker, first: int, n_rounds: int) -> list[Impression]:
    """Return what a ranker of one list would show in rounds that follow each other.

    It is what ``ranker.rank(round=...)`` returns for each, as long as nothing is learnt meanwhile.
    """
    with ranker.lock:
        query, kernel = ranker.own_list, ranker.kernel
        rankings = np.empty((n_rounds, query.n_items), np.int64)
        explored, propensities = np.empty(n_rounds, np.bool_), np.empty(n_rounds)
        notes = np.empty((n_rounds, kernel.note_size(ranker.params)))
        rank_rounds = assemble(_rank_loop, kernel.prepare, kernel.rank, kernel.note)
        rank_rounds(
            ranker.params,
            ranker.state,
            ranker.scratch(query.n_items),
            ranker.features_of(query),
            ranker.seed,
            stream_of(RANKER_STREAM, ranker.run),
            first,
            rankings,
            explored,
            propensities,
            notes,
        )
        ranker.next_round = max(ranker.next_round, first + n_rounds)
    rows = zip(rankings, explored.tolist(), propensities.tolist(), notes, strict=True)
    return [_impression(row, query, *each) for row, each in enumerate(rows, first)]


def _impression(
    round: int,
    query: Query,
    ranking: IntArray,
    explored: bool,
    propensity: float,
    note: FloatArray,
) -> Impression:
    """Return an impression; its own constructor takes as long as to rank a short list."""
    made = object.__new__(Impression)
    fields = made.__dict__
    fields["round"], fields["query"], fields["ranking"] = round, query, ranking
    fields["explored"], fields["propensity"], fields["note"] = explored, propensity, note
    return made


def _learn_loop(prepare: Any, update: Any) -> Callable[..., bool]:
    def learn_rounds(
        params: Any,
        state: Any,
        work: Any,
        features: Any,
        floats: Any,
        taken: Any,
        seed: int,
        stream: int,
        rounds: Any,
        rankings: Any,
        explored: Any,
        propensities: Any,
        values: Any,
        notes: Any,
    ) -> bool:
        for row in range(rounds.shape[0]):
            taken[:] = False
            if not is_ranking(rankings[row], taken):
                return False
            prepare(params, state, features, features[:0], work)
            seen = Seen(
                Draw(seed, stream, rounds[row]),
                features,
                rankings[row],
                explored[row],
                propensities[row],
                values[row],
                notes[row],
            )
            update(params, state, seen, work)
            if not all_finite(floats):
                return False
        return True

    return learn_rounds


def learn_many(
    ranker: Ranker,
    rounds: Sequence[int],
    rankings: IntArray,
    explored: Sequence[bool],
    propensities: Sequence[float],
    values: FloatArray,
    notes: FloatArray,
    *,
    undo_if: Callable[[], bool] = lambda: False,
) -> bool:
    """Learn from rounds of one list as if from one after the other; return whether it was done.

    Where one of them would be refused, nothing has changed: ``update`` says of each what is wrong.
    Nor has it where ``undo_if`` holds of what the ranker then is.
    """
    with ranker.lock:
        state, pieces, kernel = ranker.state, ranker.pieces, ranker.kernel
        floats = next((piece for piece in pieces if piece.dtype == np.float64), np.empty(0))
        before = [piece.copy() for piece in pieces]
        learn_rounds = assemble(_learn_loop, kernel.prepare, kernel.update)
        done = learn_rounds(
            ranker.params,
            state,
            ranker.scratch(ranker.n_items),
            ranker.features_of(ranker.own_list),
            floats,
            np.empty(ranker.n_items, np.bool_),
            ranker.seed,
            stream_of(RANKER_STREAM, ranker.run),
            np.array(rounds, np.int64),
            rankings,
            np.array(explored, np.bool_),
            np.array(propensities, np.float64),
            values,
            notes,
        )
        if not done or undo_if():
            done = False
            for piece, kept in zip(pieces, before, strict=True):
                piece[...] = kept
        else:
            ranker.next_round = max(ranker.next_round, int(max(rounds)) + 1)
    return bool(done)
