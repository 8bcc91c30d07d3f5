"""Real people in several orders, and ratings that are scaled, chosen or in an array."""

import numpy as np
import pytest

from keyhole.base.errors import InvalidInput, UnknownName
from keyhole.base.files import write_arrays
from keyhole.data.people import people_in_order
from keyhole.data.ratings import read_ratings
from keyhole.lab.kinds.games import GameSpec, build_world
from keyhole.worlds.table import Ratings, Recorded, Shuffled


@pytest.fixture
def ratings(tmp_path):
    path = tmp_path / "ratings.csv"
    path.write_text("tea,coffee,milk\n5,1,3\n4,2,0\n1,4,1\n")
    return path


TABLE = np.array([[5.0, 1, 3], [4, 2, 0], [1, 4, 1]])


@pytest.mark.parametrize(
    ("order", "kind", "rows"),
    [
        ("drawn", Ratings, [0, 1, 2]),
        ("shuffled", Shuffled, [0, 1, 2]),
        ("file", Recorded, [0, 1, 2]),
        ("mean", Recorded, [1, 2, 0]),  # means 2, 2 and 3: of equals, the first comes first
        ("drift", Recorded, [2, 1, 0]),  # those who like tea come last
    ],
)
def test_people_come_in_the_order_that_is_asked_for(ratings, order, kind, rows):
    world, _ = build_world(GameSpec(world=str(ratings), world_options={"order": order}))
    assert type(world) is kind
    assert world.params.table.tolist() == TABLE[rows].tolist()
    assert world.item_names == ("tea", "coffee", "milk")


def test_an_order_that_there_is_not_is_named(ratings):
    with pytest.raises(UnknownName, match="Did you mean 'drift'"):
        build_world(GameSpec(world=str(ratings), world_options={"order": "drifts"}))
    with pytest.raises(UnknownName, match="drawn, drift, file"):
        people_in_order(TABLE, "none")


def test_a_drift_is_along_the_direction_of_most_spread():
    numbers = np.random.default_rng(2)
    where = numbers.normal(size=200)
    values = np.outer(where, [3.0, 4.0]) + 0.1 * numbers.normal(size=(200, 2)) + 50
    found = people_in_order(values, "drift")
    along = found @ [0.6, 0.8]
    assert (np.diff(along) > -0.5).all()
    assert along[-1] - along[0] > 15
    assert np.array_equal(people_in_order(values[::-1], "drift"), found)


def test_ratings_are_scaled_and_columns_chosen(ratings):
    table = read_ratings(ratings, scale=[0, 5], columns=["milk", "tea"])
    assert table.item_names == ("milk", "tea")
    assert table.values.tolist() == [[0.6, 1.0], [0.0, 0.8], [0.2, 0.2]]
    with pytest.raises(InvalidInput, match="`scale` must hold all ratings, from 0 to 5"):
        read_ratings(ratings, scale=[0, 4])
    with pytest.raises(InvalidInput, match="`scale` must be the lowest and the highest"):
        read_ratings(ratings, scale=[5, 0])
    with pytest.raises(InvalidInput, match="`scale` must be the lowest and the highest"):
        read_ratings(ratings, scale=[0, float("inf")])
    with pytest.raises(InvalidInput, match="At most one of `threshold`"):
        read_ratings(ratings, scale=[0, 5], threshold=3)
    for wrong in (7, [], "tea", ["tea", "tea"]):
        with pytest.raises(InvalidInput, match="`columns` must be"):
            read_ratings(ratings, columns=wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="must be one of coffee"):
        read_ratings(ratings, columns=[7])  # type: ignore[list-item]
    with pytest.raises(UnknownName, match="Did you mean 'tea'"):
        read_ratings(ratings, columns=["teas"])


def test_an_array_of_ratings_is_read_with_its_gaps(tmp_path):
    path = tmp_path / "jokes.npz"
    low = np.iinfo(np.int16).min
    write_arrays(path, {"x": np.array([[-1000, 500, 1000], [0, low, 0]], dtype=np.int16)})
    table = read_ratings(path, scale=[-1000, 1000], missing="drop")
    assert table.values.tolist() == [[0.0, 0.75, 1.0]]
    assert (table.item_names, table.n_dropped) == (("0", "1", "2"), 1)
    # Who has not rated an item that is left out is no one with a gap.
    both = read_ratings(path, scale=[-1000, 1000], columns=["0", "2"])
    assert both.values.tolist() == [[0.0, 1.0], [0.5, 0.5]]
    with pytest.raises(InvalidInput, match="line 2, column '1': a rating is missing"):
        read_ratings(path, scale=[-1000, 1000])


@pytest.mark.parametrize(
    "arrays",
    [
        {"x": np.zeros(3)},
        {"x": np.zeros((0, 3))},
        {"x": np.array([["a", "b"]])},
        {"x": np.full((2, 2), 1e300)},
        {"x": np.zeros((2, 2)), "y": np.zeros((2, 2))},
    ],
    ids=["one dimension", "nobody", "text", "too large", "two arrays"],
)
def test_what_is_no_array_of_ratings_is_refused(tmp_path, arrays):
    path = tmp_path / "ratings.npz"
    write_arrays(path, arrays)
    with pytest.raises(InvalidInput, match="must be one array of ratings, people by items"):
        read_ratings(path)
