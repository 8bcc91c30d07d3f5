"""The bundle method: what its model forgets, and how far it reaches."""

import numpy as np
import pytest

from keyhole.batch import bundle as code
from keyhole.batch.balls import Ball
from keyhole.batch.bundle import _Model, bundle


def test_a_full_model_keeps_the_tangents_it_leant_on(monkeypatch):
    monkeypatch.setattr(code, "_MOST_CUTS", 4)
    model = _Model(Ball("l2", 1.0), 0.0)
    for slope in range(4):
        model.add(np.array([1.0]), 2.0, np.array([float(slope)]))
    assert model.offsets == [2.0, 1.0, 0.0, -1.0]
    model.shares = np.array([0.1, 0.4, 0.0, 0.5])
    model.add(np.array([1.0]), 2.0, np.array([9.0]))
    assert [slope[0] for slope in model.slopes] == [1.0, 3.0, 9.0]
    assert model.offsets == [1.0, -1.0, -7.0]
    assert model.shares == pytest.approx([0.4 / 0.9, 0.5 / 0.9, 0.0])


def evaluations(loss, centre, most=500):
    found = bundle(loss, np.array(centre), Ball("l2", 100.0), 0.0, lambda _: 1e-6, most)
    assert found.converged
    return found


def test_kinks_far_and_near_are_found():
    """The largest of two norms, whose kinks meet where it is least."""

    def kinked(weights):
        parts = np.array([3.0, 1.0]) * (weights - np.array([2.0, -1.0]))
        return float(np.abs(parts).sum()), np.array([3.0, 1.0]) * np.sign(parts)

    for centre in ([50.0, 50.0], [2.0, -1.0], [-3.0, 0.01]):
        found = evaluations(kinked, centre)
        assert found.value == pytest.approx(0.0, abs=1e-5)
        assert found.weights == pytest.approx([2.0, -1.0], abs=1e-5)
