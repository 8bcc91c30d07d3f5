"""Logged data: what a policy would have earned, how sure that is, and whether to promote it."""

from keyhole.offline.bounds import (
    BOUNDS,
    Interval,
    betting,
    bootstrap,
    clopper_pearson,
    empirical_bernstein,
    interval,
    intervals,
    lower_bounds,
    student_t,
)
from keyhole.offline.diagnostics import Diagnostics, diagnose
from keyhole.offline.estimators import (
    ESTIMATORS,
    Estimate,
    clipped,
    direct,
    doubly_robust,
    estimate_all,
    importance_weighted,
    predict_rewards,
    self_normalised,
)
from keyhole.offline.evaluation import best_fixed_action, evaluate
from keyhole.offline.items import seen_items
from keyhole.offline.lists import evaluate_lists, item_position, top_set
from keyhole.offline.report import Evaluation
from keyhole.offline.target import (
    Target,
    binomial_trials,
    logged_target,
    target_of,
    training_overlap,
)

__all__ = [
    "BOUNDS",
    "ESTIMATORS",
    "Diagnostics",
    "Estimate",
    "Evaluation",
    "Interval",
    "Target",
    "best_fixed_action",
    "betting",
    "binomial_trials",
    "bootstrap",
    "clipped",
    "clopper_pearson",
    "diagnose",
    "direct",
    "doubly_robust",
    "empirical_bernstein",
    "estimate_all",
    "evaluate",
    "evaluate_lists",
    "importance_weighted",
    "interval",
    "intervals",
    "item_position",
    "logged_target",
    "lower_bounds",
    "predict_rewards",
    "seen_items",
    "self_normalised",
    "student_t",
    "target_of",
    "top_set",
    "training_overlap",
]
