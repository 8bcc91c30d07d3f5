"""Every number that a person can see is in a list, with the test that computes it a second time."""

import ast
import json
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import typer
from starlette.routing import Route

from keyhole.cli.app import COMMANDS, app
from keyhole.data.bandit.formats import read_bandit
from keyhole.service.api.openapi import document
from keyhole.service.api.routes import OPERATIONS
from keyhole.service.dashboard import routes
from tests.outputs.commands import of_commands
from tests.outputs.drawn import of_sessions
from tests.outputs.leaves import Output, leaves
from tests.outputs.served import of_service

pytestmark = pytest.mark.interpreted

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
ECHO, NAME = "echo", "name"
TODO = 0
"""How many numbers have no second computation yet."""


class Row(NamedTuple):
    """A row of the list: a number of an output, and what it is compared with."""

    output: str
    path: str
    reference: str


# --------------------------------------------------------------------------- the list


@cache
def contents() -> dict[str, Any]:
    """Return all files of the list as one: tables by output, ``names`` and ``todo``."""
    whole: dict[str, Any] = {"names": {}, "todo": {}}
    for file in sorted(HERE.glob("*.toml")):
        for name, table in tomllib.loads(file.read_text(encoding="utf-8")).items():
            into = whole[name] if name in ("names", "todo") else whole
            news = table if name in ("names", "todo") else {name: table}
            twice = set(into) & set(news)
            assert not twice, f"{file.name} has {twice} once more"
            into |= news
    return whole


def rows() -> list[Row]:
    tables = {name: each for name, each in contents().items() if name not in ("names", "todo")}
    return [Row(name, path, said) for name, each in tables.items() for path, said in each.items()]


def todo() -> list[Row]:
    return [Row(name, *each) for name, rows in contents()["todo"].items() for each in rows.items()]


# --------------------------------------------------------------------------- what there is


@pytest.fixture(scope="module")
def outputs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("outputs")
    found = list(of_commands(folder))
    found += of_sessions(read_bandit(folder / "log.csv"))
    return [*found, *of_service()]


def seen_in(outputs: Iterable[Output]) -> Iterator[tuple[str, str, Any]]:
    """Yield the name of an output, the path of a leaf within it, and the leaf."""
    for output in outputs:
        named = tuple(contents()["names"].get(output.name, ()))
        for path, leaf in leaves(output.content, named):
            yield output.name, path, leaf


def has_number(leaf: Any) -> bool:
    """Say whether a leaf tells a number: where a folder lies is none."""
    if isinstance(leaf, str):
        return re.search(r"\d", leaf) is not None and not Path(leaf).is_absolute()
    return True


def check_listed(outputs: Iterable[Output]) -> None:
    """Raise where a number is in an output and not in the list."""
    listed = {row[:2] for row in (*rows(), *todo())}
    unlisted = {
        f"[{name!r}] {path} = {leaf}"
        for name, path, leaf in seen_in(outputs)
        if has_number(leaf) and (name, path) not in listed
    }
    assert not unlisted, "not in the list: " + "; ".join(sorted(unlisted))


# --------------------------------------------------------------------------- it is whole


def test_every_number_is_in_the_list(outputs):
    check_listed(outputs)


def test_a_number_that_is_not_in_the_list_is_noticed(outputs):
    game = next(output for output in outputs if output.name == "keyhole play --json")
    check_listed([game])
    for more in ({"best_of_all": 0.5}, {"against": [{"curve": [{"spread": 0.1}]}]}):
        with pytest.raises(AssertionError, match=r"best_of_all|against\[\]\.curve\[\]\.spread"):
            check_listed([game._replace(content={**game.content, **more})])
    said = {"notes": ["all is well"], "reveal": "half"}
    check_listed([Output("keyhole bound --json", {"surrogate": "listnet", **said})])
    with pytest.raises(AssertionError, match=r"notes\[\] = 3 of 5 are well"):
        check_listed([Output("keyhole bound --json", {"notes": ["3 of 5 are well"]})])


def test_every_row_of_the_list_is_seen(outputs):
    seen = {(name, path) for name, path, _ in seen_in(outputs)}
    stale = [row for row in (*rows(), *todo()) if row[:2] not in seen]
    assert stale == []
    assert set(contents()["names"]) <= {name for name, _ in seen}


