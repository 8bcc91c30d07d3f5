"""Sums by vectors have the bits of their definitions, and errors within the bound of these."""

import math

import numpy as np
import pytest

from keyhole.kernels.vectors import BLOCK, chain, column_sums, linear_scores, row_sums

ROWS = (1, 3, 4, 5, BLOCK, BLOCK + 1, 100)
COLUMNS = (1, 2, 7, 8, 15, 16, 17, 46, 63, 64, 127, 128, 136, 255, 300)
ROUNDOFF = {np.float32: 2.0**-24, np.float64: 2.0**-53}


def _arrays(kind, n_rows, n_columns):
    numbers = np.random.default_rng([n_rows, n_columns])
    matrix = numbers.normal(size=(n_rows, n_columns)).astype(kind)
    slopes = numbers.normal(size=n_rows) * (numbers.random(n_rows) < 0.6)
    return matrix, numbers.normal(size=n_columns), slopes, np.empty(n_columns, np.float32)


def _exact(left, right):
    return np.array([math.fsum(a * b for a, b in zip(left, row, strict=True)) for row in right])


@pytest.mark.parametrize("kind", ROUNDOFF)
@pytest.mark.parametrize("n_rows", ROWS)
def test_sums_have_the_bits_of_their_definition_and_small_errors(kind, n_rows):
    for n_columns in COLUMNS:
        matrix, weights, slopes, room = _arrays(kind, n_rows, n_columns)
        scores, plain = np.empty(n_rows), np.empty(n_rows)
        linear_scores(matrix, weights, room, matrix[:0], scores)
        row_sums(matrix, weights, room, matrix[:0], plain)
        assert np.array_equal(scores, plain)
        lanes = 64 // matrix.itemsize
        # A product, its rounded weight, a lane's additions, the joining of the lanes.
        steps = 2 + n_columns // lanes + 2 * math.log2(lanes)
        size = np.abs(matrix.astype(float)) @ np.abs(weights)
        bound = 1.01 * steps * ROUNDOFF[kind] * size
        assert (np.abs(scores - _exact(weights, matrix.astype(float))) <= bound).all()

        sums, plain = np.empty(n_columns), np.empty(n_columns)
        chain(matrix, slopes, sums)
        column_sums(matrix, slopes, plain)
        assert np.array_equal(sums, plain)
        size = np.abs(slopes) @ np.abs(matrix.astype(float))
        steps = 2 + BLOCK + n_rows / BLOCK
        bound = 1.01 * steps * ROUNDOFF[kind] * size
        assert (np.abs(sums - _exact(slopes, matrix.T.astype(float))) <= bound).all()


def test_what_comes_next_changes_nothing():
    matrix, weights, _, room = _arrays(np.float32, 10, 20)
    alone, beside = np.empty(10), np.empty(10)
    linear_scores(matrix, weights, room, matrix[:0], alone)
    for n_upcoming in (1, 3, 9, 10):
        linear_scores(matrix, weights, room, matrix[:n_upcoming], beside)
        assert np.array_equal(alone, beside)
