"""A trace comes back from its file as it was, and nothing else comes back as a trace."""

import builtins
import csv
import json
from dataclasses import fields

import numpy as np
import pytest

from keyhole import Flips, Log, RTopK, Trace, play
from keyhole.base.errors import CannotWrite, InvalidInput, LibraryMissing
from keyhole.base.files import write_arrays

COLUMNS = [
    "run",
    "round",
    "score",
    "best",
    "greedy",
    "regret",
    "ranker",
    "world",
    "measure",
    "sees",
]


def game(rounds, **settings):
    ranker, world = RTopK(5, horizon=1000), Flips(5, n_relevant=2)
    return play(ranker, world, rounds=rounds, n_threads=1, **{"runs": 2, **settings})


def arrays_of(path):
    with np.load(path) as file:
        return {name: file[name] for name in file.files}


def assert_same(found, expected):
    """Compare two values field by field, to the bit."""
    if isinstance(expected, np.ndarray):
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)
    elif isinstance(expected, dict):
        assert set(found) == set(expected)
        for name in expected:
            assert_same(found[name], expected[name])
    elif isinstance(expected, tuple):
        assert len(found) == len(expected)
        for own, theirs in zip(found, expected, strict=True):
            assert_same(own, theirs)
    else:
        assert found == expected


@pytest.fixture(scope="module")
def trace():
    return game(300, record=True)


@pytest.fixture
def saved(trace, tmp_path):
    trace.save(tmp_path / "trace.npz")
    return tmp_path / "trace.npz"


def test_a_trace_comes_back_as_it_was(trace, saved):
    again = Trace.load(saved)
    for field in fields(Trace):
        if field.name != "ends":
            assert_same(getattr(again, field.name), getattr(trace, field.name))
    assert repr(again) == repr(trace)
    for own, theirs in zip(again.ends, trace.ends, strict=True):
        for name in ("state", "totals", "scores", "greedy", "best", "snapshots", "offsets"):
            assert_same(getattr(own, name), getattr(theirs, name))
        assert_same(own.sums.sums, theirs.sums.sums)
        assert_same(own.sums.offset, theirs.sums.offset)
    before = arrays_of(saved)
    again.save(saved)
    assert_same(arrays_of(saved), before)
    assert Trace.load(saved).learnt(1).best() == trace.learnt(1).best()


def test_what_no_ranking_can_change_comes_back(saved):
    write_arrays(saved, {**arrays_of(saved), "end/offset": np.array([[3.0], [4.0]])})
    assert [end.sums.offset.tolist() for end in Trace.load(saved).ends] == [[3.0], [4.0]]


@pytest.mark.parametrize("comparator", ["prefix", "final"])
def test_a_game_goes_on_from_a_file(tmp_path, comparator):
    first = game(300, comparator=comparator, record=True)
    first.save(tmp_path / "first.npz")
    later = game(200, comparator=comparator, record=True, start=Trace.load(tmp_path / "first.npz"))
    expected = game(200, comparator=comparator, record=True, start=first)
    for name in ("rounds", "scores", "best", "greedy", "states", "logs"):
        assert_same(getattr(later, name), getattr(expected, name))


def test_a_game_does_not_go_on_from_another(trace):
    with pytest.raises(InvalidInput, match="same world and measure, whose comparator keeps"):
        game(200, measure="AP", start=trace)


def test_a_trace_without_runs_to_go_on_from_comes_back(tmp_path):
    curves = np.array([[1.0, 2.0]]), np.array([[1.5, np.nan]])
    bare = Trace(np.array([1, 9]), *curves, True, "final", "local", (), (), 1.5)
    bare.save(tmp_path / "bare.npz")
    again = Trace.load(tmp_path / "bare.npz")
    assert (again.states, again.logs, again.ends) == ((), (), ())
    assert (again.is_loss, again.comparator, again.exact, again.seconds) == (
        True, "final", "local", 1.5
    )  # fmt: skip
    assert_same((again.rounds, again.scores, again.best), (bare.rounds, *curves))


# --------------------------------------------------------------------------- wrong files


def spoilt_settings(**changes):
    def spoil(arrays):
        settings = json.loads(str(arrays["settings"])) | changes
        return {**arrays, "settings": np.array(json.dumps(settings))}

    return spoil


def spoilt(name, change):
    return lambda arrays: {**arrays, name: change(arrays[name])}


