"""What other programs are given of a log."""

import io
import json

import polars as pl
import pytest

from keyhole.service.errors import StoreDamaged
from keyhole.service.events import body_of
from keyhole.service.recovery import outcome_in
from keyhole.service.store import open_store
from keyhole.service.store.export import (
    event_record,
    event_records,
    impressions,
    names_in,
    write_ndjson,
    write_parquet,
)
from tests.service.make_first import copy_first


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    # A copy: reading a log in WAL mode leaves files beside it.
    path = tmp_path_factory.mktemp("export") / "first.db"
    copy_first(path)
    with open_store(path, read_only=True) as opened:
        yield opened


def table(store, ranker, **page):
    target = io.BytesIO()
    n_rows = write_parquet(
        impressions(store, ranker, outcome=outcome_in(store, ranker), **page), target
    )
    frame = pl.read_parquet(io.BytesIO(target.getvalue()))
    assert frame.height == n_rows
    return frame


def test_every_event_is_a_line_of_json(store):
    for ranker in store.rankers():
        target = io.BytesIO()
        n_lines = write_ndjson(event_records(store, ranker), target)
        records = [json.loads(line) for line in target.getvalue().splitlines()]
        events = list(store.events(ranker))
        assert len(records) == n_lines == len(events)
        for record, event in zip(records, events, strict=True):
            assert (record["seq"], record["kind"]) == (event.seq, event.kind)
            assert record.get("event_id") == event.key
            assert record.get("idempotency_key") == event.idem
            assert record["link"] == event.link.hex()
            assert record["at"].startswith("1970-01-01T00:00:0")
            assert None not in record.values()


def test_lists_are_told_by_the_names_of_their_time(store):
    records = [record for record in event_records(store, "shop") if record["kind"] == "rank"]
    assert set(records[0]["ranking"]) == {"coffee", "tea", "milk", "<b>cocoa</b>"}
    assert set(records[-1]["ranking"]) == {"tea", "milk", "<b>cocoa</b>", "water"}
    excluding = [record for record in records if "excluded" in record]
    assert [record["excluded"] for record in excluding] == [["milk"]] * len(excluding)
    assert all("milk" not in record["ranking"] for record in excluding)
    assert excluding
    without_names = event_record(store.event("shop", records[0]["seq"]))
    assert sorted(without_names["ranking"]) == [0, 1, 2, 3]


def test_features_go_out_as_they_came_in(store):
    record = next(each for each in event_records(store, "news") if each["kind"] == "rank")
    assert record["features"]["shape"] == [3, 2]
    assert record["features"].keys() == {"shape", "dtype", "b64"}
    assert {"n_features", "dtype", "n_excluded"}.isdisjoint(record)


def test_impressions_have_a_row_for_each_item_that_was_asked_about(store):
    frame = table(store, "shop")
    ranks = [event for event in store.events("shop") if event.kind == "rank"]
    assert frame.height == 2 * len(ranks)
    assert frame["position"].to_list() == [0, 1] * len(ranks)
    for row in frame.to_dicts():
        said = store.find("shop", row["event_id"], "feedback")
        ranked, position = body_of(store.event("shop", row["seq"])), row["position"]
        assert row["action"] == names_in(store, "shop")(ranked)[ranked.ranking[position]]
        if ranked.chances is None:  # some items were not to be shown
            assert row["pscore"] is None
        else:
            assert 0 < row["pscore"] == ranked.chances[position] <= 1
        if said is None:
            assert row["status"] is None is row["reward"]
        elif body_of(said).status == "not_shown":
            assert (row["status"], row["reward"]) == ("not_shown", None)
        else:
            assert row["reward"] == body_of(said).relevance[position]
            assert row["feedback_seq"] == said.seq
    assert set(frame["status"].unique()) == {None, "observed", "none", "not_shown"}
    assert set(frame["learned"].unique()) == {None, "learned", "late", "unused"}


def test_contexts_are_those_of_the_items_shown(store):
    known = {"x": [0.5, 1.0], "y": [1.0, 0.25], "z0": [0.0, 0.0], "z3": [0.0, 3.0]}
    rows = table(store, "news").to_dicts()
    assert rows
    for row in rows:
        if row["action"] in known:
            assert row["context"] == known[row["action"]]


def test_pages_of_impressions_are_pages_of_events(store):
    last = store.last("shop").seq
    whole = table(store, "shop")
    parts = [table(store, "shop", after=after, limit=10) for after in range(0, last, 10)]
    assert pl.concat(parts).equals(whole)
    assert table(store, "shop", after=last).columns == whole.columns


def test_a_log_that_names_no_items_says_so(store):
    ranked = body_of(store.event("shop", 2))
    with open_store("memory:") as empty, pytest.raises(StoreDamaged, match="must name the items"):
        names_in(empty, "shop")(ranked)
