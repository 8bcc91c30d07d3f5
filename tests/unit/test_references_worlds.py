"""Worlds and reveals show, round by round, what plain references of theirs compute.

The references draw the same numbers in plain Python; the laws themselves are written out as the
docstrings of the worlds state them.
"""

import itertools
import math

import numpy as np
import pytest

from keyhole.kernels.draw import Draw, shuffled
from keyhole.reveals.choice import Choice
from keyhole.reveals.full import Full
from keyhole.reveals.top import Top
from keyhole.worlds.choices import Choices
from keyhole.worlds.flips import Flips
from keyhole.worlds.gaussian import Gaussian
from keyhole.worlds.generated import Graded, Separable
from keyhole.worlds.outcomes import Hopeless, Outcomes
from keyhole.worlds.queries import Queries
from keyhole.worlds.switching import Switching
from keyhole.worlds.table import Ratings, Recorded
from tests.unit.references import REVEAL, WORLD, gumbels, normals, units
from tests.unit.test_draw import reference_start, reference_unit, reference_word

pytestmark = pytest.mark.interpreted

SEED, RUN, ROUNDS = 5, 2, 60


def place_of(round):
    return SEED, RUN, WORLD, round


def largest(keys, n_marked):
    marked = np.zeros(len(keys))
    marked[np.argsort(-keys, kind="stable")[:n_marked]] = 1.0
    return marked


def same_rounds(world, relevance_of, rounds=ROUNDS):
    for round in range(rounds):
        seen = world.relevance(round, seed=SEED, run=RUN)
        np.testing.assert_array_equal(seen, relevance_of(round))


def truth(n_items, n_relevant):
    """Return the true vector: the last items are the relevant ones."""
    return np.repeat([0.0, 1.0], [n_items - n_relevant, n_relevant])


@pytest.mark.parametrize(
    ("world", "n_relevant", "flip"),
    [(Flips(), 5, 0.1), (Flips(3), 1, 0.1), (Flips(6, n_relevant=2, flip=0.4), 2, 0.4)],
)
def test_flips(world, n_relevant, flip):
    base = truth(world.n_items, n_relevant)

    def relevance_of(round):
        flipped = units(place_of(round), 0, world.n_items) < flip
        return np.where(flipped, 1 - base, base)

    same_rounds(world, relevance_of)


@pytest.mark.parametrize(
    ("world", "n_relevant", "sd"),
    [(Gaussian(), 5, 0.3), (Gaussian(6, n_relevant=2, sd=0.9), 2, 0.9)],
)
def test_gaussian(world, n_relevant, sd):
    base = truth(world.n_items, n_relevant)

    def relevance_of(round):
        return base + sd * normals(place_of(round), 0, world.n_items) > 0.5

    same_rounds(world, relevance_of)


@pytest.mark.parametrize(
    ("world", "weights", "n_chosen"),
    [
        (Choices(4), [1, 1, 1, 1], 1),
        (Choices(4, skew=2.0), [1 / 16, 1 / 9, 1 / 4, 1], 1),  # item i weighs 1 / (n - i)^skew
        (Choices(5, skew=0.5, n_chosen=2), 1 / np.sqrt([5, 4, 3, 2, 1]), 2),
        (Choices(3, weights=[9, 1, 3], n_chosen=2), [9, 1, 3], 2),
    ],
)
def test_choices(world, weights, n_chosen):
    """The largest of log weight plus Gumbel noise: chosen in proportion to the weights."""
    np.testing.assert_allclose(world.weights, weights, rtol=1e-12)

    def relevance_of(round):
        return largest(np.log(weights) + gumbels(place_of(round), 0, len(weights)), n_chosen)

    same_rounds(world, relevance_of)


def test_skewed_choices_favour_the_last_items():
    """An exact law: the last of two items has odds 2^skew."""
    world = Choices(2, skew=3.0)
    assert world.weights[1] / world.weights[0] == pytest.approx(8.0, rel=1e-12)
    assert world.relabelled(np.array([1, 0])).weights[0] == world.weights[1]


