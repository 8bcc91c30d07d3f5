"""keyhole evaluate on what rankers of our own have logged: documents, and lists of the service."""

import json

import numpy as np
import pytest

from keyhole.base.errors import InvalidInput
from keyhole.base.files import write_arrays
from keyhole.data.bandit.formats import read_bandit
from keyhole.game.log import Log
from keyhole.offline.evaluation import evaluate
from keyhole.offline.lists import evaluate_lists, revealed
from keyhole.service.store import open_store
from keyhole.service.store.export import event_records, impressions, write_ndjson, write_parquet
from tests.lab.running import run, said
from tests.service.make_first import copy_first

N_ROWS, N_ITEMS = 1500, 4


@pytest.fixture(scope="module")
def log():
    """Documents whose first feature tells their relevance; tops are drawn uniformly."""
    numbers = np.random.default_rng(0)
    features = numbers.random((N_ROWS, N_ITEMS, 2))
    relevance = (numbers.random((N_ROWS, N_ITEMS)) < features[:, :, 0]).astype(float)
    rankings = np.argsort(numbers.random((N_ROWS, N_ITEMS)), axis=1)
    values = np.full((N_ROWS, N_ITEMS), np.nan)
    values[:, 0] = relevance[np.arange(N_ROWS), rankings[:, 0]]
    return Log(
        0, 0, np.arange(N_ROWS), np.ones(N_ROWS, bool), np.full(N_ROWS, 1 / N_ITEMS),
        np.arange(N_ROWS + 1) * N_ITEMS, rankings.ravel(), values.ravel(),
        features.reshape(-1, 2), np.empty((N_ROWS, 0)),
    )  # fmt: skip


@pytest.fixture(scope="module")
def folder(log, tmp_path_factory):
    folder = tmp_path_factory.mktemp("ranked")
    log.save(folder / "log.npz")
    for name, weights in (("good", [1.0, 0.0]), ("blind", [0.0, 1.0])):
        write_arrays(folder / f"{name}.npz", {"weights": weights, "minmax": False})
    return folder


def test_a_model_that_knows_is_promoted_and_one_that_does_not_is_not(log, folder):
    assert revealed(log) == 1
    record = json.loads(
        run("evaluate", folder / "log.npz", "--policy", folder / "good.npz", "--json").stdout
    )
    features = log.features.reshape(N_ROWS, N_ITEMS, 2)
    best = features[:, :, 0].max(axis=1).mean()  # its documents are relevant with this chance
    estimate = record["policy"]["estimates"]["importance-weighted"]
    assert abs(estimate["value"] - best) < 4 * estimate["standard_error"]
    low, high = estimate["intervals"]["betting"]
    assert low < best < high <= 1.0
    shown = record["baseline"]["estimates"]["importance-weighted"]["value"]
    assert shown == pytest.approx(np.nanmean(log.values))
    assert record["verdict"] == "promote"
    text = said(run("evaluate", folder / "log.npz", "--policy", folder / "blind.npz", code=1))
    assert "Rewards are DCG of the first 1 documents." in text
    assert "keep: the betting bound on the difference is -" in text


def test_both_are_compared_row_by_row(log):
    good = np.argsort(-log.features.reshape(N_ROWS, N_ITEMS, 2)[:, :, 0], axis=1)
    same = evaluate_lists(log, list(good), list(good))
    assert same.difference["importance-weighted"].estimate.error == 0.0
    low, high = same.interval
    assert low is not None
    assert high is not None
    assert low < 0.0 < high
    assert evaluate_lists(log, "logged", list(good)).verdict == "keep"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--policy", "uniform"], "--policy must be logged or a model saved by keyhole learn"),
        (["--policy", "good.npz", "--clip", 2], "--clip is for the log of choices"),
        (["--policy", "good.npz", "--measure", "AP"], "must be DCG or Precision at a cutoff"),
        (["--policy", "good.npz", "--top", 2], "must reveal the first 2 items"),
        (["--policy", "good.npz", "--rewards", 0, 0.5], "must be at least 1, as the log has it"),
        (["--policy", "log.npz"], "must be a model saved by keyhole learn"),
    ],
)
def test_what_cannot_be_judged_is_told_in_a_sentence(folder, monkeypatch, arguments, sentence):
    monkeypatch.chdir(folder)
    assert sentence in said(run("evaluate", "log.npz", *arguments, code=2))


