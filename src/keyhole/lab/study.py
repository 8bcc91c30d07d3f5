"""Studies as data: a folder with study.toml (what to play) and expected.toml (what must hold)."""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import keyhole
from keyhole.errors import InvalidInput, check_choice
from keyhole.lab.kinds import KINDS, Kind, Spec

_TOP_FIELDS = ("kind", "title", "paper", "about", "curve", "line", "panel")
_PANEL_FIELDS = ("name", "title", "from", "log_x", "log_y")


@dataclass(frozen=True)
class CurveSpec:
    """One curve of a figure."""

    label: str
    panel: str
    spec: Spec


@dataclass(frozen=True)
class LineSpec:
    """One bound or closed form of a figure."""

    label: str
    panel: str
    kind: str
    options: dict[str, Any]


@dataclass(frozen=True)
class PanelSpec:
    """One set of axes of a figure."""

    name: str
    title: str
    first_x: int
    log_x: bool
    log_y: bool


@dataclass(frozen=True)
class Study:
    """What to play, how to draw it, and the claims to judge."""

    key: str
    kind: Kind
    title: str
    paper: str
    about: str
    curves: tuple[CurveSpec, ...]
    lines: tuple[LineSpec, ...]
    panels: tuple[PanelSpec, ...]
    claims: tuple[dict[str, Any], ...]

    def labels(self, panel: str) -> list[str]:
        """Return the labels of the curves of a panel."""
        return [curve.label for curve in self.curves if curve.panel == panel]


def papers_folder() -> Path:
    """Return the folder of the studies: inside an installed package, or of the project."""
    package = Path(keyhole.__file__).parent
    installed = package / "papers"
    return installed if installed.is_dir() else package.parent.parent / "papers"


def list_studies() -> dict[str, Study]:
    """Return all studies by key."""
    found = sorted(papers_folder().glob("*/study.toml"))
    return {path.parent.name: read_study(path.parent) for path in found}


def find_study(key: str) -> Study:
    """Return the study of a key, or raise with the nearest key."""
    folder = papers_folder()
    known = [path.parent.name for path in folder.glob("*/study.toml")]
    return read_study(folder / check_choice(key, "key of a paper", known))


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise InvalidInput(f"{path} must be a readable TOML file: {error}") from None


def read_study(folder: Path) -> Study:
    """Read a study from its folder."""
    content, where = _read(folder / "study.toml"), f"{folder.name}/study.toml"
    kind = check_choice(content.get("kind", "game"), f"kind of {where}", KINDS)
    for name in content:  # what curves share stands under the name of their kind
        check_choice(name, f"A field of {where}", (*_TOP_FIELDS, kind))
    panels = [_panel(entry, where) for entry in content.get("panel", [{}])]
    names = [panel.name for panel in panels]
    curves = []
    for entry in content["curve"]:
        own = dict(entry)
        label, panel = own.pop("label"), own.pop("panel", names[0])
        check_choice(panel, f"panel of curve {label!r} in {where}", names)
        fields = _merged(content.get(kind, {}), own)
        spec = KINDS[kind].read(fields, f"curve {label!r} in {where}")
        curves.append(CurveSpec(label, panel, spec))
    return Study(
        folder.name,
        KINDS[kind],
        content["title"],
        content["paper"],
        content["about"],
        tuple(curves),
        tuple(_line(entry, names) for entry in content.get("line", [])),
        tuple(panels),
        tuple(_read(folder / "expected.toml")["claim"]),
    )


def _merged(shared: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    """Return fields over shared ones; options are added to those that are shared."""
    fields = {**shared, **own}
    for name in fields:
        if name.endswith("_options"):
            fields[name] = {**shared.get(name, {}), **own.get(name, {})}
    return fields


def _line(entry: dict[str, Any], panels: list[str]) -> LineSpec:
    own = dict(entry)
    return LineSpec(own.pop("label"), own.pop("panel", panels[0]), own.pop("kind"), own)


def _panel(entry: dict[str, Any], where: str) -> PanelSpec:
    for name in entry:
        check_choice(name, f"A field of a panel in {where}", _PANEL_FIELDS)
    return PanelSpec(
        entry.get("name", "main"),
        entry.get("title", ""),
        entry.get("from", 1),
        entry.get("log_x", False),
        entry.get("log_y", False),
    )
