"""Every number of the log as people and programs read it, from its events."""

from datetime import UTC, datetime, timedelta

import pytest

from keyhole.service.dashboard.event_page import event_pairs, event_rows
from keyhole.service.dashboard.formatting import count, duration, percent, value
from keyhole.service.dashboard.log import event_row, log_page
from keyhole.service.events import body_of
from keyhole.service.store.export import event_records, impressions
from keyhole.service.summary import event_page
from tests.service.desks import engine_of, rank
from tests.service.games import GAMES, log_of
from tests.service.played import NAME, numbers_in
from tests.service.references import page_of
from tests.service.test_numbers import alike

pytestmark = pytest.mark.interpreted

NOTHING = "\N{EN DASH}"


@pytest.fixture(scope="module", params=GAMES, ids=str)
def log(request):
    return log_of(request.param)


def instant(at):
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=at)


def test_every_row_of_the_page_of_an_event(log):
    crowd, history = log
    for event_id, one in history.shown.items():
        page = page_of(one)
        relevance = (page["feedback"] or {}).get("relevance") or []
        chances = page["chances"] or []
        rows = [
            (str(place + 1), name, place < page["k"], relevance[place : place + 1])
            for place, name in enumerate(page["ranking"])
        ]
        told = event_rows(event_page(crowd.engine.ranker(NAME), event_id))
        assert len(told) == len(rows)
        for place, (row, wanted) in enumerate(zip(told, rows, strict=True)):
            seen = NOTHING if not wanted[3] else value(wanted[3][0])
            chance = percent(chances[place]) if place < len(chances) else NOTHING
            assert (row["position"], row["name"], row["revealed"]) == wanted[:3]
            assert (row["relevance"], row["chance"]) == (seen, chance)


def test_every_pair_of_the_page_of_an_event(log):
    crowd, history = log
    for event_id, one in history.shown.items():
        page = page_of(one)
        told = {
            label: text
            for label, text, _ in event_pairs(event_page(crowd.engine.ranker(NAME), event_id))
        }
        wanted = {
            "Shown": f"{instant(page['at']):%Y-%m-%d %H:%M:%S} UTC",
            "Event": count(page["seq"]),
            "Round": count(page["round"]),
            "Learnt up to event": count(page["seq"] - 1),
            "Exploring": "yes" if page["explored"] else "no",
            "Marginal propensity": value(page["p_marginal"]),
            "Conditional propensity": value(page["p_conditional"]),
        }
        if page["feedback"] is None:
            wanted["Feedback"] = "waiting" if page["waiting"] else "expired without feedback"
        else:
            wanted["Delay"] = duration(page["feedback"]["delay_seconds"])
            wanted["Feedback event"] = count(page["feedback"]["seq"])
        assert {label: told[label] for label in wanted} == wanted


def test_every_sentence_with_a_number_of_the_page_of_an_event(log):
    crowd, history = log
    for event_id, one in history.shown.items():
        why = " ".join(event_page(crowd.engine.ranker(NAME), event_id)["why"])
        excluded, chance = one.ranked.n_excluded, one.likely["p_marginal"]
        assert (f"{excluded} item" in why) == (excluded > 0)
        if one.own is not None and one.ranked.own is None:
            assert f"as of event {one.event.seq - 1}." in why
        assert ("had a marginal propensity of" in why) == (chance is not None)
        if chance is not None:
            assert f"a marginal propensity of {chance:.3g}." in why


@pytest.mark.parametrize("after", [0, 3])
@pytest.mark.parametrize("n_events", [49, 50, 51, 52, 101])
def test_a_page_of_the_log_says_where_older_events_are(n_events, after):
    """Pages have fifty events, the newest first, and those up to ``after`` are left out."""
    engine = engine_of()
    for _ in range(after + n_events - 1):  # it is made first
        rank(engine)
    before, found = None, []
    while True:
        page, older = log_page(engine.store, "animals", None, before, after)
        found.append([event.seq for event in page])
        if older is None:
            break
        assert older == page[-1].seq
        before = older
    wanted = list(range(after + n_events, after, -1))
    assert found == [wanted[first : first + 50] for first in range(0, n_events, 50)]


