import io
import zipfile
from pathlib import Path

import numpy as np
import pytest

from keyhole.base.errors import InvalidInput
from keyhole.base.files import reading_arrays, write_arrays
from keyhole.game.log import Log
from keyhole.lab.kinds.ad_data import load_classes
from keyhole.policies.files import load_policy
from keyhole.rankers.lists.models import load_model


def packed(arrays):
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


def zipped(content, name="x.npy"):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(name, content)
    return bytearray(buffer.getvalue())


def with_flag(offset_local, offset_central, value):
    """Return a good file with two bytes of the one entry's heads changed."""
    content = zipped(array_file("<f8", "(3,)", bytes(24)))
    content[offset_local] = value
    content[content.index(b"PK\x01\x02") + offset_central] = value
    return bytes(content)


def array_file(dtype, shape, data):
    head = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head.encode() + data


def one_array():
    buffer = io.BytesIO()
    np.save(buffer, np.arange(3))
    return buffer.getvalue()


GOOD = packed({"weights": np.random.default_rng(0).random(50)})
NO_NPZ = {
    "empty": (b"", "it is empty"),
    "text": (b"nonsense", "it holds no arrays"),
    "pickled": (packed({"x": np.array([{}], dtype=object)}), "it holds no arrays"),
    "plain .npy": (one_array(), r"it holds one array without a name \(\.npy\)"),
    "truncated": (GOOD[:-30], "not a zip file"),
    "its head cut": (GOOD[9:], "it holds no arrays"),
    "corrupt": (GOOD[:120] + bytes([GOOD[120] ^ 255]) + GOOD[121:], "."),
    "encrypted": (with_flag(6, 8, 1), "encrypted"),
    "packed in another way": (with_flag(8, 10, 99), "compression"),
    "a word document": (bytes(zipped(b"<xml/>", "word.xml")), "it holds other things than arrays"),
    "a head that does not end": (bytes(zipped(array_file("<f8", "(3,", b""))), "."),
    "larger than memory": (bytes(zipped(array_file("<f8", f"({2**50},)", b""))), "."),
    "of a length beyond all": (bytes(zipped(array_file("<f8", f"({10**30},)", b""))), "."),
    "shorter than it says": (bytes(zipped(array_file("<f8", "(300,)", bytes(24)))), "."),
}
READERS = {
    "a log": (Log.load, r"must be a log saved by Log\.save: "),
    "a policy": (load_policy, "must be a policy saved by save_policy: "),
    "a model": (load_model, "must be a model saved by keyhole learn: "),
    "classes": (lambda path: load_classes(path.stem), "must be the data set libras: "),
}


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.setenv("KEYHOLE_DATA", str(tmp_path))
    (tmp_path / "uci_multiclass").mkdir()
    return tmp_path / "uci_multiclass" / "libras.npz"


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("broken", NO_NPZ)
def test_every_reader_of_arrays_says_in_one_sentence_what_a_file_is_not(path, broken, reader):
    content, why = NO_NPZ[broken]
    read, sentence = READERS[reader]
    path.write_bytes(content)
    with pytest.raises(InvalidInput, match=rf"^\S*libras\.npz {sentence}.*{why}.*\.$") as caught:
        read(path)
    assert "\n" not in str(caught.value)
    assert "pickle" not in str(caught.value)


@pytest.mark.parametrize("reader", READERS)
def test_every_reader_of_arrays_names_the_array_that_is_missing(path, reader):
    read, sentence = READERS[reader]
    write_arrays(path, {"something": [1, 2]})
    with pytest.raises(InvalidInput, match=rf"{sentence}'\w+' is missing\.$"):
        read(path)


def test_any_byte_may_be_wrong_and_any_part_be_missing(tmp_path):
    path = tmp_path / "a.npz"
    content = packed({"weights": np.arange(5.0), "name": np.array("linear")})
    n_refused = 0
    for place in range(len(content)):
        changed = bytearray(content)
        changed[place] ^= 0xA5
        for broken in (content[:place], bytes(changed)):
            path.write_bytes(broken)
            try:
                with reading_arrays(path, "arrays") as arrays:
                    arrays["weights"].sum()
            except InvalidInput as error:
                assert str(error).startswith(f"{path} must be arrays: ")  # noqa: PT017
                n_refused += 1
    assert n_refused > len(content)  # every truncated one at least


def test_what_a_block_refuses_is_said_of_the_file(tmp_path):
    path = tmp_path / "a.npz"
    write_arrays(path, {"n": 3})
    for error, why in ((ValueError("n is odd."), "n is odd"), (InvalidInput("no"), "no")):
        with (
            pytest.raises(InvalidInput, match=f"a.npz must be even: {why}\\.$"),
            reading_arrays(path, "even"),
        ):
            raise error
    with pytest.raises(InvalidInput, match=r"b\.npz must be even: No such file or directory\.$"):
        load(tmp_path / "b.npz")
    with pytest.raises(InvalidInput, match=r"must be even: Is a directory\.$"):
        load(tmp_path)


def load(path):
    with reading_arrays(path, "even") as arrays:
        return arrays


def test_arrays_are_written_under_their_very_name_and_whole(tmp_path, monkeypatch):
    path = tmp_path / "deeper" / "log"
    write_arrays(path, {"n": np.arange(3)})
    assert [each.name for each in path.parent.iterdir()] == ["log"]

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(OSError, match="disk full"):
        write_arrays(path, {"n": np.arange(4)})
    assert [each.name for each in path.parent.iterdir()] == ["log"]
    assert load(Path(path))["n"].tolist() == [0, 1, 2]
