"""What pytest does in a quick run: it keeps to the tests that name a changed row, and to a time.

The choice comes by the environment, for workers of pytest-xdist have no other way to it.
"""

import json
import os
import time
from typing import Any

import pytest

VARIABLE = "QUICK_TESTS"  # one of KEYHOLE_ would be a setting of the service
_settings = json.loads(os.environ.get(VARIABLE, "{}"))
LEFT_OUT = "no time was left: make test runs all"


def pytest_collection_modifyitems(config: pytest.Config, items: list[Any]) -> None:
    """Leave out what names no changed row, where a file has tests of many rows."""
    words = _settings.get("words", {})
    kept: list[Any] = []
    dropped: list[Any] = []
    for item in items:
        path, _, name = item.nodeid.partition("::")
        wanted = words.get(path)
        named = wanted is None or any(word in name for word in wanted)
        (kept if named else dropped).append(item)
    if dropped:
        config.hook.pytest_deselected(items=dropped)
        items[:] = kept


def pytest_runtest_setup() -> None:
    """Leave out what there is no time for: the closest tests came first."""
    if time.time() > _settings.get("until", float("inf")):
        pytest.skip(LEFT_OUT)
