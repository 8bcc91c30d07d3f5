"""What people are shown of a ranker, counted a second time by hand."""

import math
import random
from typing import Any

import msgspec
import numpy as np
import pytest

from keyhole.measures import measure
from keyhole.service.commands import Expire, FeedbackRequest, GiveFeedback, Rank, RankRequest
from keyhole.service.counters import MOST_POINTS, Group, ItemTally, Tally, interval
from keyhole.service.errors import NoSuchResource
from keyhole.service.events import body_of
from keyhole.service.summary import event_page, summary
from tests.service.desks import ANIMALS, answer, configure, engine_of, rank


def played(n_rounds=60, **asked):
    """Return an engine, and all that its crowd saw: the list, its relevance, and when."""
    engine = engine_of(simulation=True, **asked)
    rng = random.Random(3)
    seen: list[Any] = []
    for round in range(n_rounds):
        command = Rank("animals", RankRequest())
        shown = engine.execute(command, at=1_000 * round)
        truth = {n: float(rng.random() < 0.25 * (p + 0.5)) for p, n in enumerate(ANIMALS)}
        delay = 2**round if round < 10 else 40
        is_lost = round % 6 == 5
        if is_lost:
            engine.execute(Expire("animals", (engine.ranker("animals").seq,)), at=1_000 * round)
        else:
            relevance = [truth[name] for name in shown.ranking[: shown.k]]
            said = FeedbackRequest(relevance=relevance, truth=truth)
            given = GiveFeedback("animals", shown.event_id, said)
            engine.execute(given, at=1_000 * round + delay)
        seen.append((shown, None if is_lost else truth, delay))
    return engine, seen


@pytest.mark.parametrize("asked", [{}, {"k": 2}, {"measure": "SumLoss"}], ids=str)
def test_a_summary_counts_what_happened(asked):
    engine, seen = played(**asked)
    live, k = engine.ranker("animals"), asked.get("k", 1)
    found = summary(live)
    answered = [(shown, truth, delay) for shown, truth, delay in seen if truth is not None]
    assert found["counts"] == {
        "ranks": 60,
        "observed": 50,
        "none": 0,
        "not_shown": 0,
        "late": 0,
        "expired": 10,
        "refused": 0,
        "waiting": 0,
    }
    assert found["answer_rate"] == 50 / 60
    assert (found["is_loss"], found["k"], found["mode"]) == (
        bool(asked.get("measure")),
        k,
        "online",
    )
    assert found["shows"] == seen[-1][0].ranking
    assert found["best"] == [str(name) for name in live.learner.best()]
    assert (found["seq"], found["round"], found["sha256"]) == (live.seq, 60, live.sha256())
    believed = live.learner.state.mean
    for item in found["items"]:
        tops = [(s, t) for s, t, _ in answered if item["name"] in s.ranking[:k]]
        values = [truth[item["name"]] for _, truth in tops]
        assert item["shown_top"] == sum(item["name"] in s.ranking[:k] for s, _, _ in seen)
        assert item["observed"] == len(values)
        assert item["mean"] == pytest.approx(believed[ANIMALS.index(item["name"])])
        assert abs(item["mean"] - np.mean(values)) <= 1.0 / (len(values) + 1) + 0.2
        assert 0.0 <= item["low"] < item["mean"] + 1e-9
        assert item["mean"] - 1e-9 < item["high"] <= 1.0
    scores = [sum(t[n] for n in s.ranking[:k]) / k for s, t, _ in answered]
    series = found["series"]
    assert series["round"] == list(range(60))
    assert [score for score in series["score"] if score is not None] == pytest.approx(scores)
    assert series["score"][5] is None
    assert series["exploration"] == [float(s.policy.explored) for s, _, _ in seen]
    explored = [float(s.policy.explored) for s, _, _ in seen[-6:]]
    assert found["exploration_share"] == pytest.approx(np.mean(explored))
    delays = sorted(delay for _, _, delay in answered)
    assert found["delay_seconds"]["max"] == delays[-1] / 1000.0
    for share, name in ((0.5, "median"), (0.9, "p90")):
        true = delays[math.ceil(share * len(delays)) - 1] / 1000.0
        assert true <= found["delay_seconds"][name] < 2.0 * true + 0.001


