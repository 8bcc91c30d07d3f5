"""Which rows a policy was trained on, and logs that hold them."""

import numpy as np
import pytest

from keyhole.base.errors import InvalidInput
from keyhole.data.bandit import row_digests as digests_of_rows
from keyhole.data.bandit.campaign import Campaign
from keyhole.data.bandit.files import write_bandit_csv, write_bandit_parquet
from keyhole.data.bandit.formats import read_bandit
from keyhole.data.bandit.log import BanditLog
from keyhole.data.bandit.row_digests import Overlap, RowRecorder, SeenRows, row_digests
from keyhole.offline.evaluation import evaluate
from keyhole.offline.overlap import training_overlap
from keyhole.policies.base import Always, EpsilonGreedy, Greedy, Softmax
from keyhole.policies.choosing import train_policy
from keyhole.policies.files import load_policy, save_policy
from keyhole.policies.linear import LinearScorer
from keyhole.policies.online import OnlineRankers
from keyhole.policies.training import fit_classifiers, fit_forests, fit_rankers

LOG = Campaign([0.2, 0.3, 0.1], n_features=4, n_informative=2, seed=1).log(3000, seed=2)


def columns(log):
    return log.contexts, log.actions, log.rewards


def shared(log, policy):
    return training_overlap(log, policy)


def streamed(log):
    rankers = OnlineRankers(log.n_actions, log.contexts.shape[1])
    rankers.learn(log)
    return rankers.scorer()


def chosen(log):
    return train_policy(log, "classifiers", n_folds=2).policy


FITS = {
    "rankers": lambda log: fit_rankers(log, n_steps=1000),
    "rankers of arrays": lambda log: fit_rankers(*columns(log), n_steps=1000),
    "classifiers": fit_classifiers,
    "forests": lambda log: fit_forests(log, n_trees=2),
    "stream": streamed,
    "chosen": lambda log: chosen(log).scorer,
}


@pytest.mark.parametrize("name", FITS)
def test_whatever_is_fitted_is_refused_on_its_own_rows(name, tmp_path):
    train, held_out = LOG.split(0.5, by="random")
    path = tmp_path / "policy.npz"
    save_policy(EpsilonGreedy(FITS[name](train)), path)
    policy = load_policy(path)
    assert shared(held_out, policy).share == 0.0
    assert evaluate(held_out, policy).policy.overlap == shared(held_out, policy)
    numbers = np.random.default_rng(0)
    shuffled = train.rows(numbers.permutation(len(train)))
    slice_of_it = LOG.rows(np.arange(1000))
    for log, share in ((train, 1.0), (LOG, 0.5), (shuffled, 1.0), (slice_of_it, 0.5)):
        with pytest.raises(InvalidInput, match="EpsilonGreedy was trained on") as caught:
            evaluate(log, policy)
        assert "`allow_training_rows` judges it all the same" in str(caught.value)
        assert shared(log, policy).share == pytest.approx(share, abs=0.05)
    with pytest.raises(InvalidInput, match="EpsilonGreedy was trained on"):
        evaluate(train, "uniform", policy)
    result = evaluate(train, policy, allow_training_rows=True)
    assert "EpsilonGreedy was trained on 100.0% of this log" in result.warnings[0]
    assert result.as_dict()["policy"]["training_rows"]["share"] == 1.0


def test_why_it_matters():
    """Forests know their own rows: there they are promoted for certain, elsewhere they are not."""
    numbers = np.random.default_rng(3)
    contexts, actions = numbers.normal(size=(2000, 6)), numbers.integers(4, size=2000)
    clicks = numbers.random(2000) < 0.1  # whatever is shown to whomever
    log = BanditLog.of(contexts, actions, clicks, np.full(2000, 0.25))
    train, held_out = log.split(0.5, by="random")
    policy = Greedy(fit_forests(train, n_trees=20))
    assert evaluate(train, policy, allow_training_rows=True).verdict == "promote"
    assert evaluate(held_out, policy).verdict == "keep"


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_files_that_were_saved_again_have_the_same_rows(tmp_path, ending):
    log = LOG
    policy = Greedy(fit_classifiers(log))
    path = tmp_path / f"log.{ending}"
    write = write_bandit_parquet if ending == "parquet" else write_bandit_csv
    single = log.contexts.astype(np.float32).astype(np.float64)
    for contexts in (log.contexts, single):
        again = BanditLog.of(contexts, log.actions, log.rewards, log.propensities, n_actions=3)
        write(again, path)
        assert shared(read_bandit(path), policy).share == 1.0


def test_digests_tell_rows_apart_and_nothing_else():
    contexts = np.array([[1.0, 2.0], [2.0, 1.0], [1.0, 2.0], [1.0, 2.0], [-0.0, 0.0], [0.0, 0.0]])
    digests = row_digests(contexts, np.array([0, 0, 1, 0, 0, 0]), np.array([0, 0, 0, 1.0, 0, 0]))
    assert len(set(digests.tolist())) == 5
    assert digests[4] == digests[5]
    assert row_digests(np.array([[1e300]]), np.zeros(1, int), np.zeros(1)).shape == (1,)


def discrete(n_rows, n_kinds, seed):
    """A log of visitors of a few kinds, whose rows are often equal."""
    numbers = np.random.default_rng(seed)
    kinds = numbers.integers(n_kinds, size=n_rows)
    actions = numbers.integers(2, size=n_rows)
    clicks = numbers.random(n_rows) < 0.2
    return BanditLog.of(kinds[:, None], actions, clicks, np.full(n_rows, 0.5))


