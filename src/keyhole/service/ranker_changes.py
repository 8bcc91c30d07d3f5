"""Changes of whole rankers: what is asked of one that is there, and what its log says of it."""

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
    Judged,
    RankerChange,
    RankerReply,
    RankerRequest,
    Rename,
    Reset,
    Revision,
)
from keyhole.service.configuration import changed_config, check_learnable, config_of
from keyhole.service.errors import Conflict, StaleVersion
from keyhole.service.events import Config, Deleted, Rebased
from keyhole.service.ranker_state import LiveRanker

if TYPE_CHECKING:
    from keyhole.service.group_commit import Desk

_SETTINGS = tuple(name for name in RankerChange.__struct_fields__ if name != "items")
"""What a change may leave out, and would then set back to its default."""


# ------------------------------------------------------------------- what is asked for


def request_of(live: LiveRanker) -> RankerRequest:
    """Return what the owner of a ranker has asked for, all changes included."""
    return msgspec.convert(live.config.request, RankerRequest)


def revised(request: RankerRequest, revision: Revision) -> RankerRequest:
    """Return a request with what a revision names, and the rest as it was; or raise."""
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
        raise Conflict("Where lists come with the requests, a ranker has no items of its own.")
    both = sorted({*edit.add} & {*edit.remove})
    if both:
        raise InvalidInput(f"`add` and `remove` must not name the same item, got {shown(both[0])}.")
    removed = set(edit.remove)
    kept = [name for name in items if name not in removed]
    return list(dict.fromkeys([*kept, *edit.add]))


async def revise(
    desk: "Desk", ranker: str, revision: Revision, if_match: int | None, by: str | None
) -> RankerReply:
    """Change what a revision names of a ranker as it is now, whoever else changes it meanwhile."""
    while True:
        live = desk.engine.ranker(ranker)
        version = live.version if if_match is None else if_match
        command = Configure(ranker, revised(request_of(live), revision), version, by=by)
        with suppress(*([] if if_match is not None else [StaleVersion])):
            reply: RankerReply = await desk.submit(command)
            return reply


# ------------------------------------------------------------------- what the log says


def check_version(live: LiveRanker | None, command: Configure | Reset | Rename | Delete) -> None:
    """Raise unless a ranker is as its caller has read it."""
    if command.if_match is not None and (live is None or live.version != command.if_match):
        have = "it does not exist" if live is None else f"it is {live.version}"
        raise StaleVersion(
            f"The version of ranker {command.ranker!r} must be {command.if_match}, but {have}: "
            f"read it again."
        )


def configured(
    live: LiveRanker | None, command: Configure, secret: bytes, *, fresh: bool
) -> Config | None:
    """Return the config that a command leads to, None where it changes nothing, or raise.

    ``fresh`` says that the log already has another ranker of this name, which was deleted.
    """
    check_version(live, command)
    if live is not None:
        _check_left_out(live, command)
    judged = command.judged or Judged(check_learnable(command.request))
    if live is None:
        check_name(command.ranker)
        config = config_of(command.request, command.ranker, secret)
        return msgspec.structs.replace(config, verdict=judged.verdict, fresh=fresh, by=command.by)
    config = changed_config(live.config, command.request)
    config = msgspec.structs.replace(config, verdict=judged.verdict, by=command.by)
    if msgspec.structs.replace(config, by=live.config.by, fresh=live.config.fresh) == live.config:
        return None
    if config.catalogue not in (None, live.config.catalogue):
        live.learner.with_items(config.catalogue or ())  # refuses what cannot be, now
    return config


def check_name(name: str) -> None:
    """Raise where a new ranker must not be called this."""
    if name.endswith(".json"):
        raise InvalidInput(
            f"The name of a ranker must not end in .json, as its page's data does, got {name!r}."
        )


def _check_left_out(live: LiveRanker, command: Configure) -> None:
    """Raise where a request would set back what it does not name: nobody has asked for that."""
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
        raise Conflict(
            f"A PUT of ranker {live.name!r} must name {told}: it would fall back to its default. "
            f"Name what it is to be, or PATCH what is to change."
        )


def restarted(live: LiveRanker, command: Reset, secret: bytes) -> Config:
    """Return the config with which a ranker begins anew: what is asked for stays."""
    config = config_of(request_of(live), live.name, secret)
    verdict = live.config.verdict
    return msgspec.structs.replace(config, verdict=verdict, fresh=True, by=command.by)


def moved(live: LiveRanker, command: Rename, n_before: int) -> tuple[Config, Rebased]:
    """Return the first events of the ranker that goes on from the state of another one.

    ``n_before`` are the events in the log of its name: those of rankers that were deleted.
    """
    check_name(command.to)
    config = msgspec.structs.replace(
        live.config, spec=live.present_spec, fresh=n_before > 0, by=command.by
    )
    return config, Rebased(live.kept_elsewhere(n_before + 1, n_before), __version__)


def deleted_sentence(name: str, gone: Deleted) -> str:
    """Return what is said of a ranker that is no more."""
    if gone.to is None:
        return f"There is no ranker {shown(name)}: it was deleted."
    return f"There is no ranker {shown(name)}: it was renamed to {shown(gone.to)}."
