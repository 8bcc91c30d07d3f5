"""Names to things, things to specs and back.

Whatever a table of the package holds (rankers, measures, reveals, worlds, surrogates, policies)
is :class:`Configured`: it remembers the settings it was made with, shows the call that makes it
(:mod:`keyhole.base.display`), and gives a plain mapping, its ``spec``, of which an equal one is
made. A :class:`Table` makes it, of a name or of a spec; a name may also be that of an installed
package's entry point, or ``module:Class`` or ``file.py:Class`` for a class of a user's own.
"""

import copy
import importlib
import importlib.util
import inspect
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np

from keyhole.base import display
from keyhole.base.display import Description, short
from keyhole.base.errors import InvalidInput, check_choice, shown
from keyhole.base.lazy import named
from keyhole.base.version import __version__

T = TypeVar("T", bound="Configured")

_NOT_SETTINGS = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
_OF_A_GAME = ("n_items", "n_features", "cutoff", "seed", "run", "items")
"""Settings that a game gives, and nobody chooses."""


_ROW_NAMES: dict[str, str] = {}
"""The name of a row by where its class is, ``module:Class``."""

_may_import = ContextVar("may_import", default=True)


@contextmanager
def no_new_code() -> Iterator[None]:
    """Let no name import a module within: for names that come from a file of data."""
    before = _may_import.set(False)
    try:
        yield
    finally:
        _may_import.reset(before)


class Configured(display.Described):
    """Something made of settings, which it remembers."""

    shared_settings: ClassVar[Mapping[str, Any]] = {}
    """Settings, with their defaults, that a constructor passes on to its base class as ``**``."""
    settings: dict[str, Any]
    """Every setting by its name, those left at their defaults included."""

    def __new__(cls, /, *args: Any, **kwargs: Any) -> Self:
        """Note the settings, and refuse those that do not exist."""
        self = super().__new__(cls)
        defaults = all_settings(cls)
        for name in kwargs:
            check_choice(name, f"A setting of {cls.__name__}", defaults or ["(none)"])
        given = dict(zip(defaults, args, strict=False)) | kwargs
        self.settings = {
            name: _kept(given.get(name, default))
            for name, default in defaults.items()
            if name in given or default is not inspect.Parameter.empty
        }
        return self

    @property
    def spec(self) -> dict[str, Any]:
        """A plain mapping of name, version and every setting, of which an equal thing is made."""
        for name, value in self.described().items():
            if isinstance(value, _Foreign):
                raise InvalidInput(
                    f"`{name}` must be plain data, or made by name, to be kept, got {value}."
                )
        return self.described()

    def described(self) -> dict[str, Any]:
        """Return the spec, in which settings that are no plain data are only named."""
        settings = {name: _plain_setting(value) for name, value in self.settings.items()}
        return {"name": registered_name(type(self)), "version": __version__, **settings}

    @property
    def call(self) -> str:
        """The call that makes it, with the settings that differ from their defaults.

        What is long among them is only named.
        """
        defaults = all_settings(type(self))
        given = [
            f"{name}={_short_setting(value)}"
            for name, value in self.settings.items()
            if value is not defaults[name]
            and _short_setting(value) != _short_setting(defaults[name])
        ]
        return f"{type(self).__name__}({', '.join(given)})"

    def _described(self) -> Description:
        return Description(self.call)

    def fresh(self, **changed: Any) -> Self:
        """Return another one with the same settings, those named here excepted."""
        return type(self)(**{**self.settings, **changed})


def _kept(value: Any) -> Any:
    """Return a setting that its giver can no longer change; tables, often large, stay theirs."""
    is_short = isinstance(value, list | dict) or (isinstance(value, np.ndarray) and value.ndim == 1)
    return copy.copy(value) if is_short else value


