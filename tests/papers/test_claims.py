"""Every claim of every study is judged, or says why not; and those about learning ask for it."""

import json
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest

from keyhole.base.files import plain
from keyhole.data.bandit.campaign import BANK_RATES, HOTEL_RATES
from keyhole.experiment.inputs import DataMissing
from keyhole.lab.claims import judge
from keyhole.lab.kinds.ad_data import load_classes
from keyhole.lab.kinds.experiments import ListsSpec
from keyhole.lab.kinds.risks import best_of, build_risk, setting_at
from keyhole.lab.results import Curve
from keyhole.lab.run import Reproduction, _lines, reproduce
from keyhole.lab.study import Study, find_study, list_studies


class Expected(NamedTuple):
    """How many claims a study has, how many of them are judged with and without its data.

    ``unjudged`` says why the others are not, and of how many. ``for_anyone`` are claims that name a
    learner and hold of one that learns nothing as well, by the beginnings of their texts.
    """

    claims: int
    judged: int
    without_data: int
    unjudged: dict[str, int] = {}  # noqa: RUF012 - never written to
    for_anyone: tuple[str, ...] = ()


STUDIES = {
    "top1-fig1": Expected(3, 3, 3),
    "top1-fig2": Expected(3, 3, 3),
    "thesis-fig3.1": Expected(8, 8, 8),
    "thesis-fig3.2": Expected(4, 4, 4),
    "thesis-fig3.3": Expected(3, 3, 3),
    "ailon-thm3.1": Expected(
        17,
        17,
        13,
        for_anyone=(  # by theory
            "uniform choices, where every ranker has the same regret in the limit: Plackett-Luce",
            "uniform choices: Plackett-Luce has the closed form's regret, as every ranker",
            "uniform choices: QuickSort has the closed form's regret, as every ranker",
            "uniform choices: reverse Plackett-Luce has the closed form's regret, as every ranker",
        ),
    ),
    "hopeless-ndcg": Expected(
        12,
        12,
        12,
        for_anyone=(  # nobody learns, or nobody can do better than another
            "NDCG, Table B.1: no ranker's",
            "NDCG, the worst pair of three items: no ranker's",
            "NDCG, the swap pair of four items: no ranker's",
            "DCG, the swap pair of four items, where all rankings are worth the same",
        ),
    ),
    "rates": Expected(
        27,
        4,
        4,
        {"to compile its games takes longer than to play them": 23},
        for_anyone=(  # nobody learns
            "NDCG: whoever sees one item has linear regret",
            "NDCG: nobody loses less per round",
        ),
    ),
    "length-matters": Expected(
        18,
        18,
        18,
        for_anyone=(  # the bounds are so far above that weights of 0 keep them
            "ListNet's averaged descent stays beneath Theorem 35",
            "ListNet's regularised weights stay beneath Theorem 36",
            "ListNet's least mean loss stays beneath Theorem 38",
            "ListNet's least mean loss stays beneath Chapelle and Wu",
            "SmoothDCG's least mean loss stays beneath Theorem 38",
            "RankSVM's averaged descent stays beneath Theorem 35",
        ),
    ),
    "fast-rates": Expected(8, 8, 8, for_anyone=("with noise it stays beneath Theorem 35",)),
    "sparse-features": Expected(
        6,
        6,
        6,
        for_anyone=(  # weights of 0 do not care how many features there are
            "in the l1 ball much slower",
            "the l1 ball stays beneath Theorem 40",
        ),
    ),
    "thesis-fig2.1": Expected(9, 9, 7),
    "thesis-fig2.2": Expected(7, 7, 6),
    "thesis-fig3.4": Expected(27, 27, 13),
    "thesis-fig3.5": Expected(26, 26, 12),
    "thesis-table5.1": Expected(6, 6, 1),
    "thesis-fig5.1": Expected(
        17,
        15,
        3,
        {"an ad of Libras has about one click, and two runs differ by more than is learnt": 2},
    ),
    "thesis-fig5.2": Expected(8, 8, 8),
}


IN_PART = ["winners", "winners-lists", "rivals"]
"""Studies of every ranker on every world, all of which take long to compile: see test_winners."""


def test_every_study_is_here():
    assert sorted([*STUDIES, *IN_PART]) == sorted(list_studies())
    claims, judged, without_data = zip(*(each[:3] for each in STUDIES.values()), strict=True)
    assert (sum(claims), sum(judged), sum(without_data)) == (209, 184, 132)


def missing_of(study: Study) -> dict[str, str]:
    """Return the curves whose data is not on this machine, and why."""
    missing = {}
    for curve in study.curves:
        try:
            study.kind.build(curve.spec)
        except DataMissing as error:
            missing[curve.label] = f"no data: {error}"
    return missing


