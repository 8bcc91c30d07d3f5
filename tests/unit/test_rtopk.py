"""RTop-kF's schedule: blocks, epochs, refusals and warnings."""

import numpy as np
import pytest

from keyhole import Flips, Full, Log, RTopK, Top, play, replay
from keyhole.base.errors import MAX_ROUND, FeedbackTooSmall, InvalidInput

pytestmark = pytest.mark.interpreted


def _header(ranker, round):
    ranker.rank(round=round)
    return ranker.scratch(ranker.n_items).header


@pytest.mark.parametrize("horizon", [1000, 1024, 999_983])
def test_every_round_lies_in_its_own_block(horizon):
    ranker = RTopK(5, horizon=horizon, n_blocks=horizon // 10)
    for round in (0, 1, horizon - 1, horizon, 2**34 + 7, int(2**39 * 1.5), MAX_ROUND - 1):
        header = _header(ranker, round)
        assert header[2] <= round < header[3]


def test_blocks_tile_the_horizon_and_differ_by_at_most_one_round():
    ranker, ends, lengths = RTopK(3, horizon=1000, n_blocks=77), [0], []
    while ends[-1] < 1000:
        header = _header(ranker, ends[-1])
        assert header[2] == ends[-1]
        lengths.append(header[3] - header[2])
        ends.append(int(header[3]))
    assert ends[-1] == 1000
    assert len(lengths) == 77
    assert max(lengths) - min(lengths) == 1


def test_too_many_blocks_are_refused_and_the_default_never_is():
    with pytest.raises(InvalidInput, match=r"must be at most 50, .* ceil\(20/1\)=20 cells, got 51"):
        RTopK(20, horizon=1000, n_blocks=51)
    assert RTopK(20, horizon=25).n_blocks == 1


def test_a_horizon_without_room_to_explore_warns_and_exploits():
    with pytest.warns(UserWarning, match="will not explore"):
        ranker = RTopK(20, horizon=10)
    assert not any(ranker.rank(round=t).explored for t in range(10))


def test_grades_need_room_in_the_tuning():
    from keyhole import Ratings

    crowd = Ratings([[0, 3, 1], [2, 0, 1]])
    with pytest.raises(InvalidInput, match="`max_grade` of RTopK must be at least 3"):
        play(RTopK(3, horizon=100), crowd, rounds=100)
    assert play(RTopK(3, horizon=100, max_grade=3), crowd, rounds=100).average_score.mean > 0


def test_the_horizon_has_a_limit():
    with pytest.raises(InvalidInput, match="`horizon` of RTopK"):
        RTopK(3, horizon=2**70)


def test_replay_takes_the_random_numbers_of_the_log():
    ranker, crowd = RTopK(5, horizon=1000), Flips(5)
    trace = play(ranker, crowd, rounds=1000, seed=7, runs=2, record=True)
    for run, log in enumerate(trace.logs):
        again = replay(ranker, log)
        assert (again.seed, again.run) == (7, run)
        assert np.array_equal(again.state.scores, trace.states[run]["scores"])


def test_a_log_survives_the_disk(tmp_path):
    ranker = RTopK(5, horizon=200)
    log = play(ranker, Flips(5), rounds=200, seed=3, record=True).logs[0]
    log.save(tmp_path / "log.npz")
    again = Log.load(tmp_path / "log.npz")
    assert again.seed == 3
    for mine, theirs in zip(log, again, strict=True):
        assert np.array_equal(mine, theirs, equal_nan=True)
    (tmp_path / "broken.npz").write_bytes(b"PK nonsense")
    with pytest.raises(InvalidInput, match=r"must be a log saved by Log\.save"):
        Log.load(tmp_path / "broken.npz")


def test_replay_refuses_what_does_not_fit():
    log = play(RTopK(5, horizon=50), Flips(5), rounds=50, record=True).logs[0]
    with pytest.raises(InvalidInput, match="`n_items` of the query must be 4, got 5"):
        replay(RTopK(4, horizon=50), log)
    with pytest.raises(FeedbackTooSmall, match="the log hides"):
        replay(RTopK(5, horizon=50, k=2), log)


def test_feedback_that_hides_too_much_changes_nothing():
    ranker = RTopK(5, horizon=50, k=2)
    impression = ranker.rank()
    before = ranker.state_dict()
    with pytest.raises(FeedbackTooSmall, match="first 2 positions"):
        ranker.update(impression, Top(1)(np.ones(5), impression.ranking))
    bad = Full()(np.ones(5), impression.ranking)
    bad.values[1] = -1.0
    with pytest.raises(InvalidInput, match="revealed relevance must be finite and not negative"):
        ranker.update(impression, bad)
    after = ranker.state_dict()
    assert all(np.array_equal(before[name], after[name]) for name in before)