def all_settings(cls: type) -> dict[str, Any]:
    """Return the settings that a class takes, with their defaults (empty if they must be given)."""
    parameters = _parameters(cls)
    own = {p.name: p.default for p in parameters if p.kind not in _NOT_SETTINGS}
    passes_on = any(p.kind is p.VAR_KEYWORD for p in parameters)
    return own | (dict(getattr(cls, "shared_settings", {})) if passes_on else {})


def _parameters(cls: type) -> tuple[inspect.Parameter, ...]:
    if cls.__init__ is object.__init__:  # type: ignore[misc]
        # Reading the signature of a builtin copies the table of all modules, and leaves the copy to
        # the garbage collector.
        return ()
    return _parameters_of(cls.__init__)  # type: ignore[misc]


@lru_cache(maxsize=512)
def _parameters_of(constructor: Callable[..., None]) -> tuple[inspect.Parameter, ...]:
    """Return what a constructor takes; a service makes ten thousand rankers of few kinds."""
    return tuple(inspect.signature(constructor).parameters.values())[1:]


def options_of(cls: type) -> dict[str, Any]:
    """Return the settings of a row of a table that are its own, with their defaults."""
    return {
        p.name: p.default
        for p in _parameters(cls)
        if p.kind not in _NOT_SETTINGS and p.name not in _OF_A_GAME
    }


