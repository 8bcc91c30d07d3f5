"""What became of feedback, wherever it is told: for good, or that it is not known any more."""

from keyhole.service import counters as tally_module
from keyhole.service.commands import Rename, Reset
from keyhole.service.dashboard.event_page import LEARNED
from keyhole.service.dashboard.log import event_row
from keyhole.service.engine import Engine
from keyhole.service.events import body_of
from keyhole.service.ranker_state import LiveRanker
from keyhole.service.recovery import outcome_in
from keyhole.service.replay import check_ranker
from keyhole.service.store.export import event_records, impressions
from keyhole.service.summary import event_page
from tests.service.desks import answer, configure, engine_of
from tests.service.test_engine import documents


def everywhere(engine, event_id, name="queries"):
    """Return what became of feedback, which everybody who tells of it must tell alike."""
    live = engine.ranker(name)
    said = engine.store.find(name, event_id, "feedback")
    records = event_records(engine.store, name, after=said.seq - 1, limit=1, outcome=live.outcome)
    rows = impressions(engine.store, name, outcome=live.outcome)
    page, became = event_page(live, event_id), live.outcome(body_of(said), said.seq)
    assert page["outcome"] == page["feedback"]["learned"] == became
    assert [record["learned"] for record in records] == [became]
    assert {row["learned"] for row in rows if row["event_id"] == event_id} == {became}
    assert LEARNED[became] in event_row(said, live.names_of, live.outcome)["what"]
    assert outcome_in(engine.store, name)(body_of(said), said.seq) == became
    return became


def told_of_queries(engine, large=1.0):
    shown = documents(engine, ["a", "b"], [[large, 1.0], [1.0, -large]])
    assert answer(engine, shown.event_id, [1.0], name="queries").learned == (
        "learned" if large == 1.0 else "refused"
    )
    return shown.event_id


def test_feedback_that_is_refused_says_so_for_good():
    """Also after a reset, where the counts begin anew."""
    engine = engine_of()
    configure(engine, "queries", n_features=2, ranker="contextual-rtopk")
    told_of_queries(engine)
    huge = told_of_queries(engine, 1e300)
    for each in (engine, Engine(engine.store)):
        assert everywhere(each, huge) == "refused"
        assert answer(each, huge, [1.0], name="queries").learned == "refused"
    engine.execute(Reset("queries"))
    later = told_of_queries(engine)
    kept = engine.ranker("queries").snapshot()
    for each in (engine, Engine(engine.store)):
        assert each.ranker("queries").tally.refused == 0
        assert (everywhere(each, huge), everywhere(each, later)) == ("refused", "learned")
    again = LiveRanker.from_snapshot(kept, engine.store)
    assert again.tally.refusals == engine.ranker("queries").tally.refusals


def test_what_is_not_known_any_more_is_not_told_otherwise(monkeypatch):
    """Of many refusals only the last are known by event: what was before one may be either."""
    monkeypatch.setattr(tally_module, "_MOST_REFUSALS", 2)
    engine = engine_of()
    configure(engine, "queries", n_features=2, ranker="contextual-rtopk")
    kinds = (1.0, 1e300, 1.0, 1e300, 1.0, 1e300, 1.0)
    told = [told_of_queries(engine, large) for large in kinds]
    wanted = ["unknown"] * 2 + ["learned", "refused", "learned", "refused", "learned"]
    engine.store.put_snapshot(engine.ranker("queries").snapshot())
    for each in (engine, Engine(engine.store)):
        assert [everywhere(each, event_id) for event_id in told] == wanted
        assert each.ranker("queries").tally.refused == 3
    assert check_ranker(engine.store, "queries").problems == ()
    page = event_page(engine.ranker("queries"), told[0])
    assert "no longer tells which" in page["why"][-1]
    # A ranker that goes on from its state has a log of its own, with other events.
    engine.execute(Rename("queries", "renamed"))
    assert engine.ranker("renamed").tally.refusals == []
    # Of one that was deleted nothing is known, whoever goes on with its log.
    configure(engine, "queries", n_features=2, ranker="contextual-rtopk")
    told_of_queries(engine)
    for each in (engine, Engine(engine.store)):
        live = each.ranker("queries")
        said = [e for e in each.store.events("queries") if e.kind == "feedback"]
        became = [live.outcome(body_of(one), one.seq) for one in said]
        assert became == ["unknown"] * 7 + ["learned"]
    assert check_ranker(engine.store, "queries").problems == ()
    assert check_ranker(engine.store, "renamed").problems == ()
