"""Evaluation of the log of a ranker of query-document lists."""

from pathlib import Path
from typing import Any

import numpy as np

from keyhole.base.errors import InvalidInput, shown
from keyhole.game.log import Log
from keyhole.kernels.sorting import sort_descending, sort_work
from keyhole.offline.evaluation import Evaluation
from keyhole.offline.lists import LOGGED, Rankings, evaluate_lists
from keyhole.rankers.lists.models import load_model

RANKERS_LOG = ".npz"
"""The file name suffix of Log.save."""


def _rankings(text: str, option: str, log: Log) -> Rankings:
    """Return the rankings of a saved model for each row of a log, or ``logged``."""
    if text == LOGGED:
        return LOGGED
    if not Path(text).is_file():
        raise InvalidInput(
            f"{option} must be {LOGGED} or a model saved by keyhole learn, for the log of a "
            f"ranker, got {shown(text)}."
        )
    model = load_model(Path(text))
    if log.features.shape[1] > model.n_features:
        raise InvalidInput(
            f"Documents must have at most the {model.n_features} features of {text}, got "
            f"{log.features.shape[1]}."
        )
    rankings, work = [], sort_work(int(np.diff(log.starts).max()))
    for first, end in zip(log.starts[:-1], log.starts[1:], strict=True):
        order = np.empty(int(end - first), dtype=np.int64)
        sort_descending(model.scores(log.features[first:end]), order, work)
        rankings.append(order)
    return rankings


def evaluate_ranked_log(path: Path, policy: str, baseline: str, **options: Any) -> Evaluation:
    """Evaluate a saved model on the log of a ranker."""
    log = Log.load(path)
    return evaluate_lists(
        log,
        _rankings(policy, "--policy", log),
        _rankings(baseline, "--baseline", log),
        names=(Path(policy).name, Path(baseline).name),
        **options,
    )
