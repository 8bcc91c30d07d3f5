"""Sources that change are compiled anew, and nothing else is: a copy of the package is edited.

Every function of the sample depends on one thing alone, so that each line that changes shows in one
number, and code that was kept in spite of it shows in that number too.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import llvmlite
import numba
import pytest

import keyhole
from keyhole.kernels import code_cache

SAMPLE = '''
"""What is edited."""

from typing import Any, NamedTuple

import numpy as np

from keyhole.kernels.compiled import assemble, kernel, rare_kernel
from keyhole.kernels.replaced import replaced

NUMBER = 3.0
PAIR = (4.0, 5.0)
TABLE = np.array([6.0, 7.0])


class Fields(NamedTuple):
    first: Any
    second: Any


@kernel
def inlined(x: float) -> float:
    return x + 0.5


@rare_kernel
def called(x: float) -> float:
    return x * 2.0


@rare_kernel
def shifted(x: float, shift: float = 0.25) -> float:
    return x + shift


@rare_kernel
def by_number(x: float) -> float:
    # What it is: a product.
    return NUMBER * x


@rare_kernel
def by_pair(x: float) -> float:
    return PAIR[1] * x


@rare_kernel
def by_table(x: float) -> float:
    return TABLE[1] * x


@rare_kernel
def by_operator(x: float) -> float:
    return 11.0 * x


@rare_kernel
def by_call(x: float) -> float:
    return called(x)


@rare_kernel
def by_inlining(x: float) -> float:
    return inlined(x)


@rare_kernel
def by_call_of_a_call(x: float) -> float:
    return by_call(x) - 1.0


@rare_kernel
def by_fields(x: float) -> float:
    return Fields(x, 10.0 * x).first


@rare_kernel
def by_default(x: float) -> float:
    return shifted(x)


@rare_kernel
def by_replacement(x: float) -> float:
    return replaced(x)


def _adding(part: Any) -> Any:
    number = 13.0

    def by_factory(x: float) -> float:
        return part(x) + number

    return by_factory


@rare_kernel
def by_nothing(x: float) -> float:
    """Return less."""
    return x - 1.0


by_assembly = assemble(_adding, by_nothing)
'''
REPLACED = '''
"""A function that is no kernel: its file gives Numba other code in its place."""

from numba.extending import overload


def replaced(x):
    return x + 20.0


@overload(replaced)
def _of_replaced(x):
    return lambda x: x + 20.0
'''
EDITS = {
    "by_number": ("NUMBER = 3.0", "NUMBER = 3.5", 6.0, 7.0),
    "by_pair": ("PAIR = (4.0, 5.0)", "PAIR = (4.0, 5.5)", 10.0, 11.0),
    "by_table": ("np.array([6.0, 7.0])", "np.array([6.0, 7.5])", 14.0, 15.0),
    "by_operator": ("11.0 * x", "11.0 + x", 22.0, 13.0),
    "by_call": ("return x * 2.0", "return x * 2.5", 4.0, 5.0),
    "by_call_of_a_call": ("", "", 3.0, 4.0),
    "by_inlining": ("return x + 0.5", "return x + 0.75", 2.5, 2.75),
    "by_fields": ("first: Any\n    second: Any", "second: Any\n    first: Any", 2.0, 20.0),
    "by_default": ("shift: float = 0.25", "shift: float = 0.5", 2.25, 2.5),
    "by_replacement": ("lambda x: x + 20.0", "lambda x: x + 21.0", 22.0, 23.0),
    "by_assembly": ("number = 13.0", "number = 14.0", 14.0, 15.0),
}
"""For each function: a line, what becomes of it, and what the function makes of 2 before and after.

Functions that call what is edited change with it.
"""
COMMENTS = [
    (
        "# What it is: a product.",
        "# What it is:\n\n    # the product of a number and what is given.",
    ),
    ('"""Return less."""', '"""Return one less than what is given."""'),
    ('"""What is edited."""', '"""What is edited, further down than before."""\n\n# A comment.\n'),
]
ASK = """
import json
from keyhole.kernels import sample
names = [name for name in vars(sample) if name.startswith("by_")]
print(json.dumps({name: getattr(sample, name)(2.0) for name in names}))
"""


class Copy:
    """A copy of the package's sources, asked by a process of its own that uses one cache."""

    def __init__(self, folder):
        self.source, self.cache = folder / "src" / "keyhole", folder / "cache"
        ignored = shutil.ignore_patterns("__pycache__", "*.zip", "*.so")
        shutil.copytree(Path(keyhole.__file__).parent, self.source, ignore=ignored)
        self.write("sample", SAMPLE)
        self.write("replaced", REPLACED)

    def write(self, name, text):
        (self.source / "kernels" / f"{name}.py").write_text(text)

    def ask(self):
        environment = {
            **os.environ,
            "PYTHONPATH": str(self.source.parent),
            "PYTHONDONTWRITEBYTECODE": "1",  # files of one size, written within a second
            "NUMBA_CACHE_DIR": str(self.cache),
        }
        done = subprocess.run(
            [sys.executable, "-c", ASK], env=environment, capture_output=True, text=True, check=True
        )
        return json.loads(done.stdout)

    def kept(self):
        """Return the code files by the functions they are of."""
        found: dict[str, set[tuple[str, int]]] = {}
        for path in self.cache.rglob("*.code"):
            found.setdefault(path.name.rsplit("-", 2)[0], set()).add(
                (path.name, path.stat().st_mtime_ns)
            )
        return found


