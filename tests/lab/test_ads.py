"""The thesis's experiments with advertisements, in small."""

import numpy as np
import pytest

from keyhole.base.errors import UnknownName
from keyhole.experiment.inputs import DataMissing, data_folder
from keyhole.lab.kinds.ad_data import (
    CLASS_SETS,
    AdSettings,
    campaign_policies,
    class_policies,
    load_classes,
    positive_share,
)

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
