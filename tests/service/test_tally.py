"""Counters at their edges: what is merged, dropped, clipped and told apart."""

import math
from typing import Any

import pytest

from keyhole.rankers import ranker as library_ranker
from keyhole.service.commands import Expire, FeedbackRequest, GiveFeedback, Rank, RankRequest
from keyhole.service.counters import MOST_POINTS, ItemTally, Tally, interval
from keyhole.service.errors import ConflictingRequest
from keyhole.service.events import Answered, Ranked
from keyhole.service.summary import event_page, summary
from tests.service.desks import ANIMALS, answer, configure, engine_of, rank
from tests.service.summary_references import cautious_variance, width_of

pytestmark = pytest.mark.interpreted

NAMES = ("ant", "bee")
SHOWN = Ranked(0, 1, (0, 1), False, "online", 1, catalogue=1)


def shown(round, **changes):
    kept = {name: getattr(SHOWN, name) for name in ("ranking", "explored", "mode", "k")}
    return Ranked(**{"round": round, "model_seq": 1, "catalogue": 1, **kept, **changes})


@pytest.mark.parametrize("n_rounds", [1, 255, 256, 257, 512, 513, 1025])
def test_points_are_merged_once_they_are_too_many(n_rounds):
    tally = Tally()
    for round in range(n_rounds):
        tally.count_rank(shown(round, explored=round % 5 == 0), NAMES)
    width = width_of(n_rounds)
    assert (tally.width, MOST_POINTS) == (width, 256)
    firsts = range(0, n_rounds, width)
    assert [point.last_round for point in tally.points] == [first + width - 1 for first in firsts]
    assert [point.n for point in tally.points] == [min(width, n_rounds - f) for f in firsts]
    explored = [sum(r % 5 == 0 for r in range(f, min(f + width, n_rounds))) for f in firsts]
    assert [point.n_explored for point in tally.points] == explored


