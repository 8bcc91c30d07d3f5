"""The thesis's experiments with advertisements, in small."""

import numpy as np
import pytest

from keyhole.base.errors import UnknownName
from keyhole.data.bandit.campaign import HOTEL_RATES, Campaign
from keyhole.data.bandit.convert import bandit_feedback
from keyhole.experiment.inputs import DataMissing, data_folder
from keyhole.kernels.draw import WORLD_STREAM, Draw, stream_of, uniforms
from keyhole.lab.kinds.ad_data import (
    CLASS_SETS,
    AdSettings,
    ClassData,
    campaign_policies,
    class_policies,
    load_classes,
    positive_share,
)
from keyhole.policies.base import Greedy
from keyhole.policies.training import descend_ads, fit_classifiers

QUICK = AdSettings(n_steps=20_000, n_trees=20, l2_grid=(0.01, 1.0))


def test_policies_learn_the_bundled_digits():
    results = class_policies(load_classes(), QUICK, seed=1)
    assert set(results) == {"ranker", "ranker-f1", "classifier", "forest"}
    for name, numbers in results.items():
        assert numbers["accuracy"] > 0.7, name
    assert results["ranker"]["accuracy"] in (
        results["ranker"]["accuracy_at_0.01"],
        results["ranker"]["accuracy_at_1"],
    )
    assert class_policies(load_classes(), QUICK, contenders=("classifier",), seed=1) == {
        "classifier": results["classifier"]
    }


def test_policies_beat_chance_on_a_campaign():
    results = campaign_policies(
        "hotel",
        AdSettings(n_steps=20_000, n_trees=10, l2_grid=(0.01, 1.0), negatives_per_click=1),
        contenders=("rankers", "classifier", "forest", "classifier-unsampled"),
        n_test=20_000,
        share=0.1,
    )
    chance, best = results["uniform"]["true"], results["oracle"]["true"]
    for name in ("ranker", "ranker-f1", "classifier", "forest", "classifier-unsampled"):
        assert chance < results[name]["true"] <= best
        assert results[name]["lower"] < results[name]["estimate"]


@pytest.mark.parametrize(
    ("name", "n_classes", "percent"),
    list(zip(CLASS_SETS, (10, 26, 26, 10, 15), (10, 4, 4, 10, 7), strict=True)),
)
def test_the_positive_rates_of_table_5_1(name, n_classes, percent):
    if not (data_folder() / "uci_multiclass" / f"{name}.npz").is_file():
        pytest.skip(f"{name} is not in {data_folder()}")
    data = load_classes(name)
    rows = [positive_share(data, seed=seed) for seed in range(10)]
    assert rows[0]["classes"] == n_classes
    mean = np.mean([row["percent_positive"] for row in rows])
    # The chance is 1 / K; the ads' shares are means of 0.7 n / K independent clicks or fewer.
    error = 100 * np.sqrt((1 / n_classes) * n_classes / (10 * 0.7 * rows[0]["size"] / n_classes))
    error /= n_classes
    assert abs(mean - 100 / n_classes) < 4 * error
    assert round(100 / n_classes) == percent


def test_names_that_are_not_there(monkeypatch, tmp_path):
    with pytest.raises(UnknownName, match="Did you mean 'letter'"):
        load_classes("leter")
    monkeypatch.setenv("KEYHOLE_DATA", str(tmp_path))
    with pytest.raises(DataMissing, match="letter is not on this machine"):
        load_classes("letter")
    with pytest.raises(UnknownName, match="Did you mean 'bank'"):
        campaign_policies("banc")


def drawn_parts(n_rows, seed, use):
    """Return 70 % of the rows, those with the least numbers of a draw, and the others."""
    keys = np.empty(n_rows)
    uniforms(Draw(seed, stream_of(WORLD_STREAM, 0), 0), use, keys)
    order = sorted(range(n_rows), key=lambda row: keys[row])
    n_first = round(0.7 * n_rows)
    return order[:n_first], order[n_first:]


@pytest.mark.interpreted
@pytest.mark.parametrize("seed", [0, 3])
def test_accuracies_are_counted_on_the_rows_that_were_held_out(seed):
    numbers = np.random.default_rng(seed)
    labels = numbers.integers(3, size=90)
    features = numbers.normal(size=(90, 2)) + labels[:, np.newaxis]
    data = ClassData("few", features, labels)
    settings = AdSettings(l2_grid=(0.01, 3.0))
    found = class_policies(data, settings, contenders=("classifier",), seed=seed)["classifier"]
    train, test = drawn_parts(90, seed, 10)
    log = bandit_feedback(features[train], labels[train], n_actions=3, seed=seed)
    for l2 in settings.l2_grid:
        scorer = fit_classifiers(
            log.contexts, log.actions, log.rewards, n_actions=3, l2=l2, seed=seed,
            negatives_per_click=settings.negatives_per_click, no_click="never",
        )  # fmt: skip
        best = Greedy(scorer).best(features[test])
        right = sum(int(best[place]) == int(labels[row]) for place, row in enumerate(test))
        assert found[f"accuracy_at_{l2:g}"] == pytest.approx(right / len(test))
    assert found["accuracy"] == found[f"accuracy_at_{found['l2']:g}"]
    assert len(test) == 27


@pytest.mark.interpreted
def test_each_ranker_is_judged_by_the_scores_of_its_own():
    numbers = np.random.default_rng(9)
    labels = np.minimum(numbers.integers(6, size=200), 2)  # one of them is rare
    features = numbers.normal(size=(200, 2)) + 0.8 * labels[:, np.newaxis]
    settings = AdSettings(l2_grid=(0.1,), n_steps=400)
    data = ClassData("few", features, labels)
    found = class_policies(data, settings, contenders=("rankers",))
    train, test = drawn_parts(200, 0, 10)
    log = bandit_feedback(features[train], labels[train], n_actions=3)
    fitted = descend_ads(
        log.contexts, log.actions, log.rewards, n_actions=3, l2=0.1, n_steps=400, no_click="never"
    )
    shares = []
    for name, way in (("ranker", "calibrated"), ("ranker-f1", "f1")):
        best = Greedy(fitted.aligned(way)).best(features[test])
        shares.append(float(np.mean(best == labels[test])))
        assert found[name]["accuracy"] == pytest.approx(shares[-1])
    assert shares[0] != shares[1]


def test_a_campaign_is_shown_to_a_share_of_its_visitors(monkeypatch):
    logs = []
    log = Campaign.log

    def noted(world, n_visitors, **given):
        logs.append((n_visitors, given["seed"]))
        return log(world, n_visitors, **given)

    monkeypatch.setattr(Campaign, "log", noted)
    found = campaign_policies("hotel", QUICK, contenders=(), n_test=70, share=0.003, seed=4)
    assert logs == [(475, 9), (70, 10)]  # of 158,463
    world = Campaign(HOTEL_RATES, seed=4)
    chances = world.click_chances(log(world, 70, seed=10).contexts)
    assert found["uniform"]["true"] == pytest.approx(chances.mean())
    explored = [0.8 * max(row) + 0.2 * (sum(row) - max(row)) / 4 for row in chances.tolist()]
    assert found["oracle"]["true"] == pytest.approx(np.mean(explored))
