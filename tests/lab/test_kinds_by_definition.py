"""Kinds of study, from their fields to what is drawn, learnt, told and compiled: done again."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from keyhole.base.errors import InvalidInput, UnknownName
from keyhole.batch.balls import Ball
from keyhole.batch.risk import Risk
from keyhole.bounds import generalisation as bounds
from keyhole.data.bandit.campaign import Campaign
from keyhole.data.bandit.convert import bandit_feedback
from keyhole.data.bandit.selection import information_gain, select_features
from keyhole.experiment.description import Experiment
from keyhole.lab.kinds import ad_data, ads, risks
from keyhole.lab.kinds.ad_data import AdSettings, ClassData, campaign_policies, positive_share
from keyhole.lab.kinds.experiments import ListsSpec, play_lists, play_lists_to_the_end
from keyhole.lab.kinds.horizons import HorizonsSpec, play_horizons
from keyhole.lab.kinds.risks import Best, RiskSpec, Setting, build_risk, draw_lists, reader
from keyhole.lab.kinds.sides import SidesSpec, play_sides
from keyhole.lab.results import play_regret, play_to_the_end
from keyhole.lab.warming import cases
from keyhole.policies.judging import mean_auc, mean_likelihood
from keyhole.policies.training import fit_classifiers

pytestmark = pytest.mark.interpreted

# --------------------------------------------------------------------------- fields

GAMES: dict[str, Any] = {"ranker": "epsilon-greedy", "items": 3, "top": 1, "runs": 2}


def test_the_games_of_horizons_are_described_by_the_last_of_them():
    given = {**GAMES, "measure": "SumLoss", "points": [4, 9], "gap": 0.5, "world": "near-ties"}
    spec = HorizonsSpec.of(given, "here")
    game = Experiment(
        ranker="epsilon-greedy", items=3, top=1, runs=2, measure="SumLoss", world="near-ties",
        rounds=9, points=2,
    )  # fmt: skip
    assert spec == HorizonsSpec(game, points=(4, 9), gap=0.5)
    assert (spec.shrinks, spec.pair, spec.learns, spec.knows_horizon) == (0.0, None, None, True)
    assert (spec.work, spec.measure, spec.ranker) == (26, "SumLoss", "epsilon-greedy")
    assert spec.at(4) == replace(game, rounds=4, world_options={"gap": 0.5})
    assert replace(spec, shrinks=0.5).at(4).world_options == {"gap": 0.25}
    assert replace(spec, gap=None).at(4) == replace(game, rounds=4)
    told = replace(spec, pair="swap", learns="DCG")
    assert told.sides_at(4) == SidesSpec(replace(game, rounds=4, world="hopeless"), "swap", "DCG")
    assert replace(told, learns=None).sides_at(4).learns == "SumLoss"
    assert told.work == 52
    for points in ([], [4, 4], [9, 4]):
        with pytest.raises(InvalidInput, match="points of here must be rising horizons"):
            HorizonsSpec.of({**given, "points": points}, "here")
    for wrong in ({"points": [0, 4]}, {"gap": 0.0}, {"gap": -1.0}):
        with pytest.raises(InvalidInput, match=f"{next(iter(wrong))} of here must be"):
            HorizonsSpec.of({**given, **wrong}, "here")
    with pytest.raises(UnknownName):
        HorizonsSpec.of({**given, "rounds": 9}, "here")


@pytest.mark.parametrize("knows", [True, False])
def test_rankers_are_told_the_horizon_unless_they_may_not_know_it(knows):
    given = {**GAMES, "ranker": "rtopk", "points": [40, 90], "knows_horizon": knows}
    built = HorizonsSpec.of(given, "here").build()
    told = [game.ranker.settings["horizon"] for game in built.games]
    assert told == ([40, 90] if knows else [None, None])
    assert [game.experiment.rounds for game in built.games] == [40, 90]


def few_lists(tmp_path):
    path = tmp_path / "lists.txt"
    rows = [f"{n % 3} qid:{n // 4} 1:{n % 5} 2:{n % 7}" for n in range(16)]
    path.write_text("\n".join(rows) + "\n")
    game = Experiment(
        ranker="contextual-rtopk", world=[str(path)], measure="NDCG@2", rounds=7, runs=2, top=1
    )
    return ListsSpec(game)


def test_what_is_told_of_every_kind_adds_up_to_its_work(tmp_path):
    game = Experiment(**GAMES, rounds=9)
    pair = {**GAMES, "measure": "NDCG", "pair": "worst-three", "learns": "DCG"}
    lists = few_lists(tmp_path)
    horizons = {**GAMES, "points": [4, 9]}
    played: list[tuple[Any, Any]] = [
        (game, play_regret), (game, play_to_the_end), (lists, play_lists),
        (lists, play_lists_to_the_end), (SidesSpec.of({**pair, "rounds": 5}, "here"), play_sides),
        (HorizonsSpec.of(horizons, "here"), play_horizons),
        (HorizonsSpec.of({**pair, "points": [4, 9]}, "here"), play_horizons),
    ]  # fmt: skip
    for spec, play in played:
        told: list[int] = []
        curve = play("a", spec.build(), told.append)
        assert sum(told) == spec.work > 0
        assert curve.label == "a"
    assert [spec.work for spec, _ in played] == [18, 18, 14, 14, 20, 26, 52]


# --------------------------------------------------------------------------- risks


def unit(row):
    size = math.sqrt(math.fsum(x * x for x in row))
    return [x / size for x in row]


@pytest.mark.parametrize("documents", ["sphere", "cube"])
@pytest.mark.parametrize("grades", ["real", "binary"])
def test_lists_are_drawn_as_their_description_says(documents, grades):
    spec = RiskSpec(documents=documents, grades=grades, noise=0.3, strength=2.0)
    truth = np.array([0.5, -1.5, 0.0])
    setting = Setting(4, 2, truth, 2)
    features, found, starts = draw_lists(spec, setting, 5, [7, 1])
    rng = np.random.default_rng([7, 1])
    if documents == "cube":
        rows = rng.uniform(-1.0, 1.0, (10, 3)).tolist()
    else:
        rows = [unit(row) for row in rng.normal(size=(10, 3)).tolist()]
    noise = rng.normal(size=10).tolist()
    assert np.allclose(features, rows, rtol=1e-12)
    assert starts.tolist() == [0, 2, 4, 6, 8, 10]
    for row, off, grade in zip(rows, noise, found.tolist(), strict=True):
        score = sum(x * w for x, w in zip(row, truth.tolist(), strict=True)) + 0.3 * off
        highest = 2.0 if documents == "cube" else spec.strength  # both: |0.5| + |-1.5|
        wanted = max(score + highest + 6 * 0.3, 0.0) if grades == "real" else float(score > 0.0)
        assert grade == pytest.approx(wanted, abs=1e-12)
    wide = draw_lists(replace(spec, strength=9.0), setting, 5, [7, 1])[1]
    moved = grades == "real" and documents == "sphere"
    assert (wide - found).tolist() == pytest.approx([7.0 if moved else 0.0] * 10)


RATES = {
    "online": lambda loss, _, n, limits, r, norm: bounds.best_rate(
        loss.lipschitz(3, **limits), r, norm, n
    ),
    "online-smooth": lambda loss, best, n, limits, r, norm: bounds.smooth_rate(
        loss.smoothness(3, **limits), r, norm, n, best.value - best.unavoidable
    ),
}


@pytest.mark.parametrize("documents", ["sphere", "cube"])
@pytest.mark.parametrize("learner", RATES)
def test_averaged_descent_has_the_rate_of_its_theorem(learner, documents, monkeypatch):
    seen: dict[str, Any] = {}

    def noted(descent, world, **how):
        seen.update(settings=descent.settings, how=how, n_lists=world.n_queries)
        return np.zeros(2)

    monkeypatch.setattr(risks, "average_weights", noted)
    spec = RiskSpec(
        vary="items", points=(3,), features=2, learner=learner, documents=documents, queries=4,
        surrogate="listnet", strength=1.5, grades="real", noise=0.1,
    )  # fmt: skip
    built = build_risk(spec)
    setting = risks.setting_at(spec, 3)
    lists = draw_lists(spec, setting, 4, [0, 2])
    risk = Risk(built.loss, *lists)
    best = Best(risk, 0.9, 0.25)
    ball = Ball("l2", 1.5)
    weights = risks.LEARNERS[learner](built, best, risk, ball, 6)
    norm = 1.0 if documents == "sphere" else math.sqrt(2.0)
    limits: dict[str, Any] = {"max_grade": float(lists[1].max()), "max_score": 1.5 * norm}
    rate = RATES[learner](built.loss, best, 4, limits, 1.5, norm)
    told = seen["settings"]
    assert told["rate"] == pytest.approx(rate, rel=1e-12)
    assert (told["step"], told["radius"], told["centred"]) == ("fixed", 1.5, False)
    assert seen["how"] == {"rounds": 4, "seed": 6}
    assert weights.tolist() == [0.0, 0.0]
    low = risks.LEARNERS["online-smooth"](built, Best(risk, 0.1, 0.25), risk, ball, 0)
    assert low.tolist() == [0.0, 0.0]
    curvature = built.loss.smoothness(3, **limits)
    assert curvature is not None
    free = bounds.smooth_rate(curvature, 1.5, norm, 4, 0.0)
    assert seen["settings"]["rate"] == pytest.approx(free, rel=1e-12)


def test_a_ball_holds_the_true_weights_and_no_more():
    setting = Setting(4, 2, np.array([3.0, -4.0, 0.0]), 2)
    assert risks._ball(RiskSpec(ball="l2"), setting) == Ball("l2", 5.0)
    assert risks._ball(RiskSpec(ball="l1"), setting) == Ball("l1", 7.0)


def test_a_setting_has_the_point_in_place_of_the_field_that_varies():
    for vary in risks.VARIED:
        spec = reader(vary)({"points": [2, 5], "queries": 7, "items": 3, "features": 4}, "here")
        assert (spec.vary, spec.points) == (vary, (2, 5))
        usual = {"queries": 7, "items": 3, "features": 4, vary: 5}
        found = risks.setting_at(spec, 5)
        told = (found.queries, found.items, len(found.truth), found.n_informative)
        assert told == (*(usual[name] for name in ("queries", "items")), *[usual["features"]] * 2)
    few = risks.setting_at(RiskSpec(features=2, informative=5), 3)
    assert few.n_informative == 2
    assert reader("items")({}, "here").points == ()


def changed(spec: RiskSpec, name: str, value: Any) -> RiskSpec:
    fields: Any = {name: value}
    return replace(spec, **fields)


def test_a_description_of_risks_that_makes_no_sense_is_refused():
    good = RiskSpec(points=(1, 4), surrogate="squared")
    assert build_risk(good).spec == good
    for name in ("queries", "items", "features", "test_queries", "runs"):
        with pytest.raises(InvalidInput, match=f"{name} must be an integer of at least 1"):
            build_risk(changed(good, name, 0))
        build_risk(changed(good, name, 1))
    for points in ((), (2, 2), (0, 4), (4, 2)):
        with pytest.raises(InvalidInput, match="points must be rising integers"):
            build_risk(replace(good, points=points))
    for name in ("learner", "ball", "documents", "grades"):
        with pytest.raises(UnknownName, match=f"{name} must be one of"):
            build_risk(changed(good, name, "no"))
    for learner in ("regularised", "online", "online-smooth"):
        with pytest.raises(InvalidInput, match=f"ball of the learner {learner} must be l2"):
            build_risk(replace(good, learner=learner, ball="l1"))
        build_risk(replace(good, learner=learner))
    build_risk(replace(good, ball="l1"))


# --------------------------------------------------------------------------- advertisements


@pytest.mark.parametrize("seed", [0, 2])
def test_the_share_of_clicks_is_the_mean_over_ads_in_the_training_log(seed):
    numbers = np.random.default_rng(seed)
    labels = np.minimum(numbers.integers(5, size=60), 2)
    features = numbers.normal(size=(60, 4))
    found = positive_share(ClassData("few", features, labels), seed=seed)
    train, _ = ad_data._parts(60, 0.7, seed, 10)
    assert len(train) == 42
    log = bandit_feedback(features[train], labels[train], n_actions=3, seed=seed)
    shares = []
    for ad in range(3):
        own = [
            reward for reward, shown in zip(log.rewards, log.actions, strict=True) if shown == ad
        ]
        shares.append(sum(own) / len(own))
    expected = {"size": 60, "features": 4, "classes": 3, "percent_positive": 100 * sum(shares) / 3}
    assert found == pytest.approx(expected)


def test_a_part_is_a_share_of_the_rows_and_the_rest_the_others():
    for use in (10, 11):
        first, rest = ad_data._parts(31, 0.4, 3, use)
        assert len(first) == 12
        assert sorted([*first, *rest]) == list(range(31))
    assert ad_data._parts(31, 0.4, 3, 10)[0].tolist() != ad_data._parts(31, 0.4, 3, 11)[0].tolist()
    assert ad_data._parts(31, 0.4, 3, 10)[0].tolist() != ad_data._parts(31, 0.4, 4, 10)[0].tolist()


def test_the_penalty_is_the_one_that_is_judged_best_on_the_rest():
    class Log(list[int]):
        def rows(self, rows):
            return Log(rows.tolist())

    log: Any = Log(range(40))
    first, rest = (part.tolist() for part in ad_data._parts(40, 0.7, 6, 11))
    seen = []

    def fit(part, l2):
        seen.append(list(part))
        return l2, -l2

    def judge(scorer, part):
        assert list(part) == rest
        return -abs(scorer - 2.0)

    assert ad_data.choose_l2(fit, judge, log, (0.5, 1.5, 2.5, 9.0), 6) == 1.5
    assert seen == [first] * 4
    assert ad_data.choose_l2(fit, judge, log, (7.0,), 6) == 7.0
    assert len(seen) == 4


@pytest.mark.parametrize("kind", ["classifier", "classifier-unsampled"])
def test_a_policy_of_a_campaign_is_judged_by_weights_of_what_was_shown(kind, monkeypatch):
    monkeypatch.setattr("keyhole.data.bandit.campaign._N_REFERENCE", 50)
    settings = AdSettings(l2_grid=(0.3,), negatives_per_click=1.5)
    found = campaign_policies(
        "hotel", settings, contenders=(kind,), share=0.002, n_test=40, epsilon=0.3, seed=3,
        shape="bent", strength=2.0,
    )  # fmt: skip
    rates, impressions = ad_data.CAMPAIGNS["hotel"]
    world = Campaign(rates, strength=2.0, shape="bent", seed=3)
    log = world.log(round(0.002 * sum(impressions)), shares=impressions, seed=7)
    test = world.log(40, seed=8)
    gains = information_gain(log.contexts, log.rewards, groups=log.actions)
    columns = select_features(gains, 0.2)
    assert len(columns) == 8
    scorer = fit_classifiers(
        log.contexts[:, columns], log.actions, log.rewards, n_actions=5, l2=0.3, seed=3,
        negatives_per_click=1.5 if kind == "classifier" else None, no_click="never",
    )  # fmt: skip
    scores = scorer.scores(test.contexts[:, columns]).tolist()
    best = [row.index(max(row)) for row in scores]
    chances = world.click_chances(test.contexts).tolist()
    true, weighted = 0.0, 0.0
    for row, ad in enumerate(best):
        policy = [0.7 if each == ad else 0.3 / 4 for each in range(5)]
        true += sum(p * c for p, c in zip(policy, chances[row], strict=True)) / 40
        weighted += policy[test.actions[row]] * 5 * test.rewards[row] / 40
    name = "classifier-unsampled" if "-" in kind else "classifier"
    assert found[name]["true"] == pytest.approx(true)
    assert found[name]["estimate"] == pytest.approx(weighted)
    assert found[name]["lower"] < found[name]["estimate"]
    assert found[name]["l2"] == 0.3
    explored = [0.7 * max(row) + 0.3 / 4 * (sum(row) - max(row)) for row in chances]
    assert found["oracle"]["true"] == pytest.approx(sum(explored) / 40)
    assert found["uniform"]["true"] == pytest.approx(np.mean(chances))


def test_every_contender_is_trained_on_the_whole_log_with_its_penalty(monkeypatch):
    monkeypatch.setattr("keyhole.data.bandit.campaign._N_REFERENCE", 50)
    asked = []

    class Fitted:
        def aligned(self, way):
            return way

    def noted(name):
        def fit(**given):
            asked.append((name, given))
            return Fitted()

        return fit

    for name in ("descend_ads", "fit_classifiers", "fit_forests"):
        monkeypatch.setattr(ad_data, name, noted(name))
    world = Campaign([0.5, 0.3], n_features=3, n_informative=2, seed=1)
    log = world.log(30, seed=4)
    settings = AdSettings(70, 9, (0.5, 2.0), negatives_per_click=1.5)
    taken: dict[str, Any] = {
        "contexts": log.contexts, "actions": log.actions, "rewards": log.rewards, "n_actions": 2,
        "negatives_per_click": 1.5, "no_click": "never", "seed": 8,
    }  # fmt: skip
    own: dict[str, Any] = {
        "rankers": ("descend_ads", {"l2": 0.5, "n_steps": 70}, (0.5, 2.0)),
        "classifier": ("fit_classifiers", {"l2": 0.5}, (0.5, 2.0)),
        "forest": ("fit_forests", {"n_trees": 9}, (0.0,)),
    }
    for kind, (name, more, grid) in own.items():
        contender = ad_data.CONTENDERS[kind]
        made: Any = contender.fit(settings, 8)(log, 0.5)
        ((called, given),) = asked
        asked.clear()
        assert (called, {*given}) == (name, {*taken, *more})
        for key, value in {**taken, **more}.items():
            assert np.array_equal(given[key], value), key
        assert (made == ("calibrated", "f1")) == (kind == "rankers")
        assert len(made) == len(contender.scorers)
        assert contender.grid(settings) == grid
        scorer = fit_classifiers(
            log.contexts, log.actions, log.rewards, n_actions=2, l2=0.1, no_click="never", seed=0
        )
        by_auc, by_chance = mean_auc(scorer, log), mean_likelihood(scorer, log, 1.5)
        assert contender.judge(settings)(scorer, log) == (
            by_auc if kind == "rankers" else by_chance
        )
    assert mean_likelihood(scorer, log) != by_chance
    assert ad_data.CONTENDERS["rankers"].takes_all
    assert not ad_data.CONTENDERS["classifier"].takes_all


def test_contenders_are_trained_as_in_the_thesis_where_nothing_is_said():
    assert AdSettings() == AdSettings(1_000_000, 200, (0.01, 0.1, 1.0, 10.0), None)
    spec = ads.AdSpec()
    assert (spec.steps, spec.trees, spec.runs, spec.share) == (1_000_000, 200, 10, 1.0)
    sampled = [each.negatives_per_click for each in (
        ad_data.EVERYTHING, ad_data.ONE_TO_TWO, ad_data.ONE_TO_ONE)]  # fmt: skip
    assert sampled == [None, 2.0, 1.0]


def test_a_campaign_is_that_of_the_thesis_where_nothing_is_said(monkeypatch):
    logs = []
    few = Campaign.log

    def noted(world, n_visitors, **given):
        logs.append((n_visitors, {**given}, world.shape, float(np.linalg.norm(world.tastes[0]))))
        return few(world, 40, **given)

    monkeypatch.setattr("keyhole.data.bandit.campaign._N_REFERENCE", 50)
    monkeypatch.setattr(Campaign, "log", noted)
    found = campaign_policies(contenders=())
    impressions = ad_data.CAMPAIGNS["bank"][1]
    assert [(n, given) for n, given, *_ in logs] == [
        (444_275, {"shares": impressions, "seed": 1}), (200_000, {"seed": 2}),
    ]  # fmt: skip
    assert {(shape, round(norm, 9)) for *_, shape, norm in logs} == {("linear", 1.0)}
    chances = Campaign(ad_data.CAMPAIGNS["bank"][0], seed=0).click_chances(
        few(Campaign(ad_data.CAMPAIGNS["bank"][0], seed=0), 40, seed=2).contexts
    )
    best = [0.8 * max(row) + 0.05 * (sum(row) - max(row)) for row in chances.tolist()]
    assert found["oracle"]["true"] == pytest.approx(np.mean(best))
    trained = []

    def fit(contender, settings, _):
        trained.append((contender.scorers, settings))

    monkeypatch.setattr(ad_data.AdLearner, "fit", fit)
    with pytest.raises(TypeError):  # after the first, for nothing is trained
        campaign_policies()
    assert trained == [(("ranker", "ranker-f1"), replace(ad_data.ONE_TO_ONE,
                                                         negatives_per_click=None))]  # fmt: skip


def test_a_curve_of_ads_asks_for_what_its_description_says(monkeypatch):
    asked = []

    def noted(name, settings, **given):
        asked.append((name, settings, given))
        made = {"true": 1.0 + given["seed"], "estimate": 20.0, "lower": 5.0, "accuracy": 0.25}
        policies = ("ranker", "ranker-f1", "classifier", "forest", "classifier-unsampled")
        return dict.fromkeys(policies, made)

    monkeypatch.setattr(ads, "campaign_policies", noted)
    monkeypatch.setattr(ads, "class_policies", noted)
    monkeypatch.setattr(ads, "load_classes", lambda name: f"data of {name}")
    ads._trained.cache_clear()
    fields = {"data": "hotel", "metric": "true", "negatives_per_click": 2.5, "steps": 70,
              "trees": 9, "shape": "bent", "share": 0.5, "runs": 3, "seed": 4}  # fmt: skip
    settings = AdSettings(70, 9, negatives_per_click=2.5)
    for policy, kind in (("ranker-f1", "rankers"), ("classifier-unsampled", "classifier-unsampled"),
                         ("forest", "forest")):  # fmt: skip
        told: list[int] = []
        curve = ads.play_ads("a", ads.AdSpec.of({**fields, "policy": policy}, "here"), told.append)
        assert curve.values.tolist() == [[5.0], [6.0], [7.0]]
        assert curve.x.tolist() == [0]
        assert sum(told) == 3
        asked.sort(key=lambda each: each[2]["seed"])
        for run, (name, how, given) in enumerate(asked):
            assert (name, how) == ("hotel", settings)
            assert given == {"shape": "bent", "share": 0.5, "contenders": (kind,), "seed": 4 + run}
        asked.clear()
    spec = ads.AdSpec.of({**fields, "metric": "estimate", "policy": "forest"}, "here")
    assert ads.play_ads("a", spec).values.tolist() == [[20.0]] * 3
    assert asked == []  # one training serves all metrics
    spec = ads.AdSpec(data="letter", runs=1, steps=30, seed=2)
    assert ads.play_ads("a", spec).values.tolist() == [[0.25]]
    usual = AdSettings(30, 200, negatives_per_click=None)
    assert asked == [("data of letter", usual, {"contenders": ("rankers",), "seed": 2})]
    ads._trained.cache_clear()


def test_descriptions_of_ads_are_checked():
    assert ads.build_ads(ads.AdSpec(metric="true", data="bank")).data == "bank"
    for metric, data in (("true", "digits"), ("positive", "bank"), ("accuracy", "bank")):
        with pytest.raises(UnknownName, match="data of a"):
            ads.build_ads(ads.AdSpec(metric=metric, data=data))
    with pytest.raises(InvalidInput, match="runs must be an integer of at least 1"):
        ads.build_ads(ads.AdSpec(runs=0))
    for wrong in ({"metric": "no"}, {"policy": "no"}, {"no": 1}):
        with pytest.raises(UnknownName):
            ads.AdSpec.of(wrong, "here")


# --------------------------------------------------------------------------- compiling ahead


def test_what_is_compiled_ahead_is_what_it_is_called(monkeypatch):
    played = []
    monkeypatch.setattr(Experiment, "play", lambda self, *_: played.append(self))
    for name, make in cases(["rtopk", "hedge"]):
        ranker, world, *judged = name.split(", ")
        if judged and world != "people in turn" and not world.startswith("people"):
            make()
            game = played.pop()
            assert (game.ranker, game.world, game.measure) == (ranker, world, judged[0])
            assert (game.items, game.rounds) == (4 if ranker == "hedge" else 10, 3)
    assert played == []
    names = [name for name, _ in cases(["keystone"])]
    assert {"keystone, flips, DCG", "keystone, people in turn, DCG", "keystone, walking, DCG",
            "keystone, flips, NDCG@10"} <= {*names}  # fmt: skip
    assert len(names) == 12