WRONG = {
    "no scores": (lambda a: {n: v for n, v in a.items() if n != "scores"}, "'scores' is missing"),
    "falling rounds": (spoilt("rounds", lambda a: a[::-1]), "`rounds` must be whole numbers"),
    "rounds of 0": (spoilt("rounds", lambda a: a - 1), "`rounds` must be whole numbers"),
    "fractions": (spoilt("rounds", lambda a: a + 0.5), "`rounds` must be whole numbers"),
    "a point too few": (spoilt("best", lambda a: a[:, 1:]), "`best` must be 2 by 142 floats"),
    "a run too many": (spoilt("scores", lambda a: a[[0, 1, 1]]), "`best` must be 3 by 142 floats"),
    "flat": (spoilt("scores", lambda a: a[0]), "`scores` must be 142 by 142 floats"),
    "one number": (spoilt("scores", lambda a: a[0, 0]), "`scores` must be 1 by 142 floats"),
    "whole scores": (spoilt("scores", lambda a: a.astype(int)), "`scores` must be 2 by 142 floats"),
    "unknown scores": (spoilt("scores", lambda a: a * np.nan), "`scores` must be finite"),
    "infinite": (spoilt("best", lambda a: a + np.inf), "`best` must not be infinite"),
    "a state too few": (spoilt("state/scores", lambda a: a[:1]), "`state/scores` must be of 2"),
    "a log too few": (
        lambda a: {n: v for n, v in a.items() if not n.startswith("log/1/")},
        "logs of all 2 runs or of none, got 1",
    ),
    "half a log": (lambda a: {n: v for n, v in a.items() if n != "log/1/seed"}, "log/1/seed"),
    "a wrong log": (spoilt("log/0/rankings", lambda a: a + 1), "ranking 0 of a log must hold each"),
    "short totals": (spoilt("end/totals", lambda a: a[:, :1]), "`end/totals` must be 2 by 2"),
    "long sums": (
        spoilt("end/sums", lambda a: np.tile(a, 2)), "`end/snapshots` must be 2 by 0 by 10 floats"
    ),
    "two offsets": (spoilt("end/offset", lambda a: np.tile(a, 2)), "`end/offset` must be 2 by 1"),
    "another comparator": (spoilt_settings(comparator="best"), "`comparator` must be one of"),
    "another search": (spoilt_settings(exact="perhaps"), "`exact` must be one of"),
    "no truth": (spoilt_settings(is_loss="no"), "`is_loss` must be true or false"),
    "no time": (spoilt_settings(seconds=-1), "`seconds` must be a number of at least 0"),
    "no text": (spoilt_settings(ranker=["a"]), "ranker, world, measure, sees must be text"),
    "no settings": (spoilt("settings", lambda _: np.array("[]")), "must be integers or slices"),
    "no JSON": (spoilt("settings", lambda _: np.array("{")), "Expecting property name"),
}  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG)
def test_arrays_that_are_no_trace_are_refused(saved, wrong):
    spoil, why = WRONG[wrong]
    write_arrays(saved, spoil(arrays_of(saved)))
    with pytest.raises(InvalidInput) as refused:
        Trace.load(saved)
    assert "must be a trace saved by Trace.save" in str(refused.value)
    assert why in str(refused.value)
    assert "\n" not in str(refused.value)