@pytest.mark.parametrize(
    ("world", "n_relevant", "period", "flip"),
    [
        (Switching(6, n_relevant=2, period=7, flip=0.0), 2, 7, 0.0),
        (Switching(8, period=5), 2, 5, 0.1),
        (Switching(3, period=4, flip=0.3), 1, 4, 0.3),
    ],
)
def test_switching(world, n_relevant, period, flip):
    """Phases of equal length; in each the items of the largest numbers of the phase."""

    def relevance_of(round):
        taste = largest(units(place_of(round // period), 0, world.n_items), n_relevant)
        flipped = units(place_of(round), 1, world.n_items) < flip
        return np.where(flipped, 1 - taste, taste)

    same_rounds(world, relevance_of)


def test_a_switching_crowd_switches_after_each_period_and_never_before():
    world = Switching(30, n_relevant=15, period=7, flip=0.0)
    rows = [tuple(world.relevance(t)) for t in range(70)]
    phases = [set(rows[first : first + 7]) for first in range(0, 70, 7)]
    assert [len(phase) for phase in phases] == [1] * 10
    # Two of ten sets of 15 out of 30 items agree with a chance below 1e-6.
    assert len(set.union(*phases)) == 10


def test_switching_defaults():
    world = Switching()
    assert world.n_items == 20
    assert tuple(world.params) == (1000, 5, 0.1)


def test_outcomes():
    rows, chances = np.array([[0, 1, 2], [2, 0, 0], [1, 1, 1], [0, 0, 2]]), [0.25, 0.0, 0.45, 0.3]
    bounds = np.cumsum(chances)

    def relevance_of(round):
        number = units(place_of(round), 0, 1)[0]
        return rows[int(np.argmax(number < bounds))]

    same_rounds(Outcomes(rows, chances), relevance_of)


def test_ratings_and_records():
    table = np.random.default_rng(0).integers(4, size=(60, 3))
    same_rounds(Recorded(table), table.__getitem__)
    same_rounds(Ratings(table), lambda t: table[int(units(place_of(t), 0, 1)[0] * 60)])


def test_facts_of_worlds():
    """What rankers and measures are told: grades, and whether there are but two."""
    rows = {
        Flips(4): (4, 1, True, None), Gaussian(4): (4, 1, True, None),
        Choices(4): (4, 1, True, None), Switching(4): (4, 1, True, None),
        Ratings([[0, 1], [1, 1]]): (2, 1, True, None), Ratings([[0, 2]]): (2, 2, False, None),
        Ratings([[0.0, 0.5]]): (2, 0.5, False, None),
        Recorded([[0, 1], [0, 3], [0, 0]]): (2, 3, False, 3),
        Outcomes([[0, 1], [2, 0]], [1, 0]): (2, 2, False, None),
        Outcomes([[0, 1], [1, 0]], [1, 0]): (2, 1, True, None),
        Queries([[1.0]] * 3, [0, 1, 1], [0, 2, 3]): (2, 1, True, None),
        Queries([[1.0]] * 3, [0, 2, 1], [0, 1, 3]): (2, 2, False, None),
        Separable(6, n_grades=2): (6, 1, True, None), Separable(6, n_grades=3): (6, 2, False, None),
        Graded(6, max_grade=1): (6, 1, True, None), Graded(6): (6, 4, False, None),
    }  # fmt: skip
    for world, (n_items, max_grade, is_binary, length) in rows.items():
        assert world.n_items == n_items
        assert (world.max_grade, world.is_binary) == (max_grade, is_binary)
        assert world.length == length


def law_of(world):
    """Return the probability of each outcome that has one."""
    return {
        "".join(str(int(grade)) for grade in row): round(float(chance), 12)
        for row, chance in zip(world.outcomes, world.probabilities, strict=True)
        if chance > 0
    }


def test_the_hopeless_pairs_of_three_items():
    """X3: Table B.1, and the pair that forces the most."""
    assert law_of(Hopeless()) == {
        "110": 0.1, "101": 0.15, "011": 0.05, "100": 0.2, "010": 0.3, "001": 0.2,
    }  # fmt: skip
    assert law_of(Hopeless(side=1)) == {"110": 0.3, "100": 0.15, "010": 0.15, "001": 0.4}
    worst = Hopeless(pair="worst-three")
    assert law_of(worst) == {"010": 0.0882, "011": 0.4559, "100": 0.4559}
    worst = Hopeless(pair="worst-three", side=1)
    assert law_of(worst) == {"010": 0.0882, "001": 0.4559, "110": 0.4559}


@pytest.mark.parametrize("side", [0, 1])
def test_the_hopeless_pairs_of_any_size(side):
    """X4: (1 +- v) / 2^m with v = sign(r_a - r_b) (-1)^(others); even against odd weights."""
    swapped: dict[str, float] = {}
    weighed: dict[str, float] = {}
    for row in itertools.product((0, 1), repeat=4):
        name = "".join(map(str, row))
        v = (row[0] - row[1]) * (-1) ** (row[2] + row[3])
        chance = (1 - v if side else 1 + v) / 16
        swapped |= {name: chance} if chance else {}
        weighed |= {name: 1 / 8} if sum(row) % 2 == side else {}
    assert law_of(Hopeless(4, pair="swap", side=side)) == swapped
    assert law_of(Hopeless(4, pair="parity", side=side)) == weighed


def feistel(place, use, index, length):
    """Four rounds over the least power of four that is long enough, walked until inside."""
    seed, run, role, round = place
    begin = reference_start(seed, 4 * run + role, round, use)
    half = 1
    while 4**half < length:
        half += 1
    while True:
        left, right = divmod(index, 2**half)
        for step in range(4):
            left, right = right, left ^ (reference_word(begin, right * 4 + step) % 2**half)
        index = left * 2**half + right
        if index < length:
            return index


@pytest.mark.parametrize("length", [1, 2, 4, 5, 16, 17, 50, 64, 65])
def test_a_shuffle_is_four_rounds_of_a_feistel_network(length):
    draw = Draw(SEED, 4 * RUN + WORLD, 99)
    places = [shuffled(draw, 7, 3, index, length) for index in range(length)]
    assert places == [feistel((SEED, RUN, WORLD, 7), 3, index, length) for index in range(length)]
    assert sorted(places) == list(range(length))


def test_queries_come_in_passes():
    features, grades = np.arange(14.0).reshape(7, 2), np.array([0, 1, 2, 0, 2, 1, 1.0])
    starts = [0, 2, 3, 5, 7]
    for shuffle in (True, False):
        world = Queries(features, grades, starts, shuffle=shuffle)
        assert world.largest_norm == pytest.approx(math.hypot(12, 13))
        for t in range(25):
            index, lap = t % 4, t // 4
            query = feistel(place_of(lap), 0, index, 4) if shuffle else index
            first, end = starts[query], starts[query + 1]
            shown = world.query(t, seed=SEED, run=RUN)
            np.testing.assert_array_equal(shown.features, features[first:end])
            seen = world.relevance(t, seed=SEED, run=RUN)
            np.testing.assert_array_equal(seen, grades[first:end])
        part = world.as_part(first_round=10, first_pass=3, n_items=5, max_grade=9)
        for t in range(10, 25):
            index, lap = (t - 10) % 4, 3 + (t - 10) // 4
            query = feistel(place_of(lap), 0, index, 4) if shuffle else index
            seen = part.relevance(t, seed=SEED, run=RUN)
            np.testing.assert_array_equal(seen, grades[starts[query] : starts[query + 1]])


def item_units(place, use, item, n_words):
    """Return the numbers of an item that needs several."""
    seed, run, role, round = place
    begin = reference_start(seed, 4 * run + role, round, use)
    return [reference_unit(reference_word(begin, item * n_words + i)) for i in range(n_words)]


@pytest.mark.parametrize(("n_features", "spread", "grades"), [(3, 0.5, None), (4, 1.0, [2, 0, 1])])
def test_separable(n_features, spread, grades):
    """Normal features about the mean of the grade, moved to grade + U[0, 1/2] along w."""
    world = Separable(
        6 if grades is None else 3, n_features=n_features, n_grades=3, spread=spread,
        ranker_seed=8, grades=grades,
    )  # fmt: skip
    expected = np.array([0, 0, 1, 1, 2, 2] if grades is None else grades)
    once = (8, 0, WORLD, 0)
    separator = normals(once, 8, n_features)
    separator /= np.linalg.norm(separator)
    means = normals(once, 9, 3 * n_features).reshape(3, n_features)
    n_words = 2 * math.ceil(n_features / 2)
    for round in range(10):
        rows = np.empty((len(expected), n_features))
        for item, grade in enumerate(expected):
            numbers = np.array(item_units(place_of(round), 0, item, n_words))
            radius, angle = np.sqrt(-2 * np.log(numbers[::2])), 2 * np.pi * numbers[1::2]
            noise = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1).ravel()
            row = means[grade] + spread * noise[:n_features]
            along = grade + 0.5 * units(place_of(round), 1, len(expected))[item]
            rows[item] = row + (along - row @ separator) * separator
        shown = world.query(round, seed=SEED, run=RUN).features
        assert shown is not None
        np.testing.assert_allclose(shown, rows, rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(world.relevance(round), expected)
    assert world.margin == 0.5
    assert Separable().params.means.shape == (5, 20)
    assert Separable().spread == 1.0


@pytest.mark.parametrize("noise", [0.2, 0.7, 0.0])
def test_graded(noise):
    """Quality is uniform; grades cut a mean of it and noise; features are means of it and noise."""
    world = Graded(
        9, min_items=4, n_features=7, max_grade=3, noise=noise, informative=0.6, row_norm=0.5,
        ranker_seed=8,
    )  # fmt: skip
    slopes = 0.5 * units((8, 0, WORLD, 0), 8, 4)  # round(0.6 * 7) features tell something
    scale = 0.5 / math.sqrt(7)
    for round in range(30):
        place = place_of(round)
        n_items = 4 + int(units(place, 4, 1)[0] * 6)
        quality = units(place, 2, n_items)
        mean = (1 - noise) * quality + noise * units(place, 3, n_items)
        shown = world.query(round, seed=SEED, run=RUN).features
        assert shown is not None
        assert shown.shape == (n_items, 7)
        begin = reference_start(SEED, 4 * RUN + WORLD, round, 0)
        for item in range(n_items):
            words = [reference_word(begin, 2 * item + i) for i in range(2)]
            # Column c is the quarter c // 2 of word c % 2.
            chances = [((words[c % 2] >> 16 * (c // 2)) % 2**16 + 0.5) / 2**16 for c in range(7)]
            row = np.array(chances)
            row[:2] += slopes[:2] * (quality[item] - row[:2])
            row[2:4] += slopes[2:] * (1 - quality[item] - row[2:4])
            np.testing.assert_allclose(shown[item], scale * row, rtol=1e-12)
        cuts = [quantile(share, noise) for share in np.cumsum([8, 4, 2]) / 15]
        expected = [sum(one > cut for cut in cuts) for one in mean]
        np.testing.assert_array_equal(world.relevance(round, seed=SEED, run=RUN), expected)


def quantile(share, noise):
    """Return where (1 - noise) U + noise V has that share below it, by bisection of its law."""

    def below(x):
        # The area of {(u, v): (1 - noise) u + noise v <= x}, over v in a fine exact integral.
        if noise == 0.0:
            return x
        ends = sorted({0.0, 1.0, *(np.clip([x / noise, (x - 1 + noise) / noise], 0, 1).tolist())})
        heights = [float(np.clip((x - noise * v) / (1 - noise), 0, 1)) for v in ends]
        return float(np.trapezoid(heights, ends))

    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if below(middle) < share else (low, middle)
    return high


def test_the_defaults_of_graded_lists():
    world = Graded()
    assert (world.n_items, world.min_items, world.n_features, world.max_grade) == (20, 20, 50, 4.0)
    assert (world.noise, len(world.params.slopes), world.params.scale) == (0.2, 15, 1.0)
    for name, shape in {
        "mslr": (200, 40, 136),
        "yahoo": (40, 8, 700),
        "yandex": (16, 4, 245),
    }.items():
        like = Graded.like(name)
        assert (like.n_items, like.min_items, like.n_features) == shape
        assert like.row_norm == 1.0


def test_reveals():
    relevance, ranking = np.array([0.0, 3.0, 1.0, 2.0]), np.array([2, 0, 3, 1])
    assert Full()(relevance, ranking).values.tolist() == [1, 0, 2, 3]
    assert Choice("set")(relevance, ranking).values.tolist() == [1, 0, 1, 1]
    assert Choice("single")(relevance, ranking).values.tolist() == [0, 0, 0, 1]
    for k in range(1, 6):
        shown = Top(k)(relevance, ranking).values
        assert shown[:k].tolist() == [1, 0, 2, 3][:k]
        assert np.isnan(shown[k:]).all()
    assert Choice("set")([0.0, 0.5], [0, 1]).values.tolist() == [0, 1]
    assert [reveal.depth(4) for reveal in (Full(), Choice(), Top(3))] == [4, 4, 3]
    assert Choice().which == "set"
    assert Top().k == 1


def test_a_single_choice_is_the_most_relevant_item_whatever_the_ranking():
    """Every list of four items with grades 0, 1, 2 in every order; ties by the larger number."""
    reveal = Choice("single")
    for round, relevance in enumerate(itertools.product((0.0, 1.0, 2.0), repeat=4)):
        numbers = units((SEED, RUN, REVEAL, round), 0, 4)
        best = [item for item in range(4) if relevance[item] == max(relevance) > 0]
        expected = max(best, key=numbers.__getitem__) if best else None
        for ranking in itertools.permutations(range(4)):
            values = reveal(relevance, ranking, round=round, seed=SEED, run=RUN).values
            assert [ranking[p] for p in range(4) if values[p] == 1.0] == (
                [] if expected is None else [expected]
            )
            assert set(values.tolist()) <= {0.0, 1.0}