def _commands(group: Any, before: str = "keyhole") -> Iterator[str]:
    """Yield every command that prints JSON, those of groups too."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _commands(command, f"{before} {name}")
        elif any("--json" in option.opts for option in command.params):
            yield f"{before} {name}"


def test_every_command_that_prints_json_is_run(outputs):
    known = set(_commands(typer.main.get_command(app)))
    assert {name.split()[1] for name in known} | {"serve", "completion"} == set(COMMANDS)
    run = {each.name.removesuffix(" --json") for each in outputs if each.name.endswith("--json")}
    assert known <= run


def test_every_endpoint_and_page_is_asked(outputs):
    asked = {output.name.partition("?")[0] for output in outputs}
    silent = {f"{each.method} {each.path}" for each in OPERATIONS if not _has_body(each)}
    assert len(silent) == 4  # a list is activated, a ranker or a key is removed, all is described
    assert {f"{each.method} {each.path}" for each in OPERATIONS} - silent <= asked
    pages = [each for each in routes(None, None) if isinstance(each, Route)]  # type: ignore[arg-type]
    twins = {page.path for page in pages if page.path.endswith(".json")}
    assert {"/index.json", "/rankers/{ranker}/events.json"} <= twins
    assert {f"GET {path}" for path in (*twins, "/rankers/{ranker}.json")} <= asked


def _has_body(operation: Any) -> bool:
    """Return whether an answer has a body, and is not the description of the interface."""
    bodies = [reply.content for reply in operation.replies.values()]
    return any(bodies) and operation.path != "/openapi.json"


def _numbers_in(schema: Any, parts: Any, path: str = "") -> Iterator[str]:
    """Yield the paths of the numbers that an answer may have, by its description."""
    if "$ref" in schema:
        schema = parts[schema["$ref"].rpartition("/")[2]]
    for one in schema.get("anyOf", ()):
        yield from _numbers_in(one, parts, path)
    if schema.get("type") in ("integer", "number"):
        yield path
    for name, each in schema.get("properties", {}).items():
        yield from _numbers_in(each, parts, f"{path}.{name}" if path else name)
    of_lists = [schema["items"]] if schema.get("items") else []
    for each in (*of_lists, *schema.get("prefixItems", ())):
        yield from _numbers_in(each, parts, f"{path}[]")


def test_every_number_that_the_interface_describes_is_in_the_list():
    """Also one that few answers have."""
    whole = json.loads(document())
    parts, listed = whole["components"]["schemas"], {row[:2] for row in (*rows(), *todo())}
    found = set()
    for path, item in whole["paths"].items():
        for method, operation in item.items():
            for status, reply in operation["responses"].items():
                for kind, body in reply.get("content", {}).items():
                    name = f"{method.upper()} {path}" if status < "300" else "a problem"
                    start = "[]" if "ndjson" in kind else ""
                    schema = body.get("x-line-schema", body["schema"])
                    found |= {(name, number) for number in _numbers_in(schema, parts, start)}
    assert ("GET /v1/rankers", "rankers[].code.seconds") in found
    never = {("POST /v1/rankers/{ranker}/evaluations", "problem.status")}  # it has only begun
    never.add(("POST /v1/keys", "last_used_at"))  # the key is new
    for method in ("PUT", "POST"):  # where lists come with the requests, there are no items
        path = f"{method} /v1/rankers/{{ranker}}/items"
        never |= {(path, "request.n_features"), (path, "request.max_items")}
    assert found - listed == never


# --------------------------------------------------------------------------- its references


@cache
def all_tests_of(file: str) -> set[str]:
    path = ROOT / file
    if not path.is_file():
        return set()
    parts = ast.parse(path.read_text(encoding="utf-8")).body
    return {part.name for part in parts if isinstance(part, ast.FunctionDef)}


def test_every_reference_is_a_test():
    named = {row.reference for row in rows()} - {ECHO, NAME}
    missing = []
    for reference in sorted(named):
        file, colons, test = reference.partition("::")
        if not (colons and test.startswith("test_") and test in all_tests_of(file)):
            missing.append(reference)
    assert missing == []


def test_what_is_still_to_be_done_is_counted():
    left = [f"{row.output} {row.path}: {row.reference}" for row in todo()]
    sys.stdout.write("\n".join(left))
    assert len(left) == TODO
    assert not {row[:2] for row in todo()} & {row[:2] for row in rows()}


def test_echoes_are_what_was_given(outputs):
    echoes = {row[:2] for row in rows() if row.reference == ECHO}
    told = set()
    for output in outputs:
        found: dict[str, list[Any]] = {}
        for _, path, leaf in seen_in([output]):
            found.setdefault(path, []).append(leaf)
        for path, given in output.echoes.items():
            back = found.get(path, [])
            assert back == (given if isinstance(given, list) else [given] * len(back)), path
            assert back, (output.name, path)
            told.add((output.name, path))
    assert echoes == told


def test_names_are_texts(outputs):
    """Digits of a name, a version, an address or a formula are counted by nobody."""
    names = {row[:2] for row in rows() if row.reference == NAME}
    for name, path, leaf in seen_in(outputs):
        if (name, path) in names:
            assert isinstance(leaf, str), (name, path)
