"""Policies that pick one of K ads, described by names and numbers: studies of the kind ``ads``."""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from keyhole.base.described import PlainData, check_fields
from keyhole.base.errors import check_choice, check_integer
from keyhole.base.threads import Stop, n_cores, play_runs
from keyhole.lab.kinds.ad_data import (
    BUNDLED_SET,
    CAMPAIGNS,
    CLASS_SETS,
    CONTENDERS,
    AdSettings,
    campaign_policies,
    class_policies,
    load_classes,
    positive_share,
)
from keyhole.lab.results import Axes, Curve

METRICS = {
    "positive": "share of clicks, %",
    "accuracy": "accuracy",
    "true": "click rate",
    "estimate": "click rate",
    "lower": "click rate",
}
"""What can be measured, for the label of an axis: table 5.1; figure 5.1 (class sets); figure 5.2
(campaigns): the rate that the simulator knows, its estimate, and the 95 % lower bound on it."""

_KIND_OF = {name: kind for kind, row in CONTENDERS.items() for name in row.scorers}
_UNSAMPLED = "classifier-unsampled"
_POLICIES = (*_KIND_OF, _UNSAMPLED)


@dataclass(frozen=True)
class AdSpec(PlainData):
    """A policy trained on a class set or a campaign, by names: nothing that is not plain data.

    ``data`` is a class set or a campaign, ``policy`` who is trained, ``metric`` how it is judged.
    ``negatives_per_click`` is how many visitors who did not click are kept for each who did
    (0: all of them). Run r has the seed ``seed + r``.
    """

    data: str = BUNDLED_SET
    policy: str = "ranker"
    metric: str = "accuracy"
    negatives_per_click: float = 0.0
    steps: int = 1_000_000
    trees: int = 200
    shape: str = "linear"
    share: float = 1.0
    runs: int = 10
    seed: int = 0

    @property
    def measure(self) -> str:
        """What is measured, for the label of an axis."""
        return METRICS[self.metric]

    @property
    def ranker(self) -> str:
        """No ranker of the table: colours follow the labels."""
        return ""

    @property
    def work(self) -> int:
        """Number of runs."""
        return self.runs

    @property
    def key(self) -> dict[str, Any]:
        """All that the results depend on, as plain data."""
        return self.as_dict()

    @classmethod
    def of(cls, fields: dict[str, Any], where: str) -> "AdSpec":
        """Return the description that a mapping holds, or name the field that it cannot have."""
        spec = cls(**check_fields(fields, where, cls.__dataclass_fields__))
        check_choice(spec.metric, f"metric of {where}", METRICS)
        check_choice(spec.policy, f"policy of {where}", _POLICIES)
        return spec


def build_ads(spec: AdSpec) -> AdSpec:
    """Return a description whose data is there, or raise."""
    check_integer(spec.runs, "runs", at_least=1)
    if spec.metric in ("positive", "accuracy"):
        check_choice(spec.data, "data of a class set", (BUNDLED_SET, *CLASS_SETS))
        load_classes(spec.data)
    else:
        check_choice(spec.data, "data of a campaign", CAMPAIGNS)
    return spec


@lru_cache(maxsize=4096)  # one training serves all metrics and all names of a contender
def _trained(spec: AdSpec, contender: str, seed: int) -> dict[str, dict[str, float]]:
    negatives = spec.negatives_per_click or None
    settings = AdSettings(spec.steps, spec.trees, negatives_per_click=negatives)
    asked: dict[str, Any] = {"contenders": (contender,), "seed": seed}
    if spec.data in CAMPAIGNS:
        return campaign_policies(spec.data, settings, shape=spec.shape, share=spec.share, **asked)
    return class_policies(load_classes(spec.data), settings, **asked)


def _value(spec: AdSpec, seed: int) -> float:
    if spec.metric == "positive":
        return positive_share(load_classes(spec.data), seed=seed)["percent_positive"]
    contender = _UNSAMPLED if spec.policy == _UNSAMPLED else _KIND_OF[spec.policy]
    shared = dataclasses.replace(spec, policy="ranker", metric="accuracy", runs=1, seed=0)
    return _trained(shared, contender, seed)[spec.policy][spec.metric]


def play_ads(label: str, spec: AdSpec, report: Callable[[int], None] | None = None) -> Curve:
    """Return the measured values, one run per row, trained on all cores."""

    def play_run(run: int, tell: Callable[[int], None], stop: Stop) -> float:
        value = float("nan") if stop.asked else _value(spec, spec.seed + run)
        tell(1)
        return value

    # scikit-learn changes the filters of warnings while it fits a forest, for all threads.
    n_threads = 1 if spec.policy == "forest" else n_cores()
    values = play_runs(play_run, spec.runs, n_threads, report)
    return Curve(label, np.zeros(1, np.int64), np.array(values)[:, np.newaxis])


def ad_axes(measure: str) -> Axes:
    """Return the axes of what is measured on several sets."""
    better = "" if measure == METRICS["positive"] else "higher is better"
    return Axes("", "mean over the runs", "point", "value", better, from_zero=False)
