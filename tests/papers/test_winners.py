"""The study of all crowds: its groups, its quick version, and rows without data."""

from dataclasses import replace

import numpy as np
import pytest

from keyhole.base.errors import UnknownName
from keyhole.experiment.description import Experiment
from keyhole.lab.claims import judge
from keyhole.lab.figures.groups import table_of
from keyhole.lab.kinds.experiments import ListsSpec, play_lists, play_lists_to_the_end
from keyhole.lab.results import Curve
from keyhole.lab.run import reproduce
from keyhole.lab.study import find_study, read_study
from tests.papers.test_lists import write_letor


def test_every_ranker_meets_every_crowd():
    study = find_study("winners")
    groups = {curve.group for curve in study.curves}
    names = {curve.name for curve in study.curves}
    assert {"flips", "walking", "Jester 100, drifting", "SumLoss, flips"} <= groups
    assert len(study.curves) == len(groups) * len(names)
    specs = {curve.label: curve.spec.as_dict() for curve in study.curves}
    found = specs["takeover at T/3: keystone"]
    assert (found["world"], found["world_options"]) == ("takeover", {"at": 3333})
    assert found["ranker"] == "keystone"
    assert specs["Jester 10, by mean: RTop-1F"]["rounds"] == 24953
    assert specs["SumLoss, flips: keystone"]["measure"] == "SumLoss"


def test_the_quick_version_changes_what_depends_on_the_horizon():
    study = find_study("winners", quick=True)
    specs = {curve.label: curve.spec.as_dict() for curve in study.curves}
    assert specs["rising at T/3: keystone"]["world_options"] == {"at": 500}
    assert specs["rising at T/3: keystone"]["rounds"] == 1500
    assert "Travel, drifting: keystone" in study.left_out


def test_it_is_played_drawn_and_judged_and_says_what_data_is_missing(tmp_path, monkeypatch):
    monkeypatch.setenv("KEYHOLE_DATA", str(tmp_path / "nothing"))
    whole, quick = find_study("winners"), find_study("winners", quick=True)
    played = [curve for curve in quick.curves if curve.group == "flips"]
    without = [curve for curve in whole.curves if curve.group == "Travel, drifting"]
    claims = [c for c in quick.claims if c["text"].startswith(("flips", "Travel, drifting"))]
    study = replace(quick, curves=(*played, *without), claims=tuple(claims), left_out={})
    result = reproduce(study, tmp_path / "out")
    assert (tmp_path / "out" / "winners.png").read_bytes().startswith(b"\x89PNG")
    verdicts = {verdict.claim: verdict for verdict in result.verdicts}
    ahead = (
        "flips: the leader, the best that sees everything, is ahead of keystone, which sees one "
        "item and is ahead of FTPL with its theorem's noise"
    )
    assert verdicts[ahead].holds
    assert verdicts["flips: keystone, at most 0.015"].holds is None
    missing = verdicts["Travel, drifting: keystone is no worse than its prototype (-0.098)"]
    assert missing.holds is None
    assert "no data" in missing.evidence
    heads, row = table_of(study, result.curves, "crowds")
    assert heads[1:4] == ["RTop-1F", "keystone", "FTPL, sees everything, its theorem's noise"]
    assert len(heads) == 1 + len({curve.name for curve in whole.curves}) == 9
    assert row[0] == "flips"
    # The claim is none that everybody meets.
    slow = {**result.curves, "flips: keystone": result.curves["flips: RTop-1F"]}
    (claim,) = (claim for claim in claims if claim["text"] == ahead)
    assert judge(claim, slow, {}, {}).holds is False


def test_lists_are_measured_from_a_round_on(tmp_path):
    path = write_letor(tmp_path / "train.txt", 1)
    spec = ListsSpec(Experiment(ranker="random-lists", world=[str(path)], rounds=100, runs=2))
    whole = play_lists("x", spec.build())
    assert play_lists_to_the_end("x", spec.build()).values.tolist() == pytest.approx(
        whole.values[:, -1:], abs=1e-12
    )
    late = play_lists_to_the_end("x", replace(spec, since=60).build())
    assert late.x.tolist() == [100]
    totals = whole.totals[:, whole.index(100)] - whole.totals[:, whole.index(60)]
    assert late.values[:, 0] == pytest.approx(totals / 40)


def test_every_ranker_meets_all_lists():
    study = find_study("winners-lists")
    specs = {curve.label: curve.spec.as_dict() for curve in study.curves}
    permuted = specs["MQ2008, after labels are permuted: ListNet, all labels"]
    assert permuted["since"] == permuted["world_options"]["permute_at"] == 50_000
    assert all("document_seed" in spec["world_options"] for spec in specs.values())
    quick = {c.label: c.spec.as_dict() for c in find_study("winners-lists", quick=True).curves}
    permuted = quick["MQ2008, after labels are permuted: ListNet, all labels"]
    assert permuted["since"] == permuted["world_options"]["permute_at"] == 1000
    assert permuted["world_options"]["document_seed"] == 2025


def test_a_band_may_be_missed_by_few_standard_errors():
    curve = Curve("c", np.array([1]), np.array([[1.0], [3.0]]))  # 2 with a standard error of 1
    claim = {"kind": "band", "text": "t", "curve": "c", "high": 0.5}
    for errors, holds in ((0.0, False), (1.4, False), (1.6, True)):
        assert judge({**claim, "errors": errors}, {"c": curve}, {}, {}).holds is holds
    below = {"kind": "band", "text": "t", "curve": "c", "low": 3.2, "high": 4.0}
    assert judge({**below, "errors": 1.1}, {"c": curve}, {}, {}).holds is False
    assert judge({**below, "errors": 1.3}, {"c": curve}, {}, {}).holds is True
    least = {"kind": "band", "text": "t", "curve": "c", "low": 1.9}
    assert judge(least, {"c": curve}, {}, {}).holds is True
    verdict = judge({**least, "low": 2.1}, {"c": curve}, {}, {})
    assert verdict.holds is False
    assert "at least 2.1" in verdict.evidence


@pytest.mark.parametrize("key", ["winners", "winners-lists"])
def test_every_claim_can_be_judged(key):
    """Of curves that are all the same, no claim to be ahead holds."""
    study = find_study(key)
    values = np.array([[0.2], [0.2]])
    curves = {curve.label: Curve(curve.label, np.array([9]), values) for curve in study.curves}
    verdicts = [judge(claim, curves, {}, {}) for claim in study.claims]
    assert not any(v.holds for v in verdicts if "ahead" in v.claim or "reaches" in v.claim)
    assert all(v.holds is not None for v in verdicts)


def test_a_field_that_no_group_has_is_named(tmp_path):
    (tmp_path / "study.toml").write_text(
        'title="t"\npaper="p"\nabout="a"\n[[group]]\nname="g"\npanels="x"\n'
        '[[curve]]\nlabel="c"\nover="groups"\n'
    )
    (tmp_path / "expected.toml").write_text("claim = []\n")
    with pytest.raises(UnknownName, match="A field of a group in"):
        read_study(tmp_path)
