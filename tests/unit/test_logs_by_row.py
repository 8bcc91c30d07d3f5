"""A log is its rows, whatever is done to it: each field of each row, and no more rows than that."""

from typing import Any

import numpy as np
import pytest

from keyhole.base.errors import FeedbackTooSmall, InvalidInput
from keyhole.base.files import write_arrays
from keyhole.contracts.lists import Feedback, Impression, Query
from keyhole.game.batched import learn_many, rank_many
from keyhole.game.log import Log, replay
from keyhole.rankers import ranker

pytestmark = pytest.mark.interpreted

FIELDS = Log._fields[2:]
LENGTHS = [3, 1, 4, 2, 3, 5, 2]


def some_log(seed=7, run=2, lengths=LENGTHS, n_features=2, note_size=3, dtype: Any = np.float32):
    """Rows of which each number is another one's, in rounds that are in no order."""
    numbers, n_rows = np.random.default_rng(seed), len(lengths)
    starts = np.cumsum([0, *lengths])
    values = numbers.random(starts[-1])
    values[numbers.random(starts[-1]) < 0.3] = np.nan
    return Log(
        seed, run, numbers.permutation(50)[:n_rows], numbers.random(n_rows) < 0.5,
        numbers.random(n_rows), starts,
        np.concatenate([numbers.permutation(length) for length in lengths]), values,
        numbers.random((starts[-1], n_features)).astype(dtype),
        numbers.random((n_rows, note_size)),
    )  # fmt: skip


def rows_of(log):
    """Return each row as plain data."""
    rows = []
    for row in range(len(log.rounds)):
        where = slice(int(log.starts[row]), int(log.starts[row + 1]))
        rows.append(
            (
                int(log.rounds[row]), bool(log.explored[row]), float(log.propensities[row]),
                log.rankings[where].tolist(),
                [None if np.isnan(value) else float(value) for value in log.values[where]],
                log.features[where].tolist(), log.notes[row].tolist(),
            )
        )  # fmt: skip
    return rows


def assert_whole(log, n_rows, n_entries, dtype: Any = np.float32):
    """Check that a log holds nothing beside its rows."""
    assert [len(getattr(log, name)) for name in FIELDS] == [
        n_rows, n_rows, n_rows, n_rows + 1, n_entries, n_entries, n_entries, n_rows
    ]  # fmt: skip
    assert (int(log.starts[0]), int(log.starts[-1])) == (0, n_entries)
    assert log.features.dtype == dtype


@pytest.mark.parametrize(
    ("first", "end"), [(0, None), (0, 3), (2, 5), (4, None), (6, 7), (3, 3), (0, 0), (7, None)]
)
def test_a_part_is_its_rows(first, end):
    log = some_log()
    part = log.part(first, end)
    last = 7 if end is None else end
    assert rows_of(part) == rows_of(log)[first:last]
    assert_whole(part, last - first, sum(LENGTHS[first:last]))
    assert (part.seed, part.run) == (7, 2)


@pytest.mark.parametrize(
    ("first", "end", "sentence"),
    [
        (-1, 2, "the first row of a log must be an integer between 0 and 7"),
        (8, None, "the first row of a log must be an integer between 0 and 7"),
        (3, 2, "the end of the rows of a log must be an integer between 3 and 7"),
        (3, 8, "the end of the rows of a log must be an integer between 3 and 7"),
    ],
)
def test_parts_that_there_are_not(first, end, sentence):
    log = some_log()
    assert len(log.part(3, 7).rounds) == 4
    with pytest.raises(InvalidInput, match=sentence):
        log.part(first, end)


def test_logs_that_go_on_have_the_rows_of_both():
    log, lengths = some_log(), [2, 4, 1]
    rest = some_log(lengths=lengths)._replace(rounds=np.array([3, 1, 2]))
    whole = log.followed_by(rest)
    assert rows_of(whole) == rows_of(log) + rows_of(rest)
    assert_whole(whole, 10, sum(LENGTHS) + 7)
    assert rows_of(log.part(0, 4).followed_by(log.part(4))) == rows_of(log)
    for changed in ({"seed": 8}, {"run": 1}):
        with pytest.raises(InvalidInput, match="A log of seed 7 and run 2 must go on with the"):
            log.followed_by(rest._replace(**changed))
    with pytest.raises(InvalidInput, match="A log must go on with a log"):
        log.followed_by([rest])


