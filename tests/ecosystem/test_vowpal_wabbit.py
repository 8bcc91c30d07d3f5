"""Files of real logs, read by Vowpal Wabbit itself, which reports the values that Keyhole does."""

from pathlib import Path

import numpy as np
import pytest
from vowpalwabbit import Workspace

from keyhole.data.bandit.formats import read_bandit
from keyhole.data.bandit.log import BanditLog
from keyhole.data.bandit.vowpal_wabbit import read_vowpal_wabbit, write_vowpal_wabbit
from keyhole.ecosystem.vowpal_wabbit import read_lists, write_lists
from keyhole.offline.estimators import importance_weighted
from keyhole.offline.target import target_of

# Vowpal Wabbit keeps costs, probabilities and losses in 32 bits.
SINGLE = 1e-6


@pytest.fixture(scope="module")
def log(real_data):
    """Return 2,000 rows of the Open Bandit Dataset that have every reward there is."""
    whole = read_bandit(real_data / "obd_small" / "random_men.csv.gz")
    return whole.rows(np.union1d(np.flatnonzero(whole.rewards), np.arange(1960)))


def run(arguments):
    """Return the average loss that a run over a file reports."""
    vw = Workspace(f"{arguments} --cb_type ips --quiet")
    loss = vw.get_sum_loss() / vw.get_weighted_examples()
    vw.finish()
    return loss


def test_one_line_per_row(log, tmp_path):
    path, chosen = tmp_path / "log.vw", tmp_path / "chosen.txt"
    write_vowpal_wabbit(log, path)
    loss = run(f"-d {path} --cb {log.n_actions} -p {chosen}")
    actions = np.array([int(line.split()[0]) for line in chosen.read_text().split("\n") if line])
    assert len(actions) == len(log)
    assert len(set(actions.tolist())) > 5  # it learns, and so it chooses
    policy = np.eye(log.n_actions)[actions]  # this file counts actions from 0
    value = importance_weighted(log, target_of(log, policy)).value
    assert value > 0.0
    assert -loss == pytest.approx(value, rel=SINGLE)


def test_a_line_per_action(log, tmp_path):
    log = log.rows(np.union1d(np.flatnonzero(log.rewards), np.arange(200)))
    path, chances = tmp_path / "log.vw", tmp_path / "chances.txt"
    write_vowpal_wabbit(log, path, form="cb_adf")
    loss = run(f"-d {path} --cb_explore_adf --epsilon 0.3 -p {chances}")
    policy = np.zeros((len(log), log.n_actions))
    rows = [line for line in chances.read_text().split("\n") if line]
    for row, line in enumerate(rows):
        for pair in line.split()[0].split(","):  # a tag may follow
            action, chance = pair.split(":")
            policy[row, int(action)] = float(chance)
    policy /= policy.sum(axis=1, keepdims=True)  # six digits are printed
    value = importance_weighted(log, target_of(log, policy)).value
    assert -loss == pytest.approx(value, rel=1e-4)


@pytest.mark.parametrize("form", ["cb", "cb_adf"])
def test_what_was_written_is_read_again(log, tmp_path, form):
    write_vowpal_wabbit(log, tmp_path / "log.vw", form=form)
    again = read_vowpal_wabbit(
        tmp_path / "log.vw", n_actions=log.n_actions, feature_names=log.feature_names
    )
    for name in ("contexts", "actions", "rewards", "propensities", "positions"):
        assert np.array_equal(getattr(again, name), getattr(log, name)), name
    assert (again.n_actions, again.feature_names) == (log.n_actions, log.feature_names)


def test_labels_and_features_are_what_it_reads(tmp_path):
    log = BanditLog.of(
        [[0.5, 0.0], [0.25, -2.0]], [2, 0], [1.0, -0.5], [0.25, 0.5], positions=[1, 0]
    )
    write_vowpal_wabbit(log, tmp_path / "log.vw")
    vw = Workspace("--cb 3 --quiet --noconstant")
    for row, line in enumerate((tmp_path / "log.vw").read_text().splitlines()):
        example = vw.example(line)
        (known,) = example.get_label().costs
        assert (known.action, -known.cost, known.probability) == (
            log.actions[row] + 1, log.rewards[row], log.propensities[row]
        )  # fmt: skip
        values = [value for _, value in example.iter_features()]
        assert values == [value for value in log.contexts[row] if value]


def test_lists_to_rank(mq2008, tmp_path):
    path, chosen = tmp_path / "lists.vw", tmp_path / "chosen.txt"
    write_lists(mq2008, path)
    vw = Workspace(f"-d {path} --csoaa_ldf mc -p {chosen} --quiet")
    loss = vw.get_sum_loss()
    vw.finish()
    # A line for each document: its place if it was chosen, and 0 if not.
    picks = [line.split()[0] for line in chosen.read_text().split("\n") if line]
    firsts = [int(pick) - 1 for pick in picks if int(pick) > 0]
    assert len(firsts) == mq2008.n_queries
    grades = [mq2008.query(index)[1][place] for index, place in enumerate(firsts)]
    assert sum(grades) > 0
    assert -loss == pytest.approx(sum(grades))
    again = read_lists(path, n_features=mq2008.n_features)
    for name in ("features", "relevance", "starts", "query_ids"):
        assert np.array_equal(getattr(again, name), getattr(mq2008, name)), name


def test_its_own_example_file_is_read(tmp_path):
    """The text of its tutorial on contextual bandits; its learner and Keyhole agree on it."""
    text = "1:2:0.4 | a c\n3:0.5:0.2 | b d\n4:1.2:0.5 | a b c\n2:1:0.3 | b c\n3:1.5:0.7 | a d\n"
    path = Path(tmp_path / "train.dat")
    path.write_text(text)
    log = read_vowpal_wabbit(path)
    assert log.feature_names == ("a", "c", "b", "d")
    assert log.actions.tolist() == [0, 2, 3, 1, 2]
    assert log.rewards.tolist() == [-2.0, -0.5, -1.2, -1.0, -1.5]
    write_vowpal_wabbit(log, tmp_path / "again.dat")
    assert run(f"-d {path} --cb 4") == run(f"-d {tmp_path / 'again.dat'} --cb 4")
