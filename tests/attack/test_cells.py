"""Damaged cells of studies and atlases: set aside with one line of warning, and worked out anew."""

import json
from dataclasses import asdict, replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from keyhole.lab import atlas as maps
from keyhole.lab.result_store import ResultStore
from keyhole.lab.results import Curve
from keyhole.lab.run import reproduce
from keyhole.lab.study import find_study


def changed(content, change):
    kept = json.loads(content)
    change(kept)
    return json.dumps(kept).encode()


DAMAGES = {
    "empty": lambda _: b"",
    "cut": lambda content: content[:-3],
    "zeros": lambda content: bytes(len(content)),
    "[]": lambda _: b"[]",
    "{}": lambda _: b"{}",
    "null": lambda _: b"null",
    "a number": lambda _: b"3",
    "nested": lambda _: b"[" * 100_000,
    "a huge number": lambda _: b'{"result": ' + b"9" * 10_000 + b"}",
    "no result": lambda content: changed(content, lambda kept: kept.pop("result")),
    "no digest": lambda content: changed(content, lambda kept: kept.pop("digest")),
    "an empty result": lambda content: changed(content, lambda kept: kept.update(result=[])),
    "one digit": lambda content: content[::-1].replace(b"1", b"2", 1)[::-1],
}


@pytest.fixture(scope="module")
def study():
    found = find_study("top1-fig1", quick=True)
    specs: list[Any] = [c.spec for c in found.curves]
    curves = tuple(
        replace(c, spec=replace(spec, rounds=50, runs=2))
        for c, spec in zip(found.curves, specs, strict=True)
    )
    return replace(found, curves=curves, claims=())


@pytest.fixture
def quick_figures(monkeypatch):
    monkeypatch.setattr(
        "matplotlib.figure.Figure.savefig", lambda _, buffer, **__: buffer.write(b"a figure")
    )


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_cell_of_a_study_is_played_again(damage, study, quick_figures, tmp_path):
    fresh = reproduce(study, tmp_path)
    table = (tmp_path / "curves.csv").read_bytes()
    (cell,) = (tmp_path / "cells").iterdir()
    good = cell.read_bytes()
    bad = DAMAGES[damage](good)
    assert bad != good
    cell.write_bytes(bad)
    with pytest.warns(RuntimeWarning, match=rf"{cell.name} was damaged: it is kept as ") as caught:
        again = reproduce(study, tmp_path)
    assert len(caught) == 1
    assert (fresh.n_resumed, again.n_resumed) == (0, 0)
    assert (tmp_path / "curves.csv").read_bytes() == table
    assert cell.read_bytes() == good
    assert cell.with_name(f"{cell.name}.damaged").read_bytes() == bad
    assert reproduce(study, tmp_path).n_resumed == 1


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_cell_of_an_atlas_drops_no_game(damage, tmp_path):
    columns = maps.columns_of(["NDCG", "DCG"], [3], [2])
    whole = maps.make_atlas(columns, tmp_path, workers=1)
    cell = sorted(tmp_path.iterdir())[0]
    cell.write_bytes(DAMAGES[damage](cell.read_bytes()))
    with pytest.warns(RuntimeWarning, match="was damaged"):
        again = maps.make_atlas(columns, tmp_path, workers=1)
    assert again.entries == whole.entries
    assert again.n_resumed == 3


@pytest.mark.parametrize(
    "change",
    [
        lambda _: [],
        lambda entries: entries[:-1],
        lambda entries: [*entries, entries[0]],
        lambda entries: entries[::-1],
        lambda entries: [{**entry, "grades": 3} for entry in entries],
        lambda entries: [{**entry, "class_": "nonsense"} for entry in entries],
        lambda entries: [{**entry, "by_rule": None} for entry in entries],
        lambda entries: [{**entry, "more": 1} for entry in entries],
    ],
)
def test_entries_that_are_not_those_of_a_column_are_not_believed(change, tmp_path):
    """Even where their digest is right."""
    (column,) = maps.columns_of(["NDCG"], [3], [2])
    entries = maps.fill_column(column)
    ResultStore(tmp_path).save(asdict(column), change([asdict(entry) for entry in entries]))
    with pytest.warns(RuntimeWarning, match="was damaged"):
        found = maps.make_atlas([column], tmp_path, workers=1)
    assert list(found.entries) == entries
    assert found.n_resumed == 0


def test_a_cell_of_another_key_is_not_believed(tmp_path):
    store = ResultStore(tmp_path)
    for key in ("a", "b"):
        store.save(key, Curve(key, np.array([1]), np.array([[float(ord(key))]])).as_dict())
    store._path("b").replace(store._path("a"))
    with pytest.warns(RuntimeWarning, match="was damaged"):
        assert store.load("a", partial(Curve.of_dict, "a")) is None


def test_a_folder_in_the_place_of_a_cell(tmp_path):
    store = ResultStore(tmp_path)
    store._path("a").mkdir()
    with pytest.warns(RuntimeWarning, match="was damaged"):
        assert store.load("a", dict) is None
    store.save("a", {})
    assert store.load("a", dict) == {}