def test_foreign_files_are_refused(trace, tmp_path):
    path = tmp_path / "file"
    trace.logs[0].save(path)
    with pytest.raises(InvalidInput, match="'settings' is missing"):
        Trace.load(path)
    trace.learnt().save(path)
    with pytest.raises(InvalidInput, match="'settings' is missing"):
        Trace.load(path)
    trace.save(path)
    whole = path.read_bytes()
    for content in (b"", b"round,score\n", whole[: len(whole) // 2], whole[:-1]):
        path.write_bytes(content)
        with pytest.raises(InvalidInput, match=r"must be a trace saved by Trace\.save: "):
            Trace.load(path)
    with pytest.raises(InvalidInput, match=r"must be a trace saved by Trace\.save: "):
        Trace.load(tmp_path / "nowhere")
    with pytest.raises(CannotWrite, match="cannot be written"):
        trace.save(tmp_path)
    with pytest.raises(CannotWrite, match="cannot be written"):
        trace.to_csv(tmp_path)


# --------------------------------------------------------------------------- tables


def test_a_csv_holds_every_number_exactly(trace, tmp_path):
    trace.to_csv(tmp_path / "curves.csv")
    with (tmp_path / "curves.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == COLUMNS
    assert len(rows) == 2 * len(trace.rounds)
    for name, expected in {
        "score": trace.scores,
        "best": trace.best,
        "regret": trace.regret,
    }.items():
        found = np.array([float(row[name]) for row in rows])
        assert_same(found.reshape(2, -1), expected)
    assert [int(row["round"]) for row in rows] == [*trace.rounds, *trace.rounds]
    assert [row["run"] for row in rows] == ["0"] * len(trace.rounds) + ["1"] * len(trace.rounds)
    assert {row["greedy"] for row in rows} == {""}  # nobody asked
    assert {row["ranker"] for row in rows} == {"RTopK(n_items=5, horizon=1000)"}
    assert {(row["world"], row["measure"], row["sees"]) for row in rows} == {
        ("Flips(n_items=5, n_relevant=2)", "DCG", "top(1)")
    }
    assert [path.name for path in tmp_path.iterdir()] == ["curves.csv"]


def test_a_frame_is_the_same_table(trace, tmp_path):
    import pandas

    trace.to_csv(tmp_path / "curves.csv")
    frame = trace.to_frame()
    assert list(frame.columns) == COLUMNS
    pandas.testing.assert_frame_equal(frame, pandas.read_csv(tmp_path / "curves.csv"))
    last = frame[frame["round"] == 300]
    assert (last["regret"] / 300).mean() == trace.average_regret.mean


def test_frames_without_pandas_say_what_is_missing(trace, monkeypatch):
    there = builtins.__import__

    def without(name, *rest):
        if name == "pandas":
            raise ImportError(name)
        return there(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(LibraryMissing, match=r"Frames need pandas: .*\[frames\]"):
        trace.to_frame()


# --------------------------------------------------------------------------- what was learnt, shown


def test_what_a_run_has_learnt_ranks(trace):
    for run in (0, 1):
        learnt = trace.learnt(run)
        assert_same(learnt.state_dict()["scores"], trace.states[run]["scores"])
        assert (learnt.run, learnt.next_round) == (run, 300)
    with pytest.raises(InvalidInput, match="`run` must be an integer between 0 and 1, got 2"):
        trace.learnt(2)
    bare = Trace(
        np.array([1]), np.ones((1, 1)), np.ones((1, 1)), False, "prefix", "none", (), (), 0.0
    )
    with pytest.raises(InvalidInput, match="no state"):
        bare.learnt()


def test_a_state_that_names_foreign_code_imports_nothing(saved):
    arrays = arrays_of(saved)
    spec = json.dumps({"name": "antigravity:Ranker", "n_items": 5})
    write_arrays(saved, {**arrays, "state/spec": np.array([spec, spec])})
    with pytest.raises(InvalidInput, match="code of somebody's own"):
        Trace.load(saved).learnt()


def test_a_trace_shows_what_was_played(trace):
    lines = repr(trace).split("\n")
    assert lines[0] == "Trace"
    told = {line[2:18].strip(): line[18:] for line in lines[1:]}
    assert told == {
        "ranker": "RTopK(n_items=5, horizon=1000)",
        "world": "Flips(n_items=5, n_relevant=2)",
        "measure": "DCG",
        "sees": "top(1)",
        "rounds": "300",
        "runs": "2",
        "average score": f"{trace.average_score.mean:.4g} ± {trace.average_score.error:.2g}",
        "average regret": f"{trace.average_regret.mean:.4g} ± {trace.average_regret.error:.2g}",
    }
    assert all(f">{text}<" in trace._repr_html_() for text in told.values())


def test_what_is_not_known_of_a_trace_is_not_shown():
    curves = np.array([[1.0, 2.0]]), np.array([[1.5, np.nan]])
    bare = Trace(np.array([1, 8]), *curves, False, "prefix", "none", (), (), 0.0)
    assert repr(bare) == "Trace: rounds 8; runs 1; average score 0.25"
    loss = Trace(
        np.array([1, 1000]), curves[0], curves[0] - 1, True, "prefix", "local", (), (), 0.0,
        np.array([[1.0, 4.0]]), measure="AP",
    )  # fmt: skip
    assert repr(loss).split("\n")[1:] == [
        "  measure            AP (a loss)",
        "  rounds             1,000",
        "  runs               1",
        "  average score      0.002",
        "  without exploring  0.004",
        "  average regret     0.001",
        "                     at least: a better fixed ranking may exist",
    ]


def test_logs_of_a_trace_are_logs(saved, trace):
    for own, theirs in zip(Trace.load(saved).logs, trace.logs, strict=True):
        assert isinstance(own, Log)
        assert_same(tuple(own), tuple(theirs))