def test_room_that_is_left_is_dropped():
    room = Log.empty(4, 1, 3, 5, 2, np.float32, 1)
    assert_whole(room, 3, 15)
    assert (room.seed, room.run, room.notes.shape) == (4, 1, (3, 1))
    assert np.isnan(room.propensities).all()
    assert np.isnan(room.values).all()
    room.features[:], room.propensities[:] = 0.5, [0.25, 0.5, 0.75]
    room.rankings[:] = np.tile(np.arange(5), 3)
    shorter = room._replace(starts=np.array([0, 2, 5, 6]))
    trimmed = shorter.trimmed()
    assert_whole(trimmed, 3, 6)
    assert rows_of(trimmed) == rows_of(shorter)


@pytest.mark.parametrize("kind", ["as it is", "double", "no notes", "no features"])
def test_files_and_impressions_keep_every_bit(kind, tmp_path):
    kinds: dict[str, dict[str, Any]] = {
        "double": {"dtype": np.float64},
        "no notes": {"note_size": 0},
        "no features": {"n_features": 0},
    }
    log = some_log(**kinds.get(kind, {}))
    log.save(tmp_path / "log.npz")
    again = Log.load(tmp_path / "log.npz")
    assert rows_of(again) == rows_of(log)
    assert (again.seed, again.run) == (7, 2)
    assert_whole(again, 7, sum(LENGTHS), log.features.dtype)
    for row, expected in enumerate(rows_of(log)):
        impression, feedback = log.pair(row)
        features = impression.query.features
        n_items = len(expected[3])
        assert expected == (
            impression.round, impression.explored, impression.propensity,
            impression.ranking.tolist(),
            [None if np.isnan(value) else value for value in feedback.values],
            [[]] * n_items if features is None else features.tolist(), impression.note.tolist(),
        )  # fmt: skip
        assert impression.query.n_items == n_items
    with pytest.raises(InvalidInput, match="a row of a log must be an integer between 0 and 6"):
        log.pair(7)


def test_logs_of_before_there_were_notes_are_read(tmp_path):
    log = some_log(note_size=0)
    arrays = log._asdict()
    del arrays["notes"]
    write_arrays(tmp_path / "old.npz", arrays)
    assert rows_of(Log.load(tmp_path / "old.npz")) == rows_of(log)
    del arrays["values"]
    write_arrays(tmp_path / "older.npz", arrays)
    with pytest.raises(
        InvalidInput, match=r"must be a log saved by Log\.save: 'values' is missing"
    ):
        Log.load(tmp_path / "older.npz")


# ------------------------------------------------------------------ rounds that come late


def test_a_log_of_impressions_has_their_notes_and_a_replay_learns_from_them():
    """One that takes notes of its draws and learns from them: order and rounds are the log's."""
    learner = ranker("keystone", n_items=5, k=2, seed=3)
    pairs = []
    for round in (4, 0, 9, 2, 7):
        impression = learner.rank(round=round)
        values = np.full(5, np.nan)
        values[:2] = np.arange(5)[impression.ranking][:2] % 2
        pairs.append((impression, Feedback(values)))
    log = Log.of(learner, pairs)
    assert 0 < log.notes.shape[1] == learner.kernel.note_size(learner.params)
    for row, (impression, feedback) in enumerate(pairs):
        shown, said = log.pair(row)
        assert np.array_equal(shown.note, impression.note)
        assert shown.round == impression.round
        assert np.array_equal(said.values, feedback.values, equal_nan=True)
    by_hand = learner.fresh()
    for impression, feedback in pairs:
        by_hand.update(impression, feedback)
    again = replay(learner, log)
    assert again.next_round == by_hand.next_round == 10
    for one, other in zip(again.state, by_hand.state, strict=True):
        assert np.array_equal(one, other)
    halves = replay(learner, log.part(3), start=replay(learner, log.part(0, 3)).state_dict())
    assert halves.next_round == 10
    for one, other in zip(halves.state, by_hand.state, strict=True):
        assert np.array_equal(one, other)


KINDS: dict[str, dict[str, Any]] = {
    "rtopk": {"horizon": 60},
    "ftpl": {"horizon": 7, "measure": "SumLoss"},  # of which rounds 5 to 8 are of two epochs
    "keystone": {"k": 2},
    "toprank": {},
}


