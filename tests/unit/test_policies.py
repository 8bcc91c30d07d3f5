"""Policies: probabilities, and files of plain arrays."""

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier

from keyhole.base.errors import InvalidInput
from keyhole.policies.base import Always, EpsilonGreedy, Greedy, Policy, Softmax
from keyhole.policies.files import load_policy, save_policy
from keyhole.policies.forest import ForestScorer, join_forests
from keyhole.policies.linear import LinearScorer
from keyhole.policies.training import fit_forests

NUMBERS = np.random.default_rng(0)
LINEAR = LinearScorer(NUMBERS.normal(size=(4, 3)), [0.1, -np.inf, 0.0, 0.3])
VISITORS = NUMBERS.normal(size=(50, 3))


def small_forest() -> ForestScorer:
    labels = (VISITORS[:, 0] > 0).astype(float)
    ads = np.arange(50) % 2
    return fit_forests(VISITORS, ads, labels, n_trees=5)


def test_ties_go_to_the_lowest_index_and_an_ad_ruled_out_is_never_best():
    assert Greedy(LinearScorer(np.zeros((3, 1)), [0, 1, 1])).best([[5.0]]).tolist() == [1]
    assert not (Greedy(LINEAR).best(VISITORS) == 1).any()
    assert (Softmax(LINEAR).probabilities(VISITORS)[:, 1] == 0).all()
    assert (EpsilonGreedy(LINEAR, 0.3).probabilities(VISITORS)[:, 1] == 0.3 / 3).all()


def test_one_ad_is_always_shown():
    only = LinearScorer([[1.0]], [0.0])
    for policy in (Greedy(only), EpsilonGreedy(only, 0.5), Softmax(only)):
        assert policy.probabilities([[2.0]]).tolist() == [[1.0]]


def test_forests_score_as_scikit_learn_does():
    numbers = np.random.default_rng(3)
    rows, unseen = numbers.normal(size=(300, 5)), numbers.normal(size=(1000, 5))
    forests = []
    for ad in range(3):
        labels = rows[:, ad] + numbers.normal(size=300) > 1
        forests.append(RandomForestClassifier(20, random_state=ad).fit(rows, labels))
    scores = join_forests([forests[0], None, forests[1], forests[2]], 5).scores(unseen)
    assert (scores[:, 1] == -np.inf).all()
    for column, forest in zip((0, 2, 3), forests, strict=True):
        expected = forest.predict_proba(unseen)[:, 1]
        np.testing.assert_allclose(scores[:, column], expected, rtol=0, atol=1e-14)


def test_forests_compare_at_the_precision_they_were_grown_with():
    edge = np.float64(np.float32(0.1))
    rows = np.array([[edge], [np.nextafter(np.float32(edge), np.float32(1))]], dtype=np.float64)
    forest = RandomForestClassifier(10, random_state=0, bootstrap=False).fit(rows, [0, 1])
    near = np.array([[edge], [edge + 1e-12], [edge + 1e-7]])
    ours = join_forests([forest], 1).scores(near)[:, 0]
    assert np.array_equal(ours, forest.predict_proba(near)[:, 1])


class Odd(Policy):
    n_actions = 2

    def probabilities(self, contexts):
        return np.full((len(contexts), 2), 0.5)


def write(path, **arrays):
    with path.open("wb") as file:
        np.savez(file, **arrays)


def test_files_that_are_no_policy_are_refused(tmp_path):
    path = tmp_path / "policy.npz"
    with pytest.raises(InvalidInput, match="must be one of uniform, always"):
        save_policy(Odd(), path)
    with pytest.raises(InvalidInput, match="must be a policy saved by save_policy"):
        load_policy(path)
    path.write_bytes(b"not arrays")
    with pytest.raises(InvalidInput, match="must be a policy saved by save_policy"):
        load_policy(path)
    write(path, format=1, policy="greedy", scorer="linear")
    with pytest.raises(InvalidInput, match="'weights' is missing"):
        load_policy(path)
    write(path, format=1, policy="gredy")
    with pytest.raises(InvalidInput, match="Did you mean 'greedy'"):
        load_policy(path)
    write(path, format=2, policy="greedy")
    with pytest.raises(InvalidInput, match="format is 2, not 1"):
        load_policy(path)
    write(path, format=1, policy=np.array([object()], dtype=object))
    with pytest.raises(InvalidInput, match="must be a policy saved by save_policy"):
        load_policy(path)


@pytest.mark.parametrize(
    ("array", "index", "value"), [("left", 0, 0), ("right", 0, 999), ("feature", 0, 7)]
)
def test_a_forest_whose_walks_would_not_end_is_refused(array, index, value):
    arrays = {name: part.copy() for name, part in small_forest().arrays().items()}
    arrays[array][index] = value
    with pytest.raises(InvalidInput, match="branches end in leaves"):
        ForestScorer.of_arrays(arrays)


def test_contexts_and_settings_are_checked():
    greedy = Greedy(LINEAR)
    with pytest.raises(InvalidInput, match=r"by 3 features, got shape \(1, 2\)"):
        greedy.probabilities([[1.0, 2.0]])
    with pytest.raises(InvalidInput, match=r"got nan in row 1, column 2"):
        greedy.probabilities([[1.0, 2.0, 3.0], [1.0, 2.0, np.nan]])
    with pytest.raises(InvalidInput, match="`epsilon` of EpsilonGreedy"):
        EpsilonGreedy(LINEAR, 1.5)
    with pytest.raises(InvalidInput, match="`temperature` of Softmax"):
        Softmax(LINEAR, 0.0)
    with pytest.raises(InvalidInput, match="`action` of Always"):
        Always(3, 3)
    with pytest.raises(InvalidInput, match="one offset per ad"):
        LinearScorer([[1.0]], [0.0, 1.0])
    with pytest.raises(InvalidInput, match="must be finite"):
        LinearScorer([[np.nan]], [0.0])
    with pytest.raises(InvalidInput, match="at least one ad"):
        LinearScorer([[1.0]], [-np.inf])
