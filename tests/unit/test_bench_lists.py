"""Other people's learners run in a process of their own, where no file of bench hides Python's."""

import sys

import numpy as np
import pytest

from bench import lists

pytestmark = pytest.mark.interpreted

RIVER = """
import numbers
class LinearRegression:
    def __init__(self, *_, **__): assert numbers.Number
    def predict_one(self, x): return float(x[0])
    def learn_one(self, x, y): assert isinstance(y, numbers.Number)
class SGD(LinearRegression): ...
class linear_model: LinearRegression = LinearRegression
class optim: SGD = SGD
"""
VOWPAL_WABBIT = """
class Workspace:
    def __init__(self, _): ...
    def example(self, text): return float(text.split()[2].split(":")[1])
    def predict(self, example): return example
    def learn(self, example): ...
"""


def test_peers_are_asked_for_every_turn_and_find_their_own_imports(tmp_path, monkeypatch):
    (tmp_path / "stubs").mkdir()
    (tmp_path / "stubs" / "river.py").write_text(RIVER)
    (tmp_path / "stubs" / "vowpalwabbit.py").write_text(VOWPAL_WABBIT)
    asked = tmp_path / "asked.txt"
    python = tmp_path / "peers-venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(
        "#!/bin/sh\n"
        f'echo "$@" >> {asked}\n'
        'case "$*" in *" pip "*) exit 0;; esac\n'
        f'PYTHONPATH={tmp_path / "stubs"} exec {sys.executable} "$@"\n'
    )
    python.chmod(0o755)
    monkeypatch.setattr(lists, "OUT", tmp_path)
    found = lists.Findings(quick=True)
    lists.contend_with_peers(found, turns=1, rounds=2)
    assert len(asked.read_text().splitlines()) == 2  # one installs, one answers
    told = {(row["what"], row["contender"]) for row in found.contenders}
    assert len(told) == 3 * (1 + len(lists.PEERS))
    assert all(0.0 < float(row["ns"]) < np.inf for row in found.contenders)
    assert [bar.promise for bar in found.bars].count("kl, float32, top feedback: times river") == 1