def edited(text, edits):
    for old, new in edits:
        text = text.replace(old, new) if old else text
    return text


@pytest.fixture(scope="module")
def versions(tmp_path_factory):
    """What the sample gives, and what is kept, as it is, with other comments, and edited."""
    copy, found = Copy(tmp_path_factory.mktemp("copy")), {}
    changes = [(old, new) for old, new, _, _ in EDITS.values()]
    for version, edits in {"first": [], "comments": COMMENTS, "edited": changes}.items():
        copy.write("sample", edited(SAMPLE, edits))
        copy.write("replaced", edited(REPLACED, edits if version == "edited" else []))
        found[version] = copy.ask(), copy.kept()
    return found


def test_every_line_that_is_edited_is_there_once():
    for old, new, before, after in EDITS.values():
        assert not old or (SAMPLE + REPLACED).count(old) == 1
        assert new not in SAMPLE + REPLACED or not new
        assert before != after
    assert all(SAMPLE.count(old) == 1 for old, _ in COMMENTS)


@pytest.mark.parametrize("name", EDITS)
def test_what_is_edited_is_compiled_anew(name, versions):
    _, _, before, after = EDITS[name]
    assert versions["first"][0][name] == before
    assert versions["edited"][0][name] == after


def test_what_is_not_edited_is_kept(versions):
    values, first = versions["first"]
    assert values["by_nothing"] == versions["edited"][0]["by_nothing"] == 1.0
    assert first["by_nothing"]
    assert versions["edited"][1]["by_nothing"] == first["by_nothing"]
    of_edited = {name for name, files in versions["edited"][1].items() if first[name] != files}
    assert {name.partition("_")[0] for name in set(first) - of_edited} == {"by"}
    assert set(first) - of_edited == {"by_nothing"}


def test_comments_and_where_a_function_stands_make_nothing_cold(versions):
    assert versions["comments"] == versions["first"]


def test_code_is_kept_apart_by_what_compiles_it(tmp_path, monkeypatch):
    """A file of what compiles, a version or a setting: any of them makes all code another one's."""
    stamp = code_cache.compiler_stamp.__wrapped__
    for path in Path(code_cache.__file__).parent.glob("*.py"):
        shutil.copy(path, tmp_path)
    monkeypatch.setattr(code_cache, "__file__", str(tmp_path / "code_cache.py"))
    before = stamp()
    assert stamp() == before
    for name in ("code_cache", "stamps", "whole_program"):
        path = tmp_path / f"{name}.py"
        source = path.read_bytes()
        path.write_bytes(source + b"# another version\n")
        assert stamp() != before, name
        path.write_bytes(source)
    assert stamp() == before
    (tmp_path / "sorting.py").write_bytes(b"")  # the stamps of functions tell of this one
    assert stamp() == before
    for owner, name, value in (
        (numba, "__version__", "0.0.1"),
        (llvmlite, "__version__", "0.0.1"),
        (code_cache.config, "OPT", 1),
        (code_cache.config, "BOUNDSCHECK", 1),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, value)
            assert stamp() != before, name


def test_functions_of_one_name_leave_each_others_code(tmp_path, monkeypatch):
    """What is kept of an older version of a function is removed, of another function it is not."""
    monkeypatch.setattr(code_cache, "code_folder", lambda: tmp_path)
    search = code_cache.CodeKey("search", "keyhole.one.search", "first", "(f8,)", "inner")
    others = [
        search._replace(**{name: "another"}) for name in ("name", "identity", "args", "target")
    ]
    for key in (*others, search):
        code_cache.write_code(key, f"code of {key.identity}")
    assert [code_cache.read_code(key) for key in others] == [
        "code of keyhole.one.search", "code of another", *["code of keyhole.one.search"] * 2
    ]  # fmt: skip
    newer = search._replace(stamp="second")
    assert code_cache.read_code(newer) is None
    code_cache.write_code(newer, "newer code")
    assert code_cache.read_code(search) is None
    assert code_cache.read_code(newer) == "newer code"
    assert all(code_cache.has_code(key) for key in (*others, newer))
    # What was kept for one key is not read for another, even under its name.
    (tmp_path / newer.file_name).rename(tmp_path / search.file_name)
    assert code_cache.read_code(search) is None
