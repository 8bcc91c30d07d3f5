"""Batch rankers on MQ2008's five folds, with grids shorter than those of bench.mq2008."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

from keyhole.batch.ranker import BatchRanker
from keyhole.lab.inputs import data_folder

FILE = importlib.util.spec_from_file_location(
    "bench_mq2008", Path(__file__).parents[2] / "bench" / "mq2008.py"
)
assert FILE is not None
assert FILE.loader is not None
bench = importlib.util.module_from_spec(FILE)
FILE.loader.exec_module(bench)

needs_data = pytest.mark.skipif(
    not (data_folder() / "mq2008").is_dir(), reason=f"mq2008 is not in {data_folder()}"
)

MODELS = {
    "ListNet": [BatchRanker("listnet", regularisation=10.0**k) for k in (-3, -2)],
    "RankSVM": [
        BatchRanker("ranksvm", regularisation=10.0**k) for k in (1, 2)
    ],
    "ridge": [bench.Pointwise(Ridge(alpha=10.0**k)) for k in (0, 2)],
    "logistic": [bench.Pointwise(LogisticRegression(C=10.0**k, max_iter=2000)) for k in (-1, 0)],
}  # fmt: skip


def test_folds_are_letors():
    assert [*bench.folds()][:1] == [([1, 2, 3], [4], [5])]
    assert [*bench.folds()][4] == ([5, 1, 2], [3], [4])


@needs_data
def test_listnet_and_ranksvm_are_within_a_hundredth_of_the_best_other_linear_ranker():
    means = {name: float(np.mean(scores)) for name, scores in bench.run(MODELS)[0].items()}
    others = max(means["ridge"], means["logistic"])
    assert means["ListNet"] >= others - bench.WITHIN, means
    assert means["RankSVM"] >= others - bench.WITHIN, means
    assert others > 0.66  # a baseline worth the name


@needs_data
def test_every_kind_of_problem_is_solved_to_a_millionth():
    """On real features, some of which hardly differ: warnings are errors here."""
    X, y, groups = bench.together(bench.read(), [1, 2, 3])
    for name, options in (
        ("listnet", {"norm": "l1", "radius": 100.0, "regularisation": 0.0}),
        ("listnet", {"regularisation": 1e-5}),
        ("squared", {"radius": 50.0, "regularisation": 0.0}),
        ("ranksvm", {"regularisation": 1e-2}),
        ("ranksvm", {"radius": 3.0, "regularisation": 0.0}),
        ("max_violation", {"norm": "l1", "radius": 10.0, "regularisation": 0.0}),
    ):
        ranker = BatchRanker(name, max_evaluations=3000, **options).fit(X, y, groups)
        assert ranker.gap_ <= 1e-6 * max(1.0, ranker.objective_), name
