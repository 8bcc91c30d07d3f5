"""Files of arrays that lie, are damaged or hold what no kernel may meet."""

import io
import tracemalloc
import zipfile
from typing import Any

import numpy as np
import pytest

import keyhole
from keyhole.base.errors import InvalidInput
from keyhole.base.files import reading_arrays, write_arrays
from keyhole.base.limits import VARIABLE
from keyhole.policies.base import EpsilonGreedy
from keyhole.policies.files import load_policy, save_policy
from keyhole.policies.forest import ForestScorer, Trees
from keyhole.policies.linear import LinearScorer
from keyhole.rankers.lists.models import load_model

MEGABYTE = 2**20


def npy(array):
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.asanyarray(array), allow_pickle=False)
    return buffer.getvalue()


def archive(*entries, method=zipfile.ZIP_DEFLATED):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as file:
        for name, content in entries:
            file.writestr(name, content)
    return bytearray(buffer.getvalue())


def with_size(content, size):
    """Return an archive whose one entry claims another size when it is unpacked."""
    content[22:26] = size.to_bytes(4, "little")
    central = content.index(b"PK\x01\x02")
    content[central + 24 : central + 28] = size.to_bytes(4, "little")
    return content


def read(path):
    with reading_arrays(path, "arrays") as arrays:
        return arrays