@pytest.mark.parametrize("n_kinds", [300, 1500, 100_000])
def test_rows_that_are_equal_and_not_the_same_are_no_reason_to_refuse(n_kinds):
    """Fresh logs of the same law are accepted, logs with one row in ten shared are not."""
    refused = 0
    for seed in range(20):
        train, fresh = discrete(2000, n_kinds, 2 * seed), discrete(2000, n_kinds, 2 * seed + 1)
        known = SeenRows.of(*columns(train))
        found = known.overlap(*columns(fresh))
        assert not found.is_certain, (seed, found)
        mixed = fresh.rows(np.arange(1000))
        parts = [np.concatenate(pair) for pair in zip(columns(mixed), columns(train), strict=True)]
        found = known.overlap(*parts)
        assert abs(found.share - 2 / 3) < 0.1
        refused += found.is_certain
    assert refused == 20


def test_where_all_rows_are_alike_nobody_knows():
    log = discrete(500, 1, 0)
    policy = Greedy(fit_classifiers(log))
    assert not shared(log, policy).is_known
    notes = evaluate(log, policy).notes
    assert "Whether Greedy was trained on rows of this log cannot be told" in notes[0]


def test_a_policy_that_does_not_say_is_told_of(tmp_path):
    old = Softmax(LinearScorer(np.zeros((3, 4)), np.zeros(3)))
    save_policy(old, tmp_path / "old.npz")
    with np.load(tmp_path / "old.npz") as arrays:
        assert not [name for name in arrays if name.startswith(("rows.", "names."))]
    notes = evaluate(LOG, load_policy(tmp_path / "old.npz")).notes
    assert notes == (
        "Softmax does not say what it was trained on: nobody knows whether that was this log.",
    )
    assert evaluate(LOG, Always(3, 1)).notes == ()


def test_one_row_in_a_hundred_is_let_pass():
    train, held_out = LOG.split(0.5, by="random")
    policy = Greedy(fit_classifiers(train))
    for n_shared, refused in ((10, False), (45, True)):
        parts = [
            np.concatenate([of_train[:n_shared], of_rest])
            for of_train, of_rest in zip(columns(train), columns(held_out), strict=True)
        ]
        contexts, actions, rewards = parts
        log = BanditLog.of(contexts, actions, rewards, np.full(len(rewards), 1 / 3))
        if refused:
            with pytest.raises(InvalidInput, match=r"was trained on 2\.8% of this log"):
                evaluate(log, policy)
        else:
            evaluate(log, policy)
            assert shared(log, policy).found > 0.0


def test_of_many_rows_a_part_is_kept_and_tells_as_much(monkeypatch, tmp_path):
    monkeypatch.setattr(digests_of_rows, "_MOST", 300)
    known = SeenRows.of(*columns(LOG))
    assert len(known.digests) == 300
    assert known.n_rows == pytest.approx(len(LOG), rel=0.2)
    assert known.overlap(*columns(LOG)).share == 1.0
    fresh = Campaign([0.2, 0.3, 0.1], n_features=4, n_informative=2, seed=1).log(3000, seed=9)
    assert known.overlap(*columns(fresh)).found == 0.0
    assert known.overlap(*columns(fresh)).n_rows < 600
    assert SeenRows.of_arrays(known.arrays()).limit == known.limit


def test_a_stream_keeps_the_digests_of_all_its_rows(monkeypatch):
    monkeypatch.setattr(digests_of_rows, "_PENDING", 50)
    recorder = RowRecorder(SeenRows.nothing())
    for first in range(0, 300, 7):
        recorder.add(*(column[first : first + 7][: 300 - first] for column in columns(LOG)))
    whole = SeenRows.of(*(column[:300] for column in columns(LOG)))
    found = recorder.seen()
    assert found is not None
    assert np.array_equal(found.digests, whole.digests)
    assert np.array_equal(found.counts, whole.counts)


def test_a_stream_goes_on_with_what_it_has_seen():
    rankers = OnlineRankers(3, 4)
    rankers.learn(LOG.rows(np.arange(500)))
    state = rankers.state_dict()
    again = OnlineRankers(3, 4).load_state_dict(state)
    again.learn(LOG.rows(np.arange(500, 900)))
    known = again.scorer().seen_rows
    assert known is not None
    assert known.n_rows == 900
    older = {name: array for name, array in state.items() if not name.startswith("rows.")}
    assert OnlineRankers(3, 4).load_state_dict(older).scorer().seen_rows is None


@pytest.mark.parametrize(
    "broken",
    [
        {"digests": np.array([2, 1], np.uint64)},
        {"digests": np.array([1.0, 2.0])},
        {"counts": np.array([1])},
        {"counts": np.array([0, 1])},
    ],
)
def test_digests_of_a_file_are_checked(broken):
    arrays = {"digests": np.array([1, 2], np.uint64), "counts": np.array([1, 1]), "limit": 5}
    assert SeenRows.of_arrays(arrays).limit == 5
    with pytest.raises(InvalidInput, match="digests of rows must"):
        SeenRows.of_arrays({**arrays, **broken})


def test_no_rows_are_no_evidence():
    nothing = SeenRows.nothing().overlap(*columns(LOG))
    assert not nothing.is_known
    assert not Overlap(0, 0.0, 0.0, 0.0).is_known
