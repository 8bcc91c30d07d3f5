"""Generates the options of commands from dataclass fields and annotations.

:func:`command` turns a function into a command. A parameter of the function is one of

- a dataclass: each of its fields with a help text is an option, and the function gets the object;
- ``Annotated[int, "Help text."]``: an option; after the help may follow its metavar and names that
  differ from the parameter's, such as ``"--set"``;
- anything else, which is passed to Typer.
"""

import dataclasses
import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import MISSING, Field, is_dataclass
from functools import reduce, wraps
from operator import or_
from types import MappingProxyType, UnionType
from typing import Annotated, Any, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

import typer
from typer.models import ArgumentInfo, OptionInfo

from keyhole.base.described import default_of
from keyhole.cli.exit_codes import INTERRUPTED, needing, one_sentence

Command = TypeVar("Command", bound=Callable[..., None])
Convert = Callable[[Any], Any]


class _Option(NamedTuple):
    """An option: its Typer parameter, its name in errors, and the conversion to a field."""

    parameter: inspect.Parameter
    called: str
    convert: Convert


class Changes(dict[str, Any]):
    """Overrides of fields for one command; None: the field is no option."""


def but(**changes: Any) -> Changes:
    """Override fields for one command: ``Annotated[Game, but(seed=None)]``.

    None removes an option; other values come from :func:`~keyhole.base.described.described`.
    """
    return Changes(changes)


def command(
    interrupted: str = INTERRUPTED,
    called: Mapping[str, str] = MappingProxyType({}),
    *,
    of_service: bool = False,
) -> Callable[[Command], Command]:
    """Turn a function into a command with generated options and one-sentence errors.

    A function exits with a code other than 0 by ``raise SystemExit``. ``interrupted`` is printed
    on Ctrl-C; ``called`` maps names in error messages to options; ``of_service`` allows it to
    import the service, whose libraries may be missing.
    """

    def decorate(function: Command) -> Command:
        parameters = inspect.signature(function, eval_str=True).parameters
        taken = {name: list(_options(each, parameters)) for name, each in parameters.items()}
        every = [each for options in taken.values() for each in options]
        names = {each.parameter.name: each.called for each in every} | dict(called)

        @wraps(function)
        def run(**given: Any) -> None:
            service = needing("The service", "service") if of_service else nullcontext()
            with one_sentence(interrupted, names), service:
                for name, parameter in parameters.items():
                    kind = _kind(parameter)
                    if is_dataclass(kind):
                        found = {each.parameter.name: each.convert for each in taken[name]}
                        fields = {each: made(given.pop(each)) for each, made in found.items()}
                        given[name] = kind(**fields)  # type: ignore[operator]
                function(**given)

        signature = inspect.Signature([each.parameter for each in every])
        run.__signature__ = signature  # type: ignore[attr-defined]
        run.__annotations__ = {name: each.annotation for name, each in signature.parameters.items()}
        return run  # type: ignore[return-value]

    return decorate


def _kind(parameter: inspect.Parameter) -> Any:
    """Return the type of a parameter without its annotations."""
    kind = parameter.annotation
    return get_args(kind)[0] if get_origin(kind) is Annotated else kind


def _options(parameter: inspect.Parameter, own: Mapping[str, Any]) -> Iterator[_Option]:
    """Yield the options of a parameter, except fields that the command itself defines."""
    kind: Any = _kind(parameter)
    about: Any = next(iter(getattr(parameter.annotation, "__metadata__", ())), None)
    if is_dataclass(kind):
        changes: Mapping[str, Any] = about if isinstance(about, Changes) else {}
        types = get_type_hints(kind)
        for field in dataclasses.fields(kind):
            one: Field[Any] | None = changes.get(field.name, field)
            if one is not None and one.metadata.get("help") and field.name not in own:
                yield _of_field(field.name, types[field.name], one)
    elif isinstance(about, str):
        more = parameter.annotation.__metadata__[1:]
        names = tuple(each for each in more if each.startswith("--"))
        metavar = next((each for each in more if each not in names), None)
        yield _option(parameter.name, kind, parameter.default, about, names, metavar)
    else:
        called = _dashed(parameter.name)
        if isinstance(about, OptionInfo) and isinstance(about.default, str):
            called = about.default  # the first of its names
        elif isinstance(about, ArgumentInfo):
            called = about.metavar or parameter.name.upper()
        yield _Option(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY), called, _as_it_is)


def _of_field(name: str, kind: Any, field: "Field[Any]") -> _Option:
    """Return the option of a field."""
    about, default = field.metadata, default_of(field)
    taken = about.get("type") or _without_tuples(kind)
    is_tuple = taken != kind and about.get("type") is None
    names = tuple(about["option"].split("/")) if about.get("option") else ()
    if default is MISSING:
        default = inspect.Parameter.empty
    elif is_tuple and default is not None:
        default = list(default)
    made = _option(name, taken, default, about["help"], names, about.get("metavar"))
    return made._replace(convert=_as_tuple) if is_tuple else made


def _option(
    name: str,
    kind: Any,
    default: Any,
    help: str,
    names: tuple[str, ...] = (),
    metavar: str | None = None,
) -> _Option:
    """Return an option; flags have no ``--no-`` form."""
    if not names and kind in (bool, bool | None):
        names = (_dashed(name),)
    about = Annotated[kind, typer.Option(*names, help=help, metavar=metavar)]
    keyword = inspect.Parameter.KEYWORD_ONLY
    parameter = inspect.Parameter(name, keyword, default=default, annotation=about)
    return _Option(parameter, names[0] if names else _dashed(name), _as_it_is)


def _dashed(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _without_tuples(kind: Any) -> Any:
    """Return Typer's type for a field: a list instead of a tuple of any length.

    Examples
    --------
    >>> _without_tuples(tuple[str, ...] | None)
    list[str] | None
    """
    if isinstance(kind, UnionType):
        return reduce(or_, map(_without_tuples, get_args(kind)))
    if get_origin(kind) is tuple and get_args(kind)[-1] is Ellipsis:
        return list[get_args(kind)[0]]  # type: ignore[misc]
    return kind


def _as_it_is(given: Any) -> Any:
    return given


def _as_tuple(given: Any) -> Any:
    return None if given is None else tuple(given)