def zeros(n_bytes):
    return archive(("weights.npy", npy(np.zeros(n_bytes // 8))))


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "keyhole.base.limits._ALWAYS_ALLOWED", 4 * MEGABYTE
    )  # smaller files will do
    return tmp_path / "arrays.npz"


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (zeros(20 * MEGABYTE), f"would take 20.0 MiB, more than the limit.*{VARIABLE} raises it"),
        (with_size(zeros(20 * MEGABYTE), 100), "CRC"),
        (with_size(zeros(8000), 2**32 - 2), "would take 4.0 GiB"),
        (archive(("x.npy", npy(np.zeros(3))), method=zipfile.ZIP_BZIP2), "compression"),
        (archive(("x.npy", npy(np.zeros(3))), method=zipfile.ZIP_LZMA), "compression"),
        (archive(("x.npy", npy(np.zeros(3, "f8,i4")))), "must hold numbers or text"),
        (archive(("x.npy", npy(np.zeros(3, "M8[s]")))), "must hold numbers or text"),
        (archive(("x.npy", npy(np.zeros(3, complex)))), "must hold numbers or text"),
        (archive(("x.npy", npy(np.zeros(3, "V0")))), "must hold numbers or text"),
        (archive(("x.npy", npy(np.zeros(3)) + b"more")), "followed by something else"),
    ],
)
def test_what_is_refused_is_refused_in_one_sentence_and_little_memory(path, content, why):
    path.write_bytes(content)
    tracemalloc.start()
    with pytest.raises(InvalidInput, match=rf"^\S* must be arrays: .*{why}.*\.$"):
        assert "x" not in read(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10 * MEGABYTE


def test_two_arrays_of_one_name(path):
    with pytest.warns(UserWarning, match="Duplicate name"):
        content = archive(("x.npy", npy(np.zeros(3))), ("x.npy", npy(np.ones(3))))
    path.write_bytes(content)
    with pytest.raises(InvalidInput, match="two arrays of one name"):
        read(path)


def test_the_limit_can_be_raised(path, monkeypatch):
    path.write_bytes(zeros(10 * MEGABYTE))
    with pytest.raises(InvalidInput, match=VARIABLE):
        read(path)
    monkeypatch.setenv(VARIABLE, "12M")
    assert read(path)["weights"].nbytes == 10 * MEGABYTE


def test_what_was_written_is_read_whatever_it_shrinks_to(path):
    write_arrays(path, {"weights": np.zeros(10 * MEGABYTE // 8)})
    assert read(path)["weights"].nbytes == 10 * MEGABYTE


def test_arrays_of_other_machines_become_those_of_this_one(path):
    table = np.arange(6.0).reshape(2, 3)
    write_arrays(path, {"big": table.astype(">f8"), "columns": np.asfortranarray(table)})
    arrays = read(path)
    for array in arrays.values():
        assert array.dtype == np.dtype(np.float64)
        assert array.flags.c_contiguous
        assert array.tobytes() == table.tobytes()


@pytest.mark.parametrize(
    "change",
    [
        {"weights": [np.nan, 1.0]},
        {"weights": [np.inf, 1.0]},
        {"weights": []},
        {"weights": [[1.0, 2.0], [3.0, 4.0]]},
        {"weights": 1.0},
        {"weights": ["a", "b"]},
        {"weights": ["nan", "1"]},
        {"minmax": [True, False]},
    ],
)
def test_a_model_of_anything_but_finite_weights_is_refused(path, change):
    write_arrays(path, {"weights": [1.0, 2.0], "minmax": True, **change})
    with pytest.raises(InvalidInput, match=r"must be a model saved by keyhole learn: .*\.$"):
        load_model(path)


@pytest.mark.parametrize(
    "change",
    [
        {"support": [[np.nan], [1.0]]},
        {"support": np.zeros((2, 0))},
        {"support": [1.0, 2.0]},
        {"coefficients": [1.0, np.inf]},
        {"coefficients": [1.0]},
        {"norms": [[1.0], [1.0]]},
        {"gamma": np.nan},
        {"gamma": [1.0, 2.0]},
        {"degree": 2**62},
        {"degree": 1.5},
        {"kernel": "rbff"},
    ],
)
def test_a_model_of_similarities_is_finite_and_of_one_shape(path, change):
    good: dict[str, Any] = {
        "minmax": True, "support": [[1.0], [2.0]], "coefficients": [1.0, -1.0],
        "norms": [1.0, 4.0], "kernel": "rbf", "gamma": 1.0, "degree": 2,
    }  # fmt: skip
    write_arrays(path, good)
    assert load_model(path).n_features == 1
    write_arrays(path, {**good, **change})
    with pytest.raises(InvalidInput, match=r"must be a model saved by keyhole learn: .*\.$"):
        load_model(path)


def test_scores_beyond_all_numbers_are_no_ranking(path):
    write_arrays(path, {"weights": [1e300, 1e300], "minmax": False})
    features = np.full((3, 2), 1e30, np.float32)
    with pytest.raises(InvalidInput, match="scores of documents must be finite, got inf"):
        load_model(path).scores(features)


@pytest.mark.parametrize("name", ["scorer.weights", "scorer.offsets", "policy.epsilon"])
def test_a_policy_of_nan_is_refused(path, name):
    save_policy(EpsilonGreedy(LinearScorer([[1.0], [2.0]], [0.0, 0.5]), epsilon=0.2), path)
    arrays = read(path)
    write_arrays(path, {**arrays, name: np.full_like(arrays[name], np.nan)})
    with pytest.raises(InvalidInput, match=r"must be a policy saved by save_policy: .*\.$"):
        load_policy(path)


TREES = Trees([0, -1, -1], [0.5, 0, 0], [1, 0, 0], [2, 0, 0], [0.5, 0.2, 0.8], [0, 3], [0, 1])


@pytest.mark.parametrize(
    "change",
    [
        {"threshold": [0.5]},
        {"threshold": [np.nan, 0, 0]},
        {"value": []},
        {"value": [0.5, np.inf, 0.8]},
        {"left": [1]},
        {"right": [7, 0, 0]},
        {"feature": [3, -1, -1]},
        {"tree_starts": [3, 6]},
        {"tree_starts": []},
        {"ad_starts": []},
        {"ad_starts": [0, 2]},
    ],
)
def test_a_forest_whose_branches_leave_its_arrays_is_refused(change):
    assert ForestScorer(TREES, 1).scores([[0.0], [1.0]]).tolist() == [[0.2], [0.8]]
    with pytest.raises(InvalidInput, match="of a forest"):
        ForestScorer(TREES._replace(**change), 1)


@pytest.mark.parametrize("content", [b"", b"PK\x05\x06" + bytes(18), b"\x93NUMPY", bytes(100)])
def test_a_ranker_of_nothing(path, content):
    path.write_bytes(content)
    with pytest.raises(InvalidInput, match=r"must be a ranker saved by Ranker\.save: .*\.$"):
        keyhole.load(path)


@pytest.mark.parametrize(
    "spec", ["[" * 100_000, "3", "{}", '{"name": "ftpl", "n_items": 1e400}', '{"name": []}', "{"]
)
def test_a_spec_that_describes_no_ranker(path, spec):
    write_arrays(path, {"spec": spec, "next_round": 0})
    with pytest.raises(InvalidInput, match=r"must be a ranker saved by Ranker\.save: .*\.$"):
        keyhole.load(path)
