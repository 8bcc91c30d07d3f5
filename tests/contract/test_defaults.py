"""What is left out means the same everywhere: one seed, one confidence, one scale of grades."""

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from typing import Any

import pytest

import keyhole

pytestmark = pytest.mark.interpreted

USUAL: dict[str, Any] = {
    "seed": 0, "run": 0, "confidence": 0.95, "max_grade": 1, "k": 1, "top": 1,
    "as_json": False, "keep_empty": False, "log_x": False, "log_y": False,
}  # fmt: skip
"""What is taken where nothing is given; nothing at all where it follows from something else."""
UNUSUAL = {
    ("ERR", "max_grade"): 4,  # of the grades 0 to 4 that it was made for
    ("Graded", "max_grade"): 4,
    ("Game", "k"): 0,  # of any finite game, most of which have no top
    ("_graded", "top"): False,  # whether, and not how many
}


def _takers() -> Iterator[tuple[str, Any]]:
    """Yield every function, class and method of the package with its name."""
    for found in pkgutil.walk_packages(keyhole.__path__, "keyhole."):
        if found.name.rpartition(".")[2] == "__main__" or ".ecosystem" in found.name:
            continue  # one runs, the others need other packages
        module = importlib.import_module(found.name)
        for name, thing in vars(module).items():
            if getattr(thing, "__module__", None) == found.name and callable(thing):
                yield name, thing
                if inspect.isclass(thing):
                    yield from (
                        (f"{name}.{own}", getattr(each, "__func__", each))
                        for own, each in vars(thing).items()
                    )


def test_what_is_not_given_is_what_it_is_everywhere():
    counts = dict.fromkeys(USUAL, 0)
    for name, taker in _takers():
        try:
            parameters = inspect.signature(taker).parameters.values()
        except (TypeError, ValueError):
            continue
        for each in parameters:
            if each.name not in USUAL or each.default is each.empty or each.default is None:
                continue
            counts[each.name] += 1
            usual = USUAL[each.name]
            wanted = UNUSUAL.get((name.removesuffix(".__init__"), each.name), usual)
            assert each.default == wanted, (name, each.name)
    assert min(counts.values()) >= 3
