"""Changes to a whole ranker: merging requests with its configuration, and their events."""

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec

from keyhole.base.errors import InvalidInput, shown
from keyhole.base.version import __version__
from keyhole.service.commands import (
    Configure,
    Delete,
    ItemsEdit,
    ItemsRequest,
    MeasureVerdict,
    RankerChange,
    RankerReply,
    RankerRequest,
    Rename,
    Reset,
    Revision,
)
from keyhole.service.configuration import changed_config, check_learnable, config_of
from keyhole.service.errors import ConflictingRequest, StaleVersion
from keyhole.service.events import Config, Deleted, Rebased
from keyhole.service.ranker_state import LiveRanker

if TYPE_CHECKING:
    from keyhole.service.group_commit import Desk

_SETTINGS = tuple(name for name in RankerChange.__struct_fields__ if name != "items")
"""Fields that a PUT may not omit silently: that would reset them to their defaults."""


# ------------------------------------------------------------------- requests


def request_of(live: LiveRanker) -> RankerRequest:
    """Return the current configuration of a ranker as a request."""
    return msgspec.convert(live.config.request, RankerRequest)


def revised(request: RankerRequest, revision: Revision) -> RankerRequest:
    """Return a request with the fields of a revision replaced, or raise."""
    match revision:
        case RankerChange():
            given = {name: getattr(revision, name) for name in RankerChange.__struct_fields__}
            named = {name: value for name, value in given.items() if value is not msgspec.UNSET}
            return msgspec.structs.replace(request, **named)
        case ItemsRequest():
            return msgspec.structs.replace(request, items=revision.items)
        case ItemsEdit():
            return msgspec.structs.replace(request, items=_edited(request.items, revision))


def _edited(items: list[str] | None, edit: ItemsEdit) -> list[str]:
    if items is None:
        raise ConflictingRequest(
            "This ranker has no fixed list: each request brings its own documents."
        )
    both = sorted({*edit.add} & {*edit.remove})
    if both:
        raise InvalidInput(f"`add` and `remove` must not name the same item, got {shown(both[0])}.")
    removed = set(edit.remove)
    kept = [name for name in items if name not in removed]
    return list(dict.fromkeys([*kept, *edit.add]))


async def revise(
    desk: "Desk", ranker: str, revision: Revision, if_match: int | None, by: str | None
) -> RankerReply:
    """Apply a revision to the current configuration, retrying if someone else changes it."""
    while True:
        live = desk.engine.ranker(ranker)
        version = live.version if if_match is None else if_match
        command = Configure(ranker, revised(request_of(live), revision), version, by=by)
        with suppress(*([] if if_match is not None else [StaleVersion])):
            reply: RankerReply = await desk.submit(command)
            return reply


# ------------------------------------------------------------------- events


def check_version(live: LiveRanker | None, command: Configure | Reset | Rename | Delete) -> None:
    """Raise unless ``if_match`` is the current version of the ranker."""
    if command.if_match is not None and (live is None or live.version != command.if_match):
        have = "it does not exist" if live is None else f"it is {live.version}"
        raise StaleVersion(
            f"The version of ranker {command.ranker!r} must be {command.if_match}, but {have}: "
            f"read it again."
        )


def configured(
    live: LiveRanker | None, command: Configure, secret: bytes, *, fresh: bool
) -> Config | None:
    """Return the config of a command, None if nothing changes, or raise.

    ``fresh``: the log already has a deleted ranker of this name.
    """
    check_version(live, command)
    if live is not None:
        _check_left_out(live, command)
    judged = command.judged or MeasureVerdict(check_learnable(command.request))
    if live is None:
        check_name(command.ranker)
        config = config_of(command.request, command.ranker, secret)
        return msgspec.structs.replace(config, verdict=judged.verdict, fresh=fresh, by=command.by)
    config = changed_config(live.config, command.request)
    config = msgspec.structs.replace(config, verdict=judged.verdict, by=command.by)
    if msgspec.structs.replace(config, by=live.config.by, fresh=live.config.fresh) == live.config:
        return None
    if config.catalogue not in (None, live.config.catalogue):
        live.learner.with_items(config.catalogue or ())  # raises now instead of on replay
    return config


def check_name(name: str) -> None:
    """Raise if the name is not allowed for a new ranker."""
    if name.endswith(".json"):
        raise InvalidInput(
            f"The name of a ranker must not end in .json, as dashboard data does, got {name!r}."
        )


def _check_left_out(live: LiveRanker, command: Configure) -> None:
    """Raise if a PUT would reset a field that it omits."""
    present, request = request_of(live), command.request
    lost: dict[str, Any] = {
        name: getattr(present, name)
        for name in _SETTINGS
        if name in command.left_out and getattr(present, name) != getattr(request, name)
    }
    if lost:
        told = " and ".join(
            f"`{name}`, which is {msgspec.json.encode(value).decode()}"
            for name, value in lost.items()
        )
        raise ConflictingRequest(
            f"A PUT of ranker {live.name!r} must include {told}: omitted fields are reset to their "
            f"defaults. PATCH changes only the fields that it names."
        )


def restarted(live: LiveRanker, command: Reset, secret: bytes) -> Config:
    """Return the config event of a reset: same settings, new state."""
    config = config_of(request_of(live), live.name, secret)
    verdict = live.config.verdict
    return msgspec.structs.replace(config, verdict=verdict, fresh=True, by=command.by)


def moved(live: LiveRanker, command: Rename, n_before: int) -> tuple[Config, Rebased]:
    """Return the first events of a renamed ranker: its config and its state.

    ``n_before``: the number of events under the new name, from rankers deleted before.
    """
    check_name(command.to)
    config = msgspec.structs.replace(
        live.config, spec=live.present_spec, fresh=n_before > 0, by=command.by
    )
    return config, Rebased(live.kept_elsewhere(n_before + 1, n_before), __version__)


def deleted_sentence(name: str, gone: Deleted) -> str:
    """Return the error message for a deleted ranker."""
    if gone.to is None:
        return f"There is no ranker {shown(name)}: it was deleted."
    return f"There is no ranker {shown(name)}: it was renamed to {shown(gone.to)}."