@pytest.mark.parametrize("backwards", [False, True])
def test_a_merged_point_tells_the_regret_that_was_known_last(backwards):
    """Truths are told in the order of the rounds, or of each two neighbours the later one first."""
    tally, told = Tally(), []
    order = [round ^ backwards for round in range(MOST_POINTS)]
    for place in range(MOST_POINTS):
        tally.count_rank(shown(place), NAMES)
    worst, best, informed, ahead = 0.0, 0.0, 0.0, 0.0
    for n, round in enumerate(order, 1):
        gains = (0.0, 1.0) if round % 3 else (1.0, 0.0)
        tally.count_truth(shown(round), gains, [1.0, 0.0], NAMES)
        informed += gains[1] if best > worst else gains[0]
        worst, best = worst + gains[0], best + gains[1]
        ahead = max(worst, best)
        told.append(((ahead - worst) / n, (ahead - informed) / n, n))
    for place in range(MOST_POINTS, 2 * MOST_POINTS):
        tally.count_rank(shown(place), NAMES)
    merged = [(point.regret, point.full_information, point.n_true) for point in tally.points]
    assert tally.width == 2
    assert merged[: MOST_POINTS // 2] == [pytest.approx(each) for each in told[1::2]]
    assert {point.n_true for point in tally.points[MOST_POINTS // 2 :]} == {0}


@pytest.mark.parametrize("n_before", [1, 3, 5])
def test_a_point_merged_over_a_change_of_items_tells_the_regret_since(n_before):
    """The list shown lost in each round before the change, and in none after it."""
    tally = Tally()
    for round in range(2 * MOST_POINTS):
        tally.count_rank(shown(round), NAMES)
        if round == n_before:
            tally.change_items()
        if round <= n_before:
            gains = (0.0, 1.0) if round < n_before else (1.0, 0.0)
            tally.count_truth(shown(round), gains, [1.0, 0.0], NAMES)
    point = tally.points[n_before // 2]
    assert (tally.width, point.n_true, point.regret) == (2, n_before + 1, 0.0)
    regrets = [before.regret for before in tally.points[: n_before // 2]]
    assert regrets == [1.0] * (n_before // 2)


def test_regret_begins_anew_with_other_items():
    """The list shown was the best one of its items; those that came instead were never better."""
    asked: dict[str, Any] = {"ranker": "fixed", "simulation": True, "k": 1}
    engine = engine_of(items=["ant", "bee"], **asked)
    for _ in range(4):
        truth = {"ant": 1.0, "bee": 0.0}
        answer(engine, rank(engine).event_id, [1.0], truth=truth)
    configure(engine, items=["bee", "cat"], **asked)
    for _ in range(2):
        truth = {"bee": 0.0, "cat": 1.0}
        answer(engine, rank(engine).event_id, [0.0], truth=truth)
    series = summary(engine.ranker("animals"))["series"]
    lost = 1.0 - 1.0 / math.log2(3.0)  # a second place where the first one was due
    assert series["regret"] == [pytest.approx(each) for each in (0.0, 0.0, 0.0, 0.0, lost, lost)]
    # It follows the leader of one round before, from the second round on.
    assert series["full_information"][4:] == [pytest.approx(lost), pytest.approx(lost / 2.0)]


def test_a_list_that_nobody_saw_lost_nothing():
    engine = engine_of(items=["ant", "bee"], ranker="fixed", simulation=True)
    truth = {"ant": 0.0, "bee": 1.0}
    answer(engine, rank(engine).event_id, status="not_shown", truth=truth)
    assert summary(engine.ranker("animals"))["series"]["regret"] is None
    answer(engine, rank(engine).event_id, [0.0], truth=truth)
    lost = pytest.approx(1.0 - 1.0 / math.log2(3.0))
    assert summary(engine.ranker("animals"))["series"]["regret"] == [None, lost]


def test_waiting_lists_count_for_regret_where_the_items_stay():
    asked: dict[str, Any] = {"items": ["ant", "bee"], "ranker": "fixed", "simulation": True}
    engine = engine_of(**asked)
    waits = rank(engine)
    configure(engine, **asked, wait_seconds=5.0)
    answer(engine, waits.event_id, [0.0], truth={"ant": 0.0, "bee": 1.0})
    assert summary(engine.ranker("animals"))["series"]["regret"][0] > 0.0
    waits = rank(engine)
    configure(engine, **{**asked, "items": ["bee", "ant"]})
    answer(engine, waits.event_id, [0.0], truth={"ant": 0.0, "bee": 1.0})
    assert engine.ranker("animals").tally.truth.n == 0


def test_only_the_last_hundred_alarms_are_kept():
    tally = Tally()
    for number in range(103):
        tally.count_alarm(number, 2 * number)
    assert tally.alarms == [(number, 2 * number) for number in range(3, 103)]


@pytest.mark.parametrize(
    ("delays", "share", "seconds"),
    [
        ([0], 0.5, 0.0),
        ([1], 0.5, 0.001),
        ([2], 0.5, 0.002),  # no longer than the longest
        ([5, 1_000], 0.5, 0.007),
        ([5, 1_000], 0.51, 1.0),
        ([4, 4, 7, 8, 900_000], 0.6, 0.007),
        ([4, 4, 7, 8, 900_000], 0.8, 0.015),
        ([-3, -3, 9], 0.5, 0.0),  # a clock that was set back
        ([2**60], 0.5, (2**47 - 1) / 1_000.0),
    ],
)
def test_delays_within_which_a_share_of_feedback_came(delays, share, seconds):
    tally = Tally()
    for round, delay in enumerate(delays):
        tally.count_rank(shown(round), NAMES)
        tally.count_feedback(
            shown(round), Answered("observed", (1.0,), "pending"), NAMES, delay, 1.0
        )
    assert tally.delay_quantile(share) == seconds
    assert tally.longest_delay == max(*delays, 0)
    assert sum(tally.delays) == len(delays)


def test_delays_are_milliseconds_of_the_wall_clock():
    engine = engine_of()
    first = engine.execute(Rank("animals", RankRequest()), at=10_000)
    said = GiveFeedback("animals", first.event_id, FeedbackRequest(relevance=[1.0]))
    engine.execute(said, at=8_500)
    live = engine.ranker("animals")
    assert event_page(live, first.event_id)["feedback"]["delay_seconds"] == -1.5
    assert summary(live)["delay_seconds"] == {"median": 0.0, "p90": 0.0, "max": 0.0}


@pytest.mark.parametrize("grade", [0.5, 1.0, 4.0])
@pytest.mark.parametrize("shares", [(0.0,), (1.0, 0.25), (0.0, 0.0, 0.5, 1.0)])
def test_the_spread_of_a_mean_is_as_if_each_extreme_had_been_seen(grade, shares):
    """The largest grade is one of them, whatever it is."""
    values = [grade * share for share in shares]
    item = ItemTally(0, len(values), sum(values), sum(value * value for value in values))
    assert item.variance_of_mean(grade) == pytest.approx(cautious_variance(values, grade))
    assert interval(1.0, item.variance_of_mean(grade))["high"] == pytest.approx(
        1.0 + 1.96 * math.sqrt(cautious_variance(values, grade))
    )


# --------------------------------------------------------------------------- feedback told twice


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("is_late", [False, True])
@pytest.mark.parametrize("first", ["none", "observed", "not_shown"])
def test_only_the_same_feedback_is_the_same(first, k, is_late):
    """Nothing liked and an observed zero teach alike, and are two different things to say."""
    said: dict[str, dict[str, Any]] = {
        "none": {"status": "none"},
        "observed": {"relevance": [0.0] * k},
        "not_shown": {"status": "not_shown"},
    }
    engine = engine_of(k=k)
    event_id = rank(engine).event_id
    if is_late:
        engine.execute(Expire("animals", (engine.ranker("animals").seq_of[event_id],)))
    before = answer(engine, event_id, **said[first])
    for status, again in said.items():
        if status == first:
            reply = answer(engine, event_id, **again)
            assert (reply.created, reply.seq, reply.learned) == (False, before.seq, before.learned)
        else:
            with pytest.raises(ConflictingRequest, match="has different feedback already"):
                answer(engine, event_id, **again)
    counts = summary(engine.ranker("animals"))["counts"]
    told = {status: int(status == first and not is_late) for status in said}
    assert {status: counts[status] for status in said} == told
    assert counts["late"] == counts["expired"] == int(is_late)


# --------------------------------------------------------------------------- warnings


def warnings(engine):
    return summary(engine.ranker("animals"))["warnings"]


@pytest.mark.parametrize(("n_waiting", "is_warned"), [(15, False), (16, True)])
def test_waits_are_long_beyond_a_tenth_of_the_time_between_changes(n_waiting, is_warned):
    engine = engine_of(ranker="random")
    for round in (40, 90, 340):
        engine.ranker("animals").tally.count_alarm(round, round)
    for _ in range(n_waiting):
        rank(engine)
    said = f"{n_waiting} lists wait for feedback, and preferences seem to change every 150 rounds"
    assert any(warning.startswith(said) for warning in warnings(engine)) == is_warned
    del engine.ranker("animals").tally.alarms[1:]
    assert warnings(engine) == []


@pytest.mark.parametrize(
    ("n_lost", "n_answered", "is_warned"),
    [(101, 100, True), (101, 101, False), (100, 0, False), (150, 149, True)],
)
def test_waits_are_short_where_more_than_half_get_no_feedback(n_lost, n_answered, is_warned):
    engine = engine_of(ranker="random")
    statuses = ("observed", "none", "not_shown")
    for place in range(n_answered):
        status = statuses[place % 3]
        relevance = [1.0] if status == "observed" else None
        answer(engine, rank(engine).event_id, relevance, status)
    for _ in range(n_lost):
        rank(engine)
    engine.execute(Expire("animals", tuple(engine.ranker("animals").waiting)))
    assert any("wait_seconds" in warning for warning in warnings(engine)) == is_warned


@pytest.mark.parametrize(("n_answered", "is_warned"), [(100, False), (101, True)])
def test_what_an_apprentice_knows_nothing_of_is_named(n_answered, is_warned):
    items = ["ant", "bee", "cat"]
    engine = engine_of(
        mode="apprentice", items=items, ranker="fixed", settings={"ranking": [2, 0, 1]}
    )
    for _ in range(n_answered):
        answer(engine, rank(engine, baseline=["ant"]).event_id, [1.0])
    assert any("'cat'" in warning for warning in warnings(engine)) == is_warned
    answer(engine, rank(engine, baseline=["cat"]).event_id, [1.0])
    assert warnings(engine) == []


def test_lessons_that_were_refused_are_counted():
    engine = engine_of()
    assert warnings(engine) == []
    engine.ranker("animals").tally.refused = 7
    assert warnings(engine) == ["7 feedback events were refused: too large to learn from."]
    assert summary(engine.ranker("animals"))["counts"]["refused"] == 7
    assert set(ANIMALS) == {item["name"] for item in summary(engine.ranker("animals"))["items"]}


def test_an_apprentice_learns_of_each_item_what_was_revealed_of_it():
    """The caller's list has the same items on top, the other way round."""
    engine = engine_of(mode="apprentice", k=2, ranker="epsilon-greedy")
    live = engine.ranker("animals")
    alone = library_ranker(live.config.spec)
    own = alone.rank(round=0)
    first, second = own.items[:2]
    reply = rank(engine, baseline=[str(second), str(first)])
    assert answer(engine, reply.event_id, [1.0, 0.0]).learned == "learned"
    alone.update(own, [0.0, 1.0])
    for name, array in alone.state._asdict().items():
        assert (getattr(live.learner.state, name) == array).all(), name


@pytest.mark.parametrize(("n_times", "is_better"), [(2, False), (40, True)])
def test_an_apprentice_is_better_once_the_whole_interval_says_so(n_times, is_better):
    """The same difference both times; of few rounds it may be luck."""
    settings = {"ranking": [2, 0, 1]}
    engine = engine_of(
        mode="apprentice", items=["ant", "bee", "cat"], ranker="fixed", settings=settings
    )
    for name, grade in [("ant", 0.0), ("ant", 0.0), ("bee", 1.0), ("cat", 1.0)] * n_times:
        answer(engine, rank(engine, baseline=[name]).event_id, [grade])
    said = summary(engine.ranker("animals"))["apprentice"]
    assert said["difference"]["value"] == 0.5
    assert said["better"] == is_better == (said["difference"]["low"] > 0.0)