@pytest.mark.parametrize("name", ["DCG", "SumLoss"])
def test_true_regret_is_that_of_the_best_list_in_hindsight(name):
    engine, seen = played(measure=name)
    judge = measure(name)
    sign = -1.0 if judge.is_loss else 1.0
    truths = [[truth[n] for n in ANIMALS] for _, truth, _ in seen if truth is not None]
    lists = [[ANIMALS.index(n) for n in s.ranking] for s, truth, _ in seen if truth is not None]
    own = sum(sign * judge(truth, order) for truth, order in zip(truths, lists, strict=True))
    totals = np.zeros(4)
    informed = 0.0
    for truth in truths:
        informed += sign * judge(truth, np.argsort(-totals, kind="stable"))
        totals += truth
    best = sum(sign * judge(truth, np.argsort(-totals, kind="stable")) for truth in truths)
    series = summary(engine.ranker("animals"))["series"]
    last = max(place for place, value in enumerate(series["regret"]) if value is not None)
    assert series["regret"][last] == pytest.approx((best - own) / len(truths))
    assert series["full_information"][last] == pytest.approx((best - informed) / len(truths))
    assert summary(engine_of().ranker("animals"))["series"]["regret"] is None


def test_graded_gains_are_exponential_where_the_measure_says_so():
    engine = engine_of(simulation=True, measure="DCG", max_grade=2.0)
    shown = rank(engine)
    truth = {"ant": 2.0, "bee": 1.0, "cat": 0.0, "dog": 0.0}
    answer(engine, shown.event_id, [truth[shown.ranking[0]]], truth=truth)
    judge = measure("DCG")
    relevance = [truth[name] for name in ANIMALS]
    order = [ANIMALS.index(name) for name in shown.ranking]
    regret = judge(relevance, [0, 1, 2, 3]) - judge(relevance, order)
    assert summary(engine.ranker("animals"))["series"]["regret"] == [pytest.approx(regret)]


