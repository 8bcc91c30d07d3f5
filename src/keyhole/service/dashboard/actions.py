"""Changes from the dashboard: create, freeze and promote rankers, each after confirmation."""

from typing import Any
from urllib.parse import parse_qs

import msgspec
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from keyhole.base.errors import InvalidInput, check_choice
from keyhole.service.commands import Configure, Name, RankerChange, RankerRequest
from keyhole.service.dashboard.pages import html, root_of
from keyhole.service.dashboard.ranker_page import MODES, acts_of
from keyhole.service.dashboard.views import Dashboard, may_act, page_of_errors
from keyhole.service.errors import ConflictingRequest, NoSuchResource, ScopeMissing
from keyhole.service.events import Mode
from keyhole.service.ranker_changes import revise

_MOST_FIELDS = 16
_LONGEST_NUMBER = 19
_BLANK = {
    "name": "",
    "items": "",
    "k": "1",
    "measure": "DCG",
    "max_grade": "1",
    "mode": "online",
    "wait_seconds": "600",
}
_MEANS = {
    "online": "From the next request on it shows its own lists and learns from their feedback.",
    "frozen": "From the next request on it shows its current best list and does not learn.",
}


class ActingDashboard(Dashboard):
    """The pages, including forms that change rankers."""

    @page_of_errors
    async def change(self, request: Request) -> Response:
        """Show the confirmation of a mode change, and change the mode once it is confirmed."""
        live, _ = self._live(request, request.path_params["ranker"])
        _check_may(request)
        is_sent = request.method == "POST"
        given = _fields(await request.body()) if is_sent else dict(request.query_params)
        names = dict(acts_of(live.config.mode))
        after: Any = check_choice(given.get("to", ""), "The mode to change to", names)
        root = root_of(request)
        if is_sent:
            version = given.get("version", "")
            if not (version.isascii() and version.isdigit() and len(version) < _LONGEST_NUMBER):
                raise InvalidInput("A form must have the version of its page, got none.")
            mode: Mode = after
            who = _who(request)
            await revise(self.desk, live.name, RankerChange(mode=mode), int(version), who)
            return RedirectResponse(f"{root}/rankers/{live.name}", 303)
        data = {
            "name": live.name,
            "here": "overview",
            "called": names[after],
            "before": live.config.mode,
            "after": after,
            "means": _MEANS[after],
            "version": live.version,
        }
        return html(request, "change.html", data)

    @page_of_errors
    async def new(self, request: Request) -> Response:
        """Show the form for a new ranker, then a summary, and create it once that is confirmed."""
        _check_may(request)
        form, error, asked = dict(_BLANK), None, None
        if request.method == "POST":
            given = _fields(await request.body())
            form |= {name: given[name] for name in _BLANK if name in given}
            try:
                name, asked = _asked(form)
                self._check_free(request, name)
                if given.get("confirmed") == "yes":
                    await self.desk.submit(Configure(name, asked, if_match=None, by=_who(request)))
                    return RedirectResponse(f"{root_of(request)}/rankers/{name}", 303)
            except (InvalidInput, ConflictingRequest) as wrong:
                error, asked = str(wrong), None
        data = {
            "form": form,
            "error": error,
            "asked": asked,
            "modes": [(mode, MODES[mode]) for mode in ("online", "apprentice")],
        }
        return html(request, "new.html", data, status=200 if error is None else 422)

    def _check_free(self, request: Request, name: str) -> None:
        access = getattr(request.state, "access", None)
        if access is not None and not access.sees(name):
            raise NoSuchResource(f"There is no ranker {name!r}, or this key may not see it.")
        if name in self.desk.engine.rankers:
            raise ConflictingRequest(f"A ranker {name!r} exists already: choose another name.")


def _asked(form: dict[str, str]) -> tuple[str, RankerRequest]:
    """Return the name and the request of a form, or raise."""
    fields: dict[str, Any] = {field: text.strip() for field, text in form.items()}
    name = fields.pop("name")
    fields["items"] = [line.strip() for line in form["items"].splitlines() if line.strip()]
    try:
        name = msgspec.convert(name, Name)
    except msgspec.ValidationError:
        raise InvalidInput(
            "The name must be 1 to 64 letters, digits, dots, hyphens and underscores, a letter or "
            "a digit first."
        ) from None
    try:
        return name, msgspec.convert(fields, RankerRequest, strict=False)
    except msgspec.ValidationError as error:
        said, _, place = str(error).partition(" - at `$.")
        raise InvalidInput(f"The field {place.rstrip('`') or 'form'} is invalid: {said}.") from None


def _fields(body: bytes) -> dict[str, str]:
    try:
        pairs = parse_qs(
            body.decode(), keep_blank_values=True, errors="strict", max_num_fields=_MOST_FIELDS
        )
    except ValueError:  # includes UnicodeDecodeError
        raise InvalidInput("A form must be NAME=VALUE pairs in UTF-8.") from None
    return {name: values[0] for name, values in pairs.items()}


def _check_may(request: Request) -> None:
    if not may_act(request):
        raise ScopeMissing("A key must have the scope admin to change rankers.")


def _who(request: Request) -> str | None:
    access = getattr(request.state, "access", None)
    return None if access is None else access.who