def learn(learner, shown, values):
    return learn_many(
        learner,
        [one.round for one in shown],
        np.array([one.ranking for one in shown]),
        [one.explored for one in shown],
        [one.propensity for one in shown],
        values,
        np.array([one.note for one in shown]),
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("order", [[0, 1, 2, 3], [3, 1, 0, 2], [1, 3, 2, 0], [2, 0, 3, 1]])
def test_the_next_round_follows_the_latest_whatever_came_last(order, kind):
    """As it does one by one: rounds 5 to 8, of which none, some or all were shown here before."""
    for shown_before in (0, 3, 20):
        elsewhere, at_once, apart = (ranker(kind, n_items=4, **KINDS[kind]) for _ in range(3))
        shown = rank_many(elsewhere, 5, 4)
        if shown_before:
            rank_many(at_once, 0, shown_before)
            rank_many(apart, 0, shown_before)
        values = np.array([[1.0, 0.0, 1.0, 0.0]] * 4)
        late = [shown[row] for row in order]
        assert learn(at_once, late, values)
        for one, value in zip(late, values, strict=True):
            apart.update(one, value)
        assert at_once.next_round == apart.next_round == max(9, shown_before)
        for own, theirs in zip(at_once.state, apart.state, strict=True):
            assert np.array_equal(own, theirs)
    before = at_once.next_round
    assert not learn(at_once, shown, np.array([[np.inf] * 4] * 4))
    assert at_once.next_round == before
    assert learn(at_once, shown, np.array([[0.5] * 4] * 4))


def test_many_rounds_follow_the_round_that_is_asked_for():
    one = ranker("rtopk", n_items=4, horizon=60)
    assert [shown.round for shown in rank_many(one, 7, 3)] == [7, 8, 9]
    assert one.next_round == 10
    rank_many(one, 2, 3)
    assert one.next_round == 10


# ------------------------------------------------------------------ what a replay must be given


def test_a_log_must_be_of_its_ranker_and_shows_what_it_needs():
    """What is refused for one thing is replayed where that alone is mended."""
    learner = ranker("keystone", n_items=4, k=2)
    shown = [learner.rank(round=round) for round in range(3)]
    seen = np.array([1.0, 0.0, np.nan, np.nan])
    log = Log.of(learner, [(impression, Feedback(seen)) for impression in shown])
    assert replay(learner, log).next_round == 3
    hidden = log.values.copy()
    hidden[5] = np.nan
    with pytest.raises(FeedbackTooSmall, match="the first 2 positions, but the log hides some"):
        replay(learner, log._replace(values=hidden))
    hidden[5], hidden[6] = 0.0, 1.0  # more than it needs
    assert replay(learner, log._replace(values=hidden)).next_round == 3
    refused: list[tuple[dict[str, Any], str]] = [
        (
            {"values": np.where(log.values == 1.0, 1.5, log.values)},
            "no relevance above max_grade=1",
        ),
        ({"features": np.zeros((12, 1))}, "must be of documents with 0 features, got 1"),
        ({"notes": np.zeros((3, log.notes.shape[1] + 1))}, "must have the notes of Keystone"),
    ]
    for change, sentence in refused:
        with pytest.raises(InvalidInput, match=sentence):
            replay(learner, log._replace(**change))
    with pytest.raises(InvalidInput, match="log must be a Log"):
        replay(learner, tuple(log))  # type: ignore[arg-type]


def test_a_log_is_of_impressions_of_one_kind():
    documents = ranker("contextual-rtopk", n_features=2, n_items=3, mix=0.5)
    features = np.random.default_rng(0).random((3, 2))
    pairs = [(documents.rank(Query(n, features[:n])), Feedback.top(1)) for n in (3, 2, 3)]
    log = Log.of(documents, pairs)
    assert np.diff(log.starts).tolist() == [3, 2, 3]
    narrow = Impression(0, Query(3, features[:, :1]), np.arange(3), True, 0.5)
    with pytest.raises(InvalidInput, match="A log must be of documents with one number of feat"):
        Log.of(documents, [*pairs, (narrow, Feedback.top(1))])
    noted = Impression(0, Query(3, features), np.arange(3), True, 0.5, np.ones(1))
    with pytest.raises(InvalidInput, match="note of the impression must be the 0 finite numbers"):
        Log.of(documents, [*pairs, (noted, Feedback.top(1))])
    fine = Impression(0, Query(3, features), np.arange(3), True, 0.5)
    assert len(Log.of(documents, [*pairs, (fine, Feedback.top(1))]).rounds) == 4
