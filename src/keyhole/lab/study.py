"""Studies as data: a folder with study.toml (what to play) and expected.toml (what must hold)."""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import keyhole
from keyhole.errors import InvalidInput, check_choice
from keyhole.lab.spec import GameSpec

_TOP_FIELDS = ("title", "paper", "about", "game", "curve", "line", "panel")
_PANEL_FIELDS = ("name", "title", "from", "log_rounds", "log_regret")


@dataclass(frozen=True)
class CurveSpec:
    """One curve of a figure."""

    label: str
    panel: str
    game: GameSpec


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
    first_round: int
    log_rounds: bool
    log_regret: bool


@dataclass(frozen=True)
class Study:
    """What to play, how to draw it, and the claims to judge."""

    key: str
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
    for name in content:
        check_choice(name, f"A field of {where}", _TOP_FIELDS)
    panels = [_panel(entry, where) for entry in content.get("panel", [{}])]
    names = [panel.name for panel in panels]
    curves = []
    for entry in content["curve"]:
        own = {**content.get("game", {}), **entry}
        label, panel = own.pop("label"), own.pop("panel", names[0])
        check_choice(panel, f"panel of curve {label!r} in {where}", names)
        for options in ("ranker_options", "world_options"):  # a curve adds to the game's
            merged = {**content.get("game", {}).get(options, {}), **entry.get(options, {})}
            own[options] = merged
        curves.append(CurveSpec(label, panel, GameSpec.of(own, f"curve {label!r} in {where}")))
    lines = []
    for entry in content.get("line", []):
        own = dict(entry)
        label, kind = own.pop("label"), own.pop("kind")
        lines.append(LineSpec(label, own.pop("panel", names[0]), kind, own))
    return Study(
        folder.name,
        content["title"],
        content["paper"],
        content["about"],
        tuple(curves),
        tuple(lines),
        tuple(panels),
        tuple(_read(folder / "expected.toml")["claim"]),
    )


def _panel(entry: dict[str, Any], where: str) -> PanelSpec:
    for name in entry:
        check_choice(name, f"A field of a panel in {where}", _PANEL_FIELDS)
    return PanelSpec(
        entry.get("name", "main"),
        entry.get("title", ""),
        entry.get("from", 1),
        entry.get("log_rounds", False),
        entry.get("log_regret", False),
    )
