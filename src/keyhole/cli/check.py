"""The command that runs the contract checks on a user's own class."""

import re
from collections.abc import Callable, Iterator
from typing import Annotated, Any

import numpy as np

from keyhole.base.errors import InvalidInput, check_integer
from keyhole.checks.attacks import ATTACKS
from keyhole.checks.living import KEEPING_CHECKS, LIVING_CHECKS
from keyhole.checks.measures import check_measure
from keyhole.checks.rankers import RANKER_CHECKS
from keyhole.checks.reveals import check_reveal
from keyhole.checks.surrogates import SURROGATE_CHECKS
from keyhole.checks.worlds import check_world
from keyhole.cli.description_options import command
from keyhole.cli.exit_codes import ExitCode
from keyhole.cli.terminal import OUT, Json, escape, parse_options, print_json
from keyhole.contracts.rankers import Ranker
from keyhole.contracts.registry import all_settings
from keyhole.contracts.worlds import World
from keyhole.measures import measure as named_measure
from keyhole.rankers import RANKERS
from keyhole.rankers.lists.base import ContextualRanker
from keyhole.reveals import REVEALS
from keyhole.surrogates import SURROGATES
from keyhole.worlds import WORLDS
from keyhole.worlds.flips import Flips
from keyhole.worlds.queries import Queries

_ROUNDS = 60
_LONGEST = 10_000
"""The maximum length of the lists to check with."""
_N_FEATURES = 4
_LISTS = 200
_OWNERS = ("ranker", "measure", "world", "reveal", "surrogate")

Check = tuple[str, Callable[[], None]]


@command()
def check_command(
    ranker: Annotated[
        str | None, "A ranker: file.py:Class, module:Class or a name of 'keyhole list'."
    ] = None,
    measure: Annotated[str | None, "A measure, likewise."] = None,
    world: Annotated[str | None, "A world, likewise."] = None,
    reveal: Annotated[str | None, "A reveal, likewise."] = None,
    surrogate: Annotated[str | None, "A surrogate, likewise."] = None,
    items: Annotated[int, "Length of the lists used by the checks."] = 5,
    settings: Annotated[
        list[str] | None, "Any option, such as ranker.horizon=100.", "--set", "OWNER.NAME=VALUE"
    ] = None,
    as_json: Json = False,
) -> None:
    """Check that a ranker, measure, world, reveal or surrogate satisfies its contract.

    All of the package's own classes pass these checks. Prints a line per check and exits with 1
    if one fails.

        keyhole check --ranker greedy.py:Greedy

        keyhole check --ranker rtopk --items 8 --set ranker.k=2
    """
    options = parse_options(settings or [], _OWNERS)
    check_integer(items, "--items", at_least=1, at_most=_LONGEST)
    named = {"ranker": ranker, "measure": measure, "world": world, "reveal": reveal}
    named["surrogate"] = surrogate
    if not any(named.values()):
        raise InvalidInput(
            f"One of {', '.join(f'--{owner}' for owner in named)} must name the class to check."
        )
    results = []
    for owner, name in named.items():
        if name is not None:
            for sentence, check in _CHECKS[owner](name, options[owner], items):
                results.append({"check": sentence, **_outcome(check)})
                if not as_json:
                    _print(results[-1])
    if as_json:
        print_json(results)
    if not all(result["holds"] for result in results):
        raise SystemExit(ExitCode.NO)


def _outcome(check: Callable[[], None]) -> dict[str, Any]:
    try:
        check()
    except AssertionError as error:
        return {"holds": False, "why": str(error)}
    return {"holds": True, "why": ""}


def _print(result: dict[str, Any]) -> None:
    word = "[green]PASS[/]" if result["holds"] else "[bold red]FAIL[/]"
    why = f": {result['why']}" if result["why"] else ""
    OUT.print(f"{word} {escape(result['check'] + why)}", soft_wrap=True, highlight=False)


def _sentence_of(check: Callable[..., None]) -> str:
    """Return the first sentence of a check's docstring, shortened."""
    first = (check.__doc__ or check.__name__).strip().splitlines()[0]
    return re.sub(r"^Check (that|one \w+:) ", "", first).rstrip(".")


def _lists(n_items: int) -> Queries:
    """Return random query-document lists of equal length."""
    numbers = np.random.default_rng(0)
    features = numbers.random((40 * n_items, _N_FEATURES))
    grades = (features[:, 0] > 0.5).astype(float)
    return Queries(features, grades, np.arange(0, 40 * n_items + 1, n_items))


def _of_ranker(name: str, options: dict[str, Any], n_items: int) -> Iterator[Check]:
    lists = issubclass(RANKERS.find(name), ContextualRanker)
    features = {"n_features": _N_FEATURES} if lists else {}
    made: Ranker = RANKERS.make(name, n_items=n_items, **features, **options)
    crowd: World = _lists(n_items) if lists else Flips(n_items, n_relevant=max(1, n_items // 3))
    of_its_kind = KEEPING_CHECKS if lists else LIVING_CHECKS
    for check in (*RANKER_CHECKS, *of_its_kind, *ATTACKS):
        yield _sentence_of(check), lambda check=check: check(made, crowd, _ROUNDS)  # type: ignore[misc]


def _of_measure(name: str, options: dict[str, Any], n_items: int) -> Iterator[Check]:
    made = named_measure(name, **options)
    yield _sentence_of(check_measure), lambda: check_measure(made, n_items)


def _of_world(name: str, options: dict[str, Any], n_items: int) -> Iterator[Check]:
    length = {"n_items": n_items} if "n_items" in all_settings(WORLDS.find(name)) else {}
    made = WORLDS.make(name, **{**length, **options})
    yield _sentence_of(check_world), lambda: check_world(made, _ROUNDS)


def _of_reveal(name: str, options: dict[str, Any], n_items: int) -> Iterator[Check]:
    made = REVEALS.make(name, **options)
    yield _sentence_of(check_reveal), lambda: check_reveal(made, n_items)


def _of_surrogate(name: str, options: dict[str, Any], n_items: int) -> Iterator[Check]:
    made = SURROGATES.make(name, **options)
    for check in SURROGATE_CHECKS:
        yield _sentence_of(check), lambda check=check: check(made, _LISTS)  # type: ignore[misc]


_CHECKS: dict[str, Callable[[str, dict[str, Any], int], Iterator[Check]]] = {
    "ranker": _of_ranker,
    "measure": _of_measure,
    "world": _of_world,
    "reveal": _of_reveal,
    "surrogate": _of_surrogate,
}
