"""From what the owner of a ranker asks for to a ranker of the library, and whether it can learn."""

import hashlib
import hmac
from typing import Any

import msgspec

from keyhole.base.errors import InvalidInput, check_choice, shown
from keyhole.contracts.measures import Measure
from keyhole.contracts.rankers import Ranker
from keyhole.contracts.registry import all_settings, no_new_code
from keyhole.experiment.fitting import can_be_tuned_for, check_kind, settings_for
from keyhole.measures import measure as named_measure
from keyhole.monitoring.classification import classify
from keyhole.rankers import RANKERS, ranker
from keyhole.service.commands import RankerRequest
from keyhole.service.errors import ConflictingRequest, NotLearnable
from keyhole.service.events import Config

_DEFAULT_FOR_LISTS, _DEFAULT_FOR_QUERIES = "keystone", "recall"
_GIVEN_BY_THE_REQUEST = ("n_items", "items", "n_features", "k", "measure", "max_grade", "seed")
"""Settings of rankers that have a field of their own in the request."""
_MAY_CHANGE = (
    "items",
    "mode",
    "wait_seconds",
    "missing",
    "apprentice_share",
    "simulation",
    "accept_linear_regret",
)
_ENOUGH_GRADES = 2
_DEEPEST = 8
_MOST_VALUES = 10_000
_LONGEST_TEXT = 1_000


def config_of(request: RankerRequest, name: str, secret: bytes) -> Config:
    """Return the config of a new ranker, or raise; the oracle has its say elsewhere."""
    measure = named_measure(request.measure)
    learner = _learner_of(request, measure, _seed_of(request, name, secret))
    if request.items is not None and request.k > len(request.items):
        raise InvalidInput(
            f"`k` must be at most the number of items, {len(request.items)}, got {request.k}."
        )
    needed = min(learner.depth, learner.n_items)
    if needed > request.k:  # feedback that it cannot learn from would be in the log for good
        raise InvalidInput(
            f"`k` must be at least {needed}, for {learner.spec['name']} learns from the relevance "
            f"of the first {needed} items of a list, got {request.k}."
        )
    return _config(request, learner.spec, measure)


def changed_config(before: Config, request: RankerRequest) -> Config:
    """Return the config of a ranker that its owner has changed, or raise.

    Items come and go, and so do modes and waits. What decides what is learnt stays: another
    algorithm or another measure is another ranker.
    """
    asked, had = msgspec.to_builtins(request), before.request
    if "seed" not in asked:
        had = {field: value for field, value in had.items() if field != "seed"}
    for field in sorted({*asked, *had} - {*_MAY_CHANGE}):
        if asked.get(field) != had.get(field):
            raise ConflictingRequest(
                f"`{field}` of a ranker cannot change once it learns, from "
                f"{shown(had.get(field))} to {shown(asked.get(field))}: create another ranker."
            )
    if (request.items is None) != (before.catalogue is None):
        raise ConflictingRequest("A ranker of a fixed list stays one: create another ranker.")
    if request.items is not None and len(request.items) < request.k:
        raise InvalidInput(f"`items` must be at least k={request.k}, got {len(request.items)}.")
    kept = {**asked, **({"seed": before.request["seed"]} if "seed" in before.request else {})}
    changed = _config(request, before.spec, named_measure(request.measure))
    return msgspec.structs.replace(changed, request=kept, verdict=before.verdict)


def learner_of(config: Config) -> Ranker:
    """Return the ranker of the library that a config describes, fresh."""
    with no_new_code():
        return ranker(config.spec)


def has_id_column(learner: Ranker) -> bool:
    """Return whether a ranker knows documents by a number of their own, its last feature."""
    return learner.settings.get("id_column") is not None


