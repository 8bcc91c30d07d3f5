"""Limits of settings and of forms: what is just within is taken, what is just beyond refused."""

import re
from pathlib import Path

import msgspec
import pytest

from keyhole.base.errors import InvalidInput
from keyhole.service.dashboard.dates import days_of
from keyhole.service.settings import Settings, load_settings
from tests.service.asking import Asked

pytestmark = pytest.mark.interpreted

DAY, YEAR = 24 * 60 * 60, 365 * 24 * 60 * 60
SOON = 1e-9
"""More than no time at all."""
LIMITS = {
    "port": (0, 2**16 - 1, 1),
    "max_body_bytes": (2**10, 2**30, 1),
    "request_seconds": (SOON, DAY, SOON),
    "shutdown_seconds": (SOON, DAY, SOON),
    "heartbeat_seconds": (SOON, DAY, SOON),
    "session_seconds": (SOON, YEAR, SOON),
    "max_concurrency": (1, 10**6, 1),
    "max_streams": (1, 10**6, 1),
    "max_waiting": (1, 10**7, 1),
}
"""The least and the most of every setting that is a number, and what is too little beside it."""


@pytest.mark.parametrize("name", LIMITS)
def test_settings_end_where_they_end(name):
    least, most, step = LIMITS[name]
    variable = f"KEYHOLE_{name.upper()}"
    for within in (least, most):
        assert getattr(load_settings({}, environ={variable: str(within)}), name) == within
    for beyond in (least - step, most + max(step, 1e-6)):
        with pytest.raises(InvalidInput, match=f"The setting {name} must be"):
            load_settings({}, environ={variable: str(beyond)})


def test_texts_of_settings_are_not_empty_nor_longer_than_a_name_of_a_host():
    assert len(load_settings({"host": "h" * 255}).host) == 255
    for flags in ({"db": ""}, {"host": ""}, {"host": "h" * 256}):
        with pytest.raises(InvalidInput, match=f"The setting {next(iter(flags))} must be"):
            load_settings(flags)


@pytest.mark.parametrize(("n_fields", "sentence"), [
    (16, "at least 10 answered rounds"), (17, "A form must be NAME=VALUE pairs in UTF-8.")
])  # fmt: skip
def test_a_form_of_an_evaluation_has_so_many_fields(n_fields, sentence):
    with Asked() as service:
        service.put()
        blank = service.ask("GET", "/rankers/animals/evaluate")
        token = re.search(r'name="csrf" value="(\w+)"', blank.text)
        assert token is not None
        cookie = {"cookie": blank.headers.get("set-cookie", "").partition(";")[0]}
        form = {"csrf": token[1], "policy": "best", "baseline": "logged"}
        form |= {f"more{n}": "1" for n in range(n_fields - len(form))}
        answer = service.ask("POST", "/rankers/animals/evaluate", data=form, headers=cookie)
        assert (answer.status_code, sentence in answer.text) == (422, True)


def test_defaults_are_those_of_the_page():
    text = (Path(__file__).parents[2] / "docs/operating.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)`[^|]*\| (?:`([^`]+)`|(\S+)( MiB)?) \|", text, re.MULTILINE)
    told = {name: word or number for name, word, number, _ in rows}
    factor = {name: 2**20 if unit else 1 for name, _, _, unit in rows}
    found = msgspec.to_builtins(Settings())
    assert found.keys() <= told.keys()
    for name, default in found.items():
        shown = str(default).lower() if isinstance(default, bool) else default
        given = told[name] if isinstance(shown, str) else factor[name] * float(told[name])
        assert given == shown, name


@pytest.mark.parametrize(
    ("since", "until", "is_all"),
    [(None, None, True), ("2026-01-31", None, False), (None, "2026-01-31", False),
     ("2026-01-30", "2026-01-31", False)],
)  # fmt: skip
def test_all_days_are_those_without_an_end(since, until, is_all):
    days = days_of(since, until)
    assert days.is_all == is_all
    assert [day and day.isoformat() for day in days] == [since, until]