def test_points_are_merged_and_lose_nothing():
    tally, n = Tally(), 3 * MOST_POINTS + 7
    engine = engine_of()
    ranked = body_of(list(_after_rank(engine))[-1])
    for round in range(n):
        explored = round % 3 == 0
        tally.count_rank(
            msgspec.structs.replace(ranked, round=round, explored=explored), tuple(ANIMALS)
        )
    assert tally.width == 4
    assert len(tally.points) <= MOST_POINTS
    assert [point.n for point in tally.points] == [4] * (n // 4) + [n % 4]
    assert sum(point.n_explored for point in tally.points) == math.ceil(n / 3)
    assert [point.last_round for point in tally.points] == [
        4 * p + 3 for p in range(len(tally.points))
    ]


def _after_rank(engine):
    rank(engine)
    return engine.store.events("animals")


def test_means_and_their_spread():
    group, scores = Group(), [0.0, 1.0, 0.5, 1.0]
    assert group.mean() is None
    assert group.variance_of_mean() == math.inf
    for score in scores:
        group.add(score)
    assert group.mean() == np.mean(scores)
    assert group.variance_of_mean() == pytest.approx(np.var(scores, ddof=1) / 4)
    item = ItemTally(5, 4, 2.5, 2.25)
    with_extremes = [*scores, 0.0, 1.0]
    assert item.variance_of_mean() == pytest.approx(np.var(with_extremes) / 4)
    assert ItemTally().mean() is None
    around = interval(0.5, 0.04)
    assert around == {"value": 0.5, "low": pytest.approx(0.108), "high": pytest.approx(0.892)}
    assert interval(0.5, math.inf) == {"value": 0.5, "low": None, "high": None}


def test_delays_are_counted_in_buckets_that_double():
    tally = Tally()
    assert tally.delay_quantile(0.5) is None
    tally.delays[0] = 1
    assert tally.delay_quantile(0.5) == 0.0


# --------------------------------------------------------------------------- the page of an event


def test_the_page_of_an_event_says_why():
    engine = engine_of()
    shown = engine.execute(Rank("animals", RankRequest(exclude=["bee"])), at=5_000)
    page = event_page(engine.ranker("animals"), shown.event_id)
    assert page["ranking"] == shown.ranking
    assert page["excluded"] == ["bee"]
    assert (page["seq"], page["at"], page["round"], page["k"]) == (2, 5_000, 0, 1)
    assert (page["waiting"], page["feedback"]) == (True, None)
    assert page["why"][0].startswith("The ranker explored")
    assert "1 item was excluded" in " ".join(page["why"])
    assert page["why"][-1] == "Waiting for feedback."
    said = GiveFeedback("animals", shown.event_id, FeedbackRequest(relevance=[1.0]))
    engine.execute(said, at=7_500)
    page = event_page(engine.ranker("animals"), shown.event_id)
    assert page["feedback"]["delay_seconds"] == 2.5
    assert page["feedback"]["relevance"] == [1.0]
    assert not page["waiting"]
    with pytest.raises(NoSuchResource, match="no event 'guess'"):
        event_page(engine.ranker("animals"), "guess")


def test_every_way_to_come_about_has_its_sentence():
    def why(engine, **asked):
        return " ".join(event_page(engine.ranker("animals"), rank(engine, **asked).event_id)["why"])

    engine = engine_of()
    for _ in range(50):
        shown = rank(engine)
        answer(engine, shown.event_id, [float(shown.ranking[0] == "cat")])
    said = {why(engine).split(":")[0] for _ in range(30)}
    assert said == {"The ranker did not explore", "The ranker explored"} or len(said) == 1
    configure(engine, mode="frozen")
    assert "The ranker is frozen" in why(engine)
    configure(engine, mode="apprentice")
    assert "had the same top items" in why(engine, baseline=["cat"])
    assert "had different top items" in why(engine, baseline=["ant"])
    late = rank(engine)
    engine.execute(Expire("animals", (engine.ranker("animals").seq_of[late.event_id],)))
    page = event_page(engine.ranker("animals"), late.event_id)
    assert page["why"][-1] == "Expired without feedback."
    answer(engine, late.event_id, [0.0])
    page = event_page(engine.ranker("animals"), late.event_id)
    assert page["why"][-1].startswith("Feedback arrived too late")


# --------------------------------------------------------------------------- warnings


def test_owners_are_warned():
    hopeless = engine_of(measure="NDCG", accept_linear_regret=True)
    assert "cannot be learnt" in summary(hopeless.ranker("animals"))["warnings"][0]
    engine = engine_of()
    assert summary(engine.ranker("animals"))["warnings"] == []
    for _ in range(101):
        rank(engine)
    waiting = tuple(engine.ranker("animals").waiting)
    engine.execute(Expire("animals", waiting))
    assert "wait_seconds" in summary(engine.ranker("animals"))["warnings"][0]
    apprentice = engine_of(mode="apprentice", items=ANIMALS)
    for _ in range(101):
        answer(apprentice, rank(apprentice, baseline=["dog"]).event_id, [0.0])
    warned = summary(apprentice.ranker("animals"))["warnings"]
    best = apprentice.ranker("animals").learner.best()[0]
    assert ("which has no feedback yet" in " ".join(warned)) == (best != "dog")


def test_long_waits_and_frequent_changes_are_told_apart():
    engine = engine_of()
    live = engine.ranker("animals")
    for round in (100, 200, 300):
        live.tally.count_alarm(round, round)
    assert summary(live)["alarms"] == [{"round": r, "seq": r} for r in (100, 200, 300)]
    for n_waiting in range(1, 12):
        rank(engine)
        said = " ".join(summary(live)["warnings"])
        assert ("the ranker notices changes late" in said) == (n_waiting > 10)


def test_an_alarm_is_noted_when_the_crowd_changes():
    engine = engine_of()
    rng = random.Random(0)
    for round in range(600):
        shown = rank(engine)
        liked = shown.ranking[0] == ("ant" if round < 300 else "dog")
        answer(engine, shown.event_id, [float(liked and rng.random() < 0.95)])
    alarms = engine.ranker("animals").tally.alarms
    assert alarms
    assert all(round > 300 for round, _ in alarms)


def test_items_of_rankers_without_beliefs_have_the_mean_of_what_was_seen():
    engine = engine_of(ranker="rtopk", settings={"horizon": 100})
    seen: dict[str, list[float]] = {name: [] for name in ANIMALS}
    for round in range(40):
        shown = rank(engine)
        seen[shown.ranking[0]].append(round % 3 / 2.0)
        answer(engine, shown.event_id, [round % 3 / 2.0])
    for item in summary(engine.ranker("animals"))["items"]:
        values = seen[item["name"]]
        assert item["observed"] == len(values)
        assert item["mean"] == (pytest.approx(np.mean(values)) if values else None)


def test_what_an_item_is_worth_follows_a_crowd_that_changes():
    engine = engine_of()
    for round in range(800):
        shown = rank(engine)
        answer(
            engine, shown.event_id, [float(shown.ranking[0] == ("ant" if round < 500 else "dog"))]
        )
    values = {item["name"]: item["mean"] for item in summary(engine.ranker("animals"))["items"]}
    assert values["dog"] > 0.9
    assert values["ant"] < 0.3
