"""Access keys have names, and it is known when they were last used: to a minute."""

import json
import shutil
import time
from typing import Any

import pytest
from typer.testing import CliRunner

from keyhole.base.errors import InvalidInput
from keyhole.cli.app import app
from keyhole.service.events import Key
from keyhole.service.keys import KeyRing, new_key
from keyhole.service.store import STORES, open_store
from tests.service.addresses import address_of
from tests.service.asking import Asked
from tests.service.make_first import FIXTURES


def test_a_use_is_written_down_once_a_minute():
    text, key = new_key(["read"], ["*"], name="wall")
    clock, noted = [1_000_000], []
    ring = KeyRing(lambda: [key], wall_ms=lambda: clock[0], note_use=lambda *use: noted.append(use))
    for seconds in (0, 1, 59, 60, 61, 130):
        clock[0] = 1_000_000 + 1_000 * seconds
        access: Any = ring.access(text)
        assert access.who == f"wall ({key.prefix})"
    ring.access_of(key.prefix)
    assert ring.access(text + "x") is None
    assert noted == [(key.prefix, 1_000_000 + 1_000 * each) for each in (0, 60, 130)]
    clock[0] = 5  # somebody has set the clock back
    assert ring.access(text) is not None
    assert noted[-1] == (key.prefix, 5)


def test_an_expired_key_is_not_used():
    text, key = new_key(["read"], ["*"], expires_days=1, now_ms=0)
    noted = []
    ring = KeyRing(lambda: [key], wall_ms=lambda: 10**12, note_use=lambda *use: noted.append(use))
    assert ring.access(text) is None
    assert noted == []


@pytest.mark.parametrize("name", ["x" * 65, "two\nlines", " blank"])
def test_a_name_is_a_short_line(name):
    with pytest.raises(InvalidInput, match="name of a key must be at most 64 printable"):
        new_key(["read"], ["*"], name=name)


@pytest.mark.parametrize("scheme", list(STORES))
def test_stores_keep_names_and_uses(tmp_path, scheme):
    with open_store(address_of(scheme, tmp_path)) as store:
        key = Key("0123abcd", bytes(32), ("read",), ("*",), 5, None, "wall")
        store.add_key(key)
        assert store.keys() == [key]
        store.note_key_use("0123abcd", 77)
        store.note_key_use("nobody", 78)
        (kept,) = store.keys()
        assert (kept.name, kept.used_at) == ("wall", 77)


def test_keys_of_the_first_form_have_no_name_and_were_never_used(tmp_path):
    with open_store(shutil.copy(FIXTURES / "first.db", tmp_path / "first.db")) as store:
        (key,) = store.keys()
        assert (key.name, key.used_at) == ("", None)
        store.note_key_use(key.prefix, 9)
        assert store.keys()[0].used_at == 9


def test_the_interface_tells_names_and_uses():
    with Asked() as service:
        asked = {"scopes": ["admin"], "rankers": ["*"], "name": "ops"}
        made = service.ask("POST", "/v1/keys", json=asked).json()
        assert (made["name"], made["last_used_at"]) == ("ops", None)
        service.headers = {"authorization": f"Bearer {made['key']}"}
        before = int(time.time() * 1000)
        service.ask("GET", "/v1/rankers")
        for _ in range(100):
            (told,) = service.ask("GET", "/v1/keys").json()["keys"]
            if told["last_used_at"] is not None:
                break
        assert before <= told["last_used_at"] <= time.time() * 1000
        assert told["name"] == "ops"


def test_commands_name_keys_and_show_their_use(tmp_path):
    db, run = str(tmp_path / "log.db"), CliRunner().invoke
    made = run(app, ["keys", "create", "--db", db, "--scope", "read", "--ranker", "*",
                     "--name", "the wall"])  # fmt: skip
    assert made.exit_code == 0, made.output
    with open_store(db) as store:
        store.note_key_use(store.keys()[0].prefix, 1_700_000_000_000)
    (told,) = json.loads(run(app, ["keys", "list", "--db", db, "--json"]).stdout)
    assert (told["name"], told["last_used_at"]) == ("the wall", 1_700_000_000_000)
    text = run(app, ["keys", "list", "--db", db]).stdout
    assert "the wall" in text
    assert "2023-11-14 22:13" in text
