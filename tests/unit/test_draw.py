"""The random numbers are a known generator, depend on everything they should, and are random."""

# ruff: noqa: T201 (tests print the bounds they hold results against)

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from keyhole.base.errors import MAX_ROUND
from keyhole.kernels.draw import (
    MAX_USE,
    RANKER_STREAM,
    REVEAL_STREAM,
    WORLD_STREAM,
    Draw,
    RelabelledDraw,
    gumbels,
    mix,
    normals,
    scalar,
    start,
    stream_of,
    to_unit,
    uniform,
    uniforms,
    uniforms_of,
    word,
)

MASK = 2**64 - 1
GOLDEN = 0x9E3779B97F4A7C15
FAILURE = 1e-6
"""Chance with which a correct generator fails one of the checks of a distribution."""

PLACES = [
    (0, 0, 0, 0),
    (1, 2, 3, 4),
    (1234567, 5, 10**6, MAX_USE - 1),
    (2**63 - 1, 2**33, MAX_ROUND - 1, 17),
]


def reference_mix(bits: int) -> int:
    bits = ((bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    bits = ((bits ^ (bits >> 27)) * 0x94D049BB133111EB) & MASK
    return bits ^ (bits >> 31)


def reference_start(seed: int, stream: int, round: int, use: int) -> int:
    key = reference_mix((reference_mix(seed) + stream * GOLDEN) & MASK)
    return reference_mix((key + (round * MAX_USE + use) * GOLDEN) & MASK)


def reference_word(begin: int, index: int) -> int:
    return reference_mix((begin + (index + 1) * GOLDEN) & MASK)


def reference_unit(bits: int) -> float:
    return ((bits >> 12) + 0.5) / 2**52


def vector(fill, draw, n_items, use=0):
    out = np.empty(n_items)
    fill(draw, use, out)
    return out


def test_published_vector_of_splitmix64():
    outputs = [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]
    seed = np.uint64(1234567)
    assert [int(word(seed, index)) for index in range(5)] == outputs
    assert [reference_word(1234567, index) for index in range(5)] == outputs
    assert [int(mix(np.uint64((1234567 + i * GOLDEN) & MASK))) for i in range(1, 6)] == outputs


@pytest.mark.parametrize(("seed", "stream", "round", "use"), PLACES)
def test_equal_to_whole_number_arithmetic(seed, stream, round, use):
    draw = Draw(seed, stream, round)
    begin = reference_start(seed, stream, round, use)
    assert int(start(draw, round, use)) == begin
    expected = [reference_unit(reference_word(begin, index)) for index in range(70)]
    assert vector(uniforms, draw, 70, use).tolist() == expected
    assert [uniform(draw, use, item) for item in range(70)] == expected
    assert [scalar(draw, round, use, index) for index in range(70)] == expected
    other = np.empty(70)
    uniforms_of(Draw(seed, stream, 99), round, use, other)
    assert other.tolist() == expected


def test_gumbels_and_normals_are_made_of_the_words():
    draw = Draw(3, 1, 4)
    begin = reference_start(3, 1, 4, 0)
    units = [reference_unit(reference_word(begin, index)) for index in range(20)]
    gumbel = [-math.log(-math.log(u)) for u in units[:10]]
    normal = [
        math.sqrt(-2 * math.log(u)) * math.cos(2 * math.pi * v)
        for u, v in zip(units[::2], units[1::2], strict=True)
    ]
    # The C library's logarithm may differ from Python's by a unit in the last place.
    np.testing.assert_allclose(vector(gumbels, draw, 10), gumbel, rtol=1e-14)
    np.testing.assert_allclose(vector(normals, draw, 10), normal, rtol=1e-14)


def test_units_are_strictly_inside():
    least, most = to_unit(np.uint64(0)), to_unit(np.uint64(MASK))
    assert least == 2.0**-53
    assert most == 1.0 - 2.0**-53
    assert 0.0 < least < most < 1.0
    assert math.isfinite(math.log(-math.log(least)))
    assert math.isfinite(math.log(-math.log(most)))


def test_every_part_of_the_place_matters():
    """2^14 words all differ; by chance two would agree once in 2^37 such sets."""
    words = {}
    for place in itertools.product(range(8), range(8), range(8), range(4)):
        seed, stream, round, use = place
        begin = np.uint64(start(Draw(seed, stream, round), round, use))
        words.update({(*place, item): int(word(begin, item)) for item in range(8)})
    assert len(words) == 2**14
    assert len(set(words.values())) == len(words)


def test_rounds_and_uses_do_not_overlap():
    last_use, first_use = Draw(0, 0, 6), Draw(0, 0, 7)
    assert uniform(last_use, MAX_USE - 1, 0) != uniform(first_use, 0, 0)
    assert len({uniform(Draw(0, 0, 2**bit), 0, 0) for bit in range(47)}) == 47


def test_streams_of_roles_and_runs_differ():
    roles = (RANKER_STREAM, WORLD_STREAM, REVEAL_STREAM)
    streams = [stream_of(role, run) for role in roles for run in range(1000)]
    assert len(set(streams)) == len(streams)


@pytest.mark.parametrize("fill", [uniforms, gumbels, normals])
def test_relabelled_draw(fill):
    labels = np.array([3, 0, 4, 1, 2])
    plain, relabelled = Draw(5, 6, 7), RelabelledDraw(5, 6, 7, labels)
    assert vector(fill, relabelled, 5).tolist() == vector(fill, plain, 5)[labels].tolist()
    assert vector(fill, relabelled, 5).tolist() != vector(fill, plain, 5).tolist()


def test_relabelled_draw_of_one_item_and_of_another_round():
    labels = np.array([3, 0, 4, 1, 2])
    plain, relabelled = Draw(5, 6, 7), RelabelledDraw(5, 6, 7, labels)
    for item in range(5):
        assert uniform(relabelled, 1, item) == uniform(plain, 1, int(labels[item]))
    first, second = np.empty(5), np.empty(5)
    uniforms_of(plain, 3, 1, first)
    uniforms_of(relabelled, 3, 1, second)
    assert second.tolist() == first[labels].tolist()
    assert scalar(relabelled, 3, 1, 0) == scalar(plain, 3, 1, 0)


def sample(fill, along: str, n_rows=500, n_items=200):
    """Return numbers of many rounds, uses, seeds or streams, one row each."""
    places = {
        "items": lambda row: (Draw(0, 0, row * 7), 3),
        "rounds": lambda row: (Draw(0, 0, row), 0),
        "uses": lambda row: (Draw(0, 0, 0), row),
        "seeds": lambda row: (Draw(row, 0, 0), 0),
        "streams": lambda row: (Draw(0, row, 0), 0),
    }
    rows = [vector(fill, draw, n_items, use) for draw, use in map(places[along], range(n_rows))]
    return np.array(rows)


@pytest.mark.parametrize("along", ["items", "rounds", "uses", "seeds", "streams"])
@pytest.mark.parametrize(
    ("fill", "law"),
    [(uniforms, stats.uniform), (gumbels, stats.gumbel_r), (normals, stats.norm)],
)
def test_distribution(fill, law, along):
    """Dvoretzky-Kiefer-Wolfowitz: P(sup |F_n - F| > e) <= 2 exp(-2 n e^2)."""
    numbers = np.sort(sample(fill, along).ravel())
    n = len(numbers)
    bound = math.sqrt(math.log(2 / FAILURE) / (2 * n))
    expected = law.cdf(numbers)
    above = np.max(np.arange(1, n + 1) / n - expected)
    below = np.max(expected - np.arange(n) / n)
    print(f"{n} numbers, distance {max(above, below):.5f}, bound {bound:.5f}")
    assert max(above, below) <= bound


@pytest.mark.parametrize("along", ["rounds", "uses", "seeds", "streams"])
@pytest.mark.parametrize("lag", [1, 2, 4])
def test_no_correlation_between_neighbours(along, lag):
    """Hoeffding: products of two independent centred uniforms lie in [-1/4, 1/4].

    Rows at a lag are split so that no number is in two products of one sum.
    """
    centred = sample(uniforms, along) - 0.5
    kept = (np.arange(len(centred)) // lag) % 2 == 0
    first = centred[: len(centred) - lag][kept[: len(centred) - lag]]
    second = centred[lag:][kept[: len(centred) - lag]]
    mean = float((first * second).mean())
    bound = 0.5 * math.sqrt(math.log(2 / FAILURE) / (2 * first.size))
    print(f"{first.size} products, mean {mean:.6f}, bound {bound:.6f}")
    assert abs(mean) <= bound


def test_no_correlation_between_items():
    centred = sample(uniforms, "rounds") - 0.5
    mean = float((centred[:, 0::2] * centred[:, 1::2]).mean())
    assert abs(mean) <= 0.5 * math.sqrt(math.log(2 / FAILURE) / centred.size)


def test_pairs_fill_the_square():
    """Chi-square over a 16 x 16 grid of numbers of neighbouring rounds."""
    numbers = sample(uniforms, "rounds", n_rows=1000)
    cells = (numbers * 16).astype(int)
    counts = np.bincount((cells[0::2] * 16 + cells[1::2]).ravel(), minlength=256)
    assert stats.chisquare(counts).pvalue > FAILURE