def check_options(cls: type, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that a class has and their defaults, or name one that it has not."""
    known = options_of(cls)
    for name in options:
        check_choice(name, f"An option of {cls.__name__}", known or ["(none)"])
    return known


def _short_setting(value: Any) -> str:
    """Return a setting as it stands in a call."""
    return value.call if isinstance(value, Configured) else short(value)


class _Foreign(str):
    """How a setting shows itself that is no plain data."""


def _plain_setting(value: Any) -> Any:
    """Return a setting as JSON can hold it."""
    if isinstance(value, Configured):
        return value.described()
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_plain_setting(each) for each in value]
    if isinstance(value, Mapping):
        return {str(name): _plain_setting(each) for name, each in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # JSON has no infinities; float() reads the word
    return value if isinstance(value, str | int | float | None) else _Foreign(repr(value))


def registered_name(cls: type) -> str:
    """Return the name under which a class is found: its row's, or ``module:Class``."""
    where = f"{cls.__module__}:{cls.__qualname__}"
    return _ROW_NAMES.get(where, where)


class Table(display.Described, Mapping[str, type[T]], Generic[T]):
    """The rows of one kind by name, and how any of them is made.

    Parameters
    ----------
    noun
        What a row is, for errors; installed packages add rows as entry points of the group
        ``keyhole.`` and the plural of it.
    base
        The class that every row must be a subclass of.
    rows
        The package's own rows: the class of each as ``module:Class``, imported when it is used.
    """

    def __init__(self, noun: str, base: Any, rows: Mapping[str, str]) -> None:
        self.noun, self.base, self._rows = noun, base, dict(rows)
        _ROW_NAMES.update({where: name for name, where in self._rows.items()})

    def _described(self) -> Description:
        names, per_line = list(self._rows), 8
        lines = [", ".join(names[i : i + per_line]) for i in range(0, len(names), per_line)]
        rows = [("names" if not number else "", line) for number, line in enumerate(lines)]
        return Description(f"Table of {len(names)} {self._plural}", rows)

    def __getitem__(self, name: str) -> type[T]:
        row: type[T] = named(self._rows[name])
        return row

    def __contains__(self, name: object) -> bool:
        return name in self._rows

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def find(self, name: str) -> type[T]:
        """Return a class by its name, or raise with the nearest one."""
        if name in self._rows:
            return self[name]
        found: Any = self._imported(name) if ":" in str(name) else self._installed(name)
        if not (isinstance(found, type) and issubclass(found, self.base)):
            raise InvalidInput(
                f"{self.noun} {shown(name)} must be a subclass of {self.base.__name__}, got "
                f"{shown(found)}."
            )
        return found

    def make(self, given: str | Mapping[str, Any] | T, /, **settings: Any) -> T:
        """Return what a name and settings, or a spec, describe; one that is made already as it is.

        Settings named besides a spec replace those in it.
        """
        if isinstance(given, self.base):
            if settings:
                raise InvalidInput(
                    f"Settings go with the name of a {self.noun}, not with one that is made."
                )
            return given
        name, of_spec = self.read(given)
        cls, settings = self.find(name), {**of_spec, **settings}
        for needed, default in all_settings(cls).items():
            if default is inspect.Parameter.empty and needed not in settings:
                raise InvalidInput(f"{self.noun} {shown(name)} must be given `{needed}`.")
        return cls(**settings)

    def read(self, given: str | Mapping[str, Any] | Any) -> tuple[str, dict[str, Any]]:
        """Return the name and the settings that a name or a spec holds, or raise."""
        if isinstance(given, str):
            return given, {}
        if isinstance(given, type) and issubclass(given, self.base):
            raise InvalidInput(
                f"{self.noun} must be made before it is used: {given.__name__}(...), got the class."
            )
        if not isinstance(given, Mapping) or not isinstance(given.get("name"), str):
            raise InvalidInput(
                f"{self.noun} must be a name, a spec with a name in it, or a "
                f"{self.base.__name__}, got {shown(given)}."
            )
        settings = dict(given)
        version = str(settings.pop("version", __version__))
        if _release(version) > _release(__version__):
            raise InvalidInput(
                f"{self.noun} {shown(given['name'])} was written by version {version[:40]}, which "
                f"is newer than this one, {__version__}."
            )
        return settings.pop("name"), settings

    def installed(self) -> dict[str, type[T]]:
        """Return what installed packages add to the rows, by name."""
        return {point.name: self._loaded(point) for point in self._entry_points()}

    @property
    def _plural(self) -> str:
        return f"{self.noun[:-1]}ies" if self.noun.endswith("y") else f"{self.noun}s"

    def _entry_points(self) -> Iterable[Any]:
        return entry_points(group=f"keyhole.{self._plural}")

    def _installed(self, name: str) -> Any:
        added = {point.name: point for point in self._entry_points()}
        check_choice(name, self.noun, [*self._rows, *added])
        return self._loaded(added[name])

    def _loaded(self, point: Any) -> Any:
        try:
            return point.load()
        except (Exception, SystemExit) as error:  # whatever another package's code may raise
            raise self._not_imported(point.name, error) from error

    def _not_imported(self, name: str, error: BaseException) -> InvalidInput:
        why = str(error) if isinstance(error, ImportError | OSError) else repr(error)
        return InvalidInput(f"{self.noun} {shown(name)} cannot be imported: {why}.")

    def _imported(self, name: str) -> Any:
        where, _, attribute = name.rpartition(":")
        if not _may_import.get() and where not in sys.modules:
            raise InvalidInput(
                f"{self.noun} {shown(name)} is code of somebody's own, which no file of data may "
                f"run: import it before, or say that the file is trusted."
            )
        try:
            load = _file_module if where.endswith(".py") else importlib.import_module
            module = load(where)
        except (Exception, SystemExit) as error:  # whatever the code of a user's own may raise
            raise self._not_imported(name, error) from error
        if not hasattr(module, attribute):
            raise InvalidInput(f"{self.noun} {shown(name)}: there is no {attribute} in {where}.")
        return getattr(module, attribute)


def _release(version: str) -> list[int]:
    return [int(part) for part in version[:40].split(".") if part.isdecimal()]


def _file_module(path: str) -> ModuleType:
    """Return the module of a file, which bears the file's path as its name."""
    if path in sys.modules:
        return sys.modules[path]
    spec = importlib.util.spec_from_file_location(path, Path(path))
    if spec is None or spec.loader is None or not Path(path).is_file():
        raise FileNotFoundError(f"there is no file {path}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[path]
        raise
    return module