# --------------------------------------------------------------------------- without learning


def is_learner(spec: Any) -> bool:
    """Return whether a curve is that of somebody who learns."""
    game = getattr(spec, "game", spec)
    if getattr(spec, "metric", "") == "positive":  # a property of the data
        return False
    return getattr(game, "ranker", "") not in ("random", "random-lists", "fixed")


def chance_in_place_of(spec: Any, study: Study, played: dict[str, Curve]) -> Curve:
    """Return what comes of not learning: random rankings or ads, or weights of 0."""
    if hasattr(spec, "policy"):
        if spec.metric == "accuracy":
            rate = 1.0 / (1 + int(load_classes(spec.data).labels.max()))
        else:
            rate = float(np.mean({"bank": BANK_RATES, "hotel": HOTEL_RATES}[spec.data]))
        return Curve("", np.zeros(1, np.int64), np.full((spec.runs, 1), rate))
    if hasattr(spec, "test_queries"):
        built, risks = build_risk(spec), []
        for point in spec.points:
            setting = setting_at(spec, point)
            best = best_of(built, setting)
            risks.append(best.risk(np.zeros(len(setting.truth)))[0] - best.value)
        return Curve("", np.array(spec.points), np.tile(risks, (spec.runs, 1)))
    chance = "random-lists" if isinstance(spec, ListsSpec) else "random"
    nobody: dict[str, Any] = {"ranker": chance, "ranker_options": {}}
    own = replace(spec, **nobody) if not hasattr(spec, "game") else replace(
        spec, game=replace(spec.game, **nobody)
    )  # fmt: skip
    key = json.dumps(plain(own.as_dict()), sort_keys=True)
    if key not in played:
        played[key] = study.kind.play("", study.kind.build(own), None)
    return played[key]


def claims_for_anyone(result: Reproduction) -> list[str]:
    """Return the claims that name a learner and hold whichever of theirs learns nothing."""
    study, played = result.study, dict[str, Curve]()
    learners = {curve.label: curve.spec for curve in study.curves if is_learner(curve.spec)}
    lines = _lines(study, result.curves)
    found = []
    for claim, verdict in zip(study.claims, result.verdicts, strict=True):
        named = [*claim.get("curves", []), *([claim["curve"]] if "curve" in claim else [])]
        learning = [label for label in named if label in learners]
        if verdict.holds is None or not learning:
            continue
        for label in learning:
            chance = replace(chance_in_place_of(learners[label], study, played), label=label)
            if not judge(claim, {**result.curves, label: chance}, lines, {}).holds:
                break
        else:
            found.append(claim["text"])
    return found


# --------------------------------------------------------------------------- the tests

LARGE = ("thesis-fig5.1", "thesis-fig5.2")
"""Studies of logs that take half a gigabyte, which a process of its own gives back."""
APART = """
import sys
from pathlib import Path
from keyhole.lab.run import reproduce
from keyhole.lab.study import find_study
reproduce(find_study(sys.argv[1], quick=True), Path(sys.argv[2]))
"""


@pytest.mark.parametrize("key", STUDIES)
def test_every_claim_is_judged_and_asks_for_learning(key, tmp_path):
    expected, study = STUDIES[key], find_study(key, quick=True)
    if key in LARGE:
        subprocess.run([sys.executable, "-c", APART, key, tmp_path], check=True)
    result = reproduce(study, tmp_path)  # of what is finished, nothing is played again
    assert result.holds, "\n".join(map(str, result.verdicts))
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"cells", "curves.csv", "verdicts.json", f"{key}.png", f"{key}.svg"}
    assert json.loads((tmp_path / "verdicts.json").read_text())["holds"] is True
    judged = [verdict for verdict in result.verdicts if verdict.holds]
    assert len(result.verdicts) == expected.claims
    if missing_of(study):
        assert len(judged) == expected.without_data
        return
    assert len(judged) == expected.judged
    unjudged = Counter(verdict.evidence for verdict in result.verdicts if verdict.holds is None)
    assert unjudged == expected.unjudged
    for_anyone = claims_for_anyone(result)
    assert len(for_anyone) == len(expected.for_anyone), "\n".join(for_anyone)
    for text, beginning in zip(for_anyone, expected.for_anyone, strict=True):
        assert text.startswith(beginning)


@pytest.mark.parametrize("key", STUDIES)
def test_without_data_other_claims_are_judged(key, tmp_path, monkeypatch):
    monkeypatch.setenv("KEYHOLE_DATA", str(tmp_path))
    study = find_study(key, quick=True)
    missing = missing_of(study)
    judged = [
        claim
        for claim in study.claims
        if "skip" not in claim
        and not missing.keys() & {*claim.get("curves", []), claim.get("curve", "")}
    ]
    assert len(judged) == STUDIES[key].without_data