def test_logs_of_other_kinds(log, folder, tmp_path):
    fixed = log._replace(features=np.empty((len(log.values), 0)))
    fixed.save(tmp_path / "fixed.npz")
    text = said(run("evaluate", tmp_path / "fixed.npz", "--policy", "logged", code=2))
    assert "the log of a fixed list does not say alone how likely its tops were" in text
    (tmp_path / "choices.csv").write_text("action,propensity,reward\n0,0.5,1\n1,0.5,0\n")
    text = said(
        run("evaluate", tmp_path / "choices.csv", "--policy", "uniform", "--top", 1, code=2)
    )
    assert "--top is for the log of a ranker (.npz)" in text


# --------------------------------------------------------------------------- the service


def events(n_lists=4000, *, known=(False, True), seed=0):
    """Lists of three items of which two are seen; the third item is the best."""
    numbers = np.random.default_rng(seed)
    pairs, chances = [(0, 1), (0, 2), (1, 2)], [0.5, 0.3, 0.2]
    seen = [0.8, 0.7, 0.5]
    for number in range(n_lists):
        pair = pairs[numbers.choice(3, p=chances)]
        order = [*numbers.permutation(pair).tolist(), 3 - sum(pair)]
        explored = bool(numbers.random() < 0.5)
        rank = {"kind": "rank", "event_id": f"e{number}", "at": "2026-01-01", "k": 2}
        rank |= {"explored": explored, "ranking": [f"item {i}" for i in order]}
        if explored in known:
            rank["chances"] = [seen[i] for i in order[:2]]
        yield rank
        if number % 10:
            relevance = (numbers.random(2) < np.array([0.1, 0.2, 0.6])[order[:2]]).tolist()
            status = "not_shown" if number % 10 == 1 else "answered"
            yield {
                "kind": "feedback", "event_id": f"e{number}", "status": status,
                "relevance": [float(value) for value in relevance],
            }  # fmt: skip


def written(path, records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def test_one_item_of_each_answered_list_with_its_propensity(tmp_path):
    path = written(tmp_path / "shop.ndjson", events())
    log = read_bandit(path)
    assert len(log) == 3200  # one in ten has no answer, one was not shown
    assert log.action_names == ("item 0", "item 1", "item 2")
    assert sorted(set(log.propensities.tolist())) == [0.25, 0.35, 0.4]
    taken = np.bincount(log.actions) / len(log)
    error = np.sqrt(0.25 / len(log))
    assert (np.abs(taken - [0.4, 0.35, 0.25]) < 4 * error).all()
    result = evaluate(log, "best-fixed")
    assert result.verdict == "promote"
    assert "best-fixed is action item 2" in result.notes[0]
    low, high = result.as_dict()["policy"]["estimates"]["importance-weighted"]["intervals"][
        "betting"
    ]
    assert low < 0.6 < high
    assert not result.warnings  # the mean weight is 1
    assert "promote" in run("evaluate", path, "--policy", "best-fixed").stdout


def test_chances_of_explored_lists_alone_are_refused(tmp_path):
    path = written(tmp_path / "a.ndjson", events(200, known=(True,)))
    with pytest.raises(InvalidInput, match="that knows it where it explores"):
        read_bandit(path)
    records = list(events(200, known=(True,)))
    explored = [one for one in records if "chances" in one]
    for one in explored[::3]:  # a list too short to be explored in cells of k has none either
        del one["chances"]
    assert explored[0]["explored"]
    with pytest.raises(InvalidInput, match="that knows it where it explores"):
        read_bandit(written(tmp_path / "a.ndjson", records))
    path = written(tmp_path / "b.ndjson", events(200, known=()))
    with pytest.raises(InvalidInput, match="got 200 lists, 160 of them answered"):
        read_bandit(path)
    path.write_text('{"kind": "rank"}\n')
    with pytest.raises(InvalidInput, match="line 1: an event must be JSON with the fields"):
        read_bandit(path)
    path.write_text("[1]\n")
    with pytest.raises(InvalidInput, match="line 1: an event must be JSON"):
        read_bandit(path)


def test_both_exports_of_the_service_are_the_same_log(tmp_path):
    copy_first(tmp_path / "first.db")
    with open_store(tmp_path / "first.db", read_only=True) as store:
        for ranker in ("shop", "news"):
            with (tmp_path / f"{ranker}.parquet").open("wb") as file:
                write_parquet(impressions(store, ranker), file)
            with (tmp_path / f"{ranker}.ndjson").open("wb") as file:
                write_ndjson(event_records(store, ranker), file)
    table, lines = (read_bandit(tmp_path / f"shop.{ending}") for ending in ("parquet", "ndjson"))
    for name in ("actions", "rewards", "propensities", "positions", "times"):
        assert np.array_equal(getattr(table, name), getattr(lines, name)), name
    assert table.action_names == lines.action_names
    for ending in ("parquet", "ndjson"):
        with pytest.raises(InvalidInput, match="got lists of documents with features"):
            read_bandit(tmp_path / f"news.{ending}")