def check_learnable(request: RankerRequest) -> dict[str, Any] | None:
    """Return the oracle's verdict where a measure cannot be learnt and that is accepted, or None.

    Raises :class:`NotLearnable` where it is not accepted.
    """
    n_items = request.max_items if request.items is None else len(request.items)
    k, grades = min(request.k, n_items), max(int(request.max_grade) + 1, _ENOUGH_GRADES)
    answer = classify(request.measure, n_items, k, grades, method="rule")
    if answer.class_ == "unknown":  # to enumerate the game takes compiled code
        answer = classify(request.measure, n_items, k, grades)
    if answer.class_ != "hopeless":
        return None
    verdict = answer.as_dict()
    if request.accept_linear_regret:
        return verdict
    raise NotLearnable(
        f"{answer.measure} of {n_items} items cannot be learnt from the relevance of the top {k}: "
        f"{answer.reason} accept_linear_regret creates the ranker anyway.",
        {**verdict, "certificate": answer.certificate()},
    )


def _config(request: RankerRequest, spec: dict[str, Any], measure: Measure) -> Config:
    if request.missing is not None and request.missing > request.max_grade:
        raise InvalidInput(
            f"`missing` must be at most max_grade={request.max_grade:g}, got {request.missing:g}."
        )
    return Config(
        spec=spec,
        request=msgspec.to_builtins(request),
        catalogue=None if request.items is None else tuple(request.items),
        measure=measure.label,
        k=request.k,
        mode=request.mode,
        wait_seconds=request.wait_seconds,
        missing=request.missing,
        apprentice_share=request.apprentice_share,
        simulation=request.simulation,
    )


def _learner_of(request: RankerRequest, measure: Measure, seed: int) -> Ranker:
    is_fixed = request.items is not None
    if is_fixed == (request.n_features is not None):
        raise InvalidInput(
            "A ranker must be given either `items`, the names of a fixed list, or `n_features`, "
            f"where lists come with the requests, got {'both' if is_fixed else 'neither'}."
        )
    default = _DEFAULT_FOR_LISTS if is_fixed else _DEFAULT_FOR_QUERIES
    name = default if request.ranker is None else request.ranker
    cls = RANKERS[check_choice(name, "ranker", RANKERS)]
    check_kind(name, cls, queries=not is_fixed)
    for setting in request.settings:
        if setting in _GIVEN_BY_THE_REQUEST:
            raise InvalidInput(f"`{setting}` belongs beside `settings`, not in them.")
    nearest = request.accept_linear_regret and not can_be_tuned_for(cls, measure, request.max_grade)
    told: dict[str, Any] = {
        "k": request.k,
        "measure": "DCG" if nearest else request.measure,
        "max_grade": request.max_grade,
        "seed": seed,
    }
    if is_fixed:
        told["items"] = request.items
    else:
        told |= {"n_features": request.n_features, "n_items": request.max_items}
        if "id_column" in all_settings(cls) and "id_column" not in request.settings:
            # The service appends a number that stands for the id of a document.
            told["id_column"] = request.n_features
            told["n_features"] = (request.n_features or 0) + 1
    with no_new_code():
        return ranker(name, **settings_for(cls, told, request.settings))


def _seed_of(request: RankerRequest, name: str, secret: bytes) -> int:
    if request.seed is not None:
        return request.seed
    digest = hmac.digest(secret, b"seed of " + name.encode(), hashlib.sha256)
    return int.from_bytes(digest[:7], "little")


def check_settings(settings: dict[str, Any]) -> None:
    """Raise unless settings are a few plain values: they are shown in sentences and pages."""
    waiting: list[tuple[Any, int]] = [(settings, 0)]
    for count, (value, depth) in enumerate(_walk(waiting)):
        if depth > _DEEPEST or count > _MOST_VALUES:
            raise InvalidInput(
                f"`settings` must hold at most {_MOST_VALUES} values, nested {_DEEPEST} deep, got "
                "more."
            )
        if isinstance(value, str) and len(value) > _LONGEST_TEXT:
            raise InvalidInput(
                f"`settings` must hold texts of at most {_LONGEST_TEXT} characters, got "
                f"{len(value)}."
            )


def _walk(waiting: list[tuple[Any, int]]) -> Any:
    """Yield every value and how deep it lies."""
    while waiting:
        value, depth = waiting.pop()
        yield value, depth
        if isinstance(value, dict):
            waiting += [(part, depth + 1) for pair in value.items() for part in pair]
        elif isinstance(value, list):
            waiting += [(part, depth + 1) for part in value]
