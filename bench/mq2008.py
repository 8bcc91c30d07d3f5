"""MQ2008's five folds: batch ListNet and RankSVM beside other linear rankers.

    python -m bench.mq2008

The folds are LETOR's own: three parts to learn from, one to choose the strength of the
regularisation on, one to judge. NDCG@10 is the mean over the queries that have a relevant document.
"""

import sys
import time

import numpy as np
from sklearn.linear_model import LogisticRegression, Ridge

from keyhole.batch.ranker import BatchRanker
from keyhole.data.letor.reader import read_letor
from keyhole.lab.inputs import data_folder

PARTS = range(1, 6)
WITHIN = 0.01


class Pointwise:
    """A regression of the grades, or a classifier of relevance, judged as a ranker."""

    def __init__(self, model):
        self.model = model

    def fit(self, X, y, _groups):
        self.model.fit(X, y > 0 if isinstance(self.model, LogisticRegression) else y)
        self.judge = BatchRanker()
        self.judge.coef_, self.judge.n_features_in_ = self.model.coef_.ravel(), X.shape[1]
        return self

    def score(self, X, y, groups):
        return self.judge.score(X, y, groups)


MODELS = {
    "ListNet": [BatchRanker("listnet", regularisation=10.0**k) for k in range(-5, 1)],
    "RankSVM": [BatchRanker("ranksvm", regularisation=10.0**k) for k in range(-2, 4)],
    "ridge on the grades": [Pointwise(Ridge(alpha=10.0**k)) for k in range(-3, 4)],
    "logistic on relevance": [
        Pointwise(LogisticRegression(C=10.0**k, max_iter=5000)) for k in range(-3, 4)
    ],
}


def read():
    """Return documents, grades and queries of each part."""
    parts = {}
    for part in PARTS:
        queries = read_letor(data_folder() / "mq2008" / f"S{part}.txt.gz", normalise="minmax")
        sizes = np.diff(queries.starts)
        names = np.repeat([f"S{part}:{name}" for name in queries.query_ids], sizes)
        parts[part] = (np.asarray(queries.features), queries.relevance, names)
    return parts


def together(parts, chosen):
    return tuple(np.concatenate([parts[part][i] for part in chosen]) for i in range(3))


def folds():
    """Return the parts to learn from, choose on and judge by, fold by fold."""
    for first in range(5):
        turn = [(first + step) % 5 + 1 for step in range(5)]
        yield turn[:3], turn[3:4], turn[4:]


def run(models=MODELS):
    """Return the NDCG@10 of each model on each fold, and seconds."""
    parts = read()
    table: dict[str, list[float]] = {name: [] for name in models}
    seconds = dict.fromkeys(models, 0.0)
    for train, vali, test in folds():
        lists = [together(parts, chosen) for chosen in (train, vali, test)]
        for name, candidates in models.items():
            began = time.perf_counter()
            fitted = [model.fit(*lists[0]) for model in candidates]
            best = max(fitted, key=lambda model: model.score(*lists[1]))
            table[name].append(best.score(*lists[2]))
            seconds[name] += time.perf_counter() - began
    return table, seconds


def main():
    table, seconds = run()
    print("| ranker | " + " | ".join(f"fold {k}" for k in PARTS) + " | mean | seconds |")
    print("|---|" + "---:|" * 7)
    means = {name: float(np.mean(scores)) for name, scores in table.items()}
    for name, scores in table.items():
        cells = " | ".join(f"{score:.4f}" for score in scores)
        print(f"| {name} | {cells} | {means[name]:.4f} | {seconds[name]:.1f} |")
    others = max(means["ridge on the grades"], means["logistic on relevance"])
    for name in ("ListNet", "RankSVM"):
        gap = means[name] - others
        word = "within" if gap >= -WITHIN else "NOT within"
        print(f"{name}: {gap:+.4f} of the best other linear ranker, {word} {WITHIN:g}.")
    return 0 if min(means["ListNet"], means["RankSVM"]) >= others - WITHIN else 1


if __name__ == "__main__":
    sys.exit(main())