def test_every_row_of_the_log(log):
    crowd, history = log
    store, live = crowd.engine.store, crowd.engine.ranker(NAME)
    found, before = [], None
    while True:
        page, older = log_page(store, NAME, None, before)
        found += page
        if older is None:
            break
        assert len(page) == 50
        before = older
    assert [event.seq for event in found] == list(range(history.seq, 0, -1))
    for event in found:
        row, body = event_row(event, live.names_of, live.outcome), body_of(event)
        assert (row["seq"], row["kind"], row["key"]) == (event.seq, event.kind, event.key)
        assert row["at"] == instant(event.at).isoformat(timespec="milliseconds")
        assert row["time"] == f"{instant(event.at):%Y-%m-%d %H:%M:%S} UTC"
        if event.kind == "rank":
            one = history.shown[event.key]
            rest = len(one.order) - 3
            more = f" and {rest} more" if rest else ""
            explored = "exploring" if one.ranked.explored else "not exploring"
            said = f"Round {one.round}, {explored}: {', '.join(one.order[:3])}{more}"
            assert row["what"] == said
        elif event.kind == "feedback" and body.status == "observed":
            seen = ", ".join(f"{grade:g}" for grade in body.relevance[:3])
            more = " …" if len(body.relevance) > 3 else ""
            assert row["what"].startswith(f"relevance {seen}{more}; ")
        elif event.kind == "expire":
            n = len(body.seqs)
            assert row["what"] == f"{n} list{'s' * (n != 1)} expired without feedback"
        elif event.kind == "config":
            n_items, k = len(body.catalogue), body.k
            assert row["what"].endswith(f", top {k}, {n_items} items")


def test_every_number_of_the_table_of_impressions(log):
    crowd, history = log
    wanted = []
    for one in history.rounds:
        page = page_of(one)
        chances = page["chances"] or []
        for place, name in enumerate(one.top):
            row = {
                "event_id": one.event.key,
                "position": place,
                "action": name,
                "pscore": chances[place] if place < len(chances) else None,
                "reward": one.by_name[name] if one.was_seen else None,
                "feedback_seq": None if one.said is None else one.said.seq,
                "feedback_at": None if one.said is None else one.said.at,
                "learned": one.learned or None,
            }
            same = ("seq", "at", "round", "model_seq", "explored", "p_marginal", "p_conditional")
            wanted.append({**row, **{field: page[field] for field in same}})
    outcome = crowd.engine.ranker(NAME).outcome
    alike(list(impressions(crowd.engine.store, NAME, outcome=outcome)), wanted)
    half = [row["seq"] for row in impressions(crowd.engine.store, NAME, after=history.seq // 2)]
    assert half == [row["seq"] for row in wanted if row["seq"] > history.seq // 2]


def test_every_number_of_the_records_of_events(log):
    crowd, history = log
    events = list(crowd.engine.store.events(NAME))
    for record, event in zip(event_records(crowd.engine.store, NAME), events, strict=True):
        body = body_of(event)
        at = instant(event.at).strftime("%Y-%m-%dT%H:%M:%S.") + f"{event.at % 1000:03d}Z"
        assert (record["seq"], record["at"], record["kind"]) == (event.seq, at, event.kind)
        if event.kind == "rank":
            page = page_of(history.shown[event.key])
            same = ("ranking", "explored", "p_marginal", "p_conditional", "chances", "round")
            record["chances"] = list(record.get("chances", ()))
            alike(record, {name: page[name] for name in same if page[name] is not None})
            assert record.get("excluded", []) == page["excluded"]
        else:
            for name in body.__struct_fields__:
                told, held = record.get(name), getattr(body, name)
                if told is None:  # a default, which a record leaves out
                    assert not any(number for _, number in numbers_in(held)), name
                    continue
                flat = sorted(number for _, number in numbers_in(held))
                assert sorted(number for _, number in numbers_in(told)) == flat, name
