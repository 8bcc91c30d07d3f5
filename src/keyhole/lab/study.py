"""Studies as data: a folder with study.toml (what to play) and expected.toml (what must hold)."""

import tomllib
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import keyhole
from keyhole.base.errors import InvalidInput, check_choice
from keyhole.lab.kinds import KINDS, Kind, Spec

_TOP_FIELDS = (
    "kind", "title", "paper", "about", "curve", "line", "panel", "group", "quick", "relative_to",
    "names",
)  # fmt: skip
_GROUP_FIELDS = ("name", "panel", "quick")
_ALL_GROUPS = "groups"
_PANEL_FIELDS = ("name", "title", "from", "log_x", "log_y", "scale")


@dataclass(frozen=True)
class CurveSpec:
    """One curve of a figure: ``label`` is its own, ``name`` what a legend calls it.

    Curves of single points may have a ``group``, the thing that they are measured on.
    """

    label: str
    name: str
    panel: str
    spec: Spec
    group: str = ""


@dataclass(frozen=True)
class LineSpec:
    """One bound or closed form of a figure, labelled and named as curves are."""

    label: str
    name: str
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
    scale: str


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
    left_out: dict[str, str]
    """Why curves that claims may name are not played, by label."""
    relative_to: str = ""
    """The name of the curves whose values are the unit of the figure, if it has one."""
    names: dict[str, str] = field(default_factory=dict)
    """What a figure calls groups, where it is not their own name."""

    @property
    def is_grouped(self) -> bool:
        """Whether its curves are points that are measured on several things."""
        return any(curve.group for curve in self.curves)

    def in_panel(self, panel: str) -> list[CurveSpec]:
        """Return the curves of a panel."""
        return [curve for curve in self.curves if curve.panel == panel]


def papers_folder() -> Path:
    """Return the folder of the studies: inside an installed package, or of the project."""
    package = Path(keyhole.__file__).parent
    installed = package / "papers"
    return installed if installed.is_dir() else package.parent.parent / "papers"


def list_studies() -> dict[str, Study]:
    """Return all studies by key."""
    found = sorted(papers_folder().glob("*/study.toml"))
    return {path.parent.name: read_study(path.parent) for path in found}


def find_study(key: str, *, quick: bool = False) -> Study:
    """Return the study of a key, or raise with the nearest key."""
    folder = papers_folder()
    known = [path.parent.name for path in folder.glob("*/study.toml")]
    return read_study(folder / check_choice(key, "key of a paper", known), quick=quick)


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise InvalidInput(f"{path} must be a readable TOML file: {error}") from None


def read_study(folder: Path, *, quick: bool = False) -> Study:
    """Read a study from its folder: at its full horizon, or at the quick one that it may have."""
    content, where = _read(folder / "study.toml"), f"{folder.name}/study.toml"
    kind = check_choice(content.get("kind", "game"), f"kind of {where}", KINDS)
    for name in content:  # what curves share stands under the name of their kind
        check_choice(name, f"A field of {where}", (*_TOP_FIELDS, kind))
    entries = content.get("panel", [{}])
    panels = [_panel(entry, kind, where) for entry in entries]
    names = [panel.name for panel in panels]
    shared = {name: entry.get(kind, {}) for name, entry in zip(names, entries, strict=True)}
    shorter = dict(content.get("quick", {})) if quick else {}
    groups = {entry["name"]: _group(entry, kind, where) for entry in content.get("group", [])}
    drawn = [each for entry in content["curve"] for each in _over(entry, groups, where)]
    several = {entry[field] for entry in drawn for field in ("label", "group") if field in entry}
    without = [
        check_choice(name, f"without of quick in {where}", (*names, *several))
        for name in shorter.pop("without", [])
    ]
    curves, left_out = [], {}
    for entry in drawn:
        own = dict(entry)
        label, panel = own.pop("label"), own.pop("panel", names[0])
        group = own.pop("group", "")
        name = own.pop("name", label)
        check_choice(panel, f"panel of curve {label!r} in {where}", names)
        measured_on = groups.get(group, {})
        fields = _merged(
            content.get(kind, {}), shared[panel], measured_on.get(kind, {}), own, shorter,
            measured_on.get("quick", {}) if quick else {},
        )  # fmt: skip
        spec = KINDS[kind].read(fields, f"curve {label!r} in {where}")
        if {panel, label, group} & set(without):
            left_out[label] = "not played at the quick horizon"
        else:
            curves.append(CurveSpec(label, name, panel, spec, group))
    return Study(
        folder.name,
        KINDS[kind],
        content["title"],
        content["paper"],
        content["about"],
        tuple(curves),
        tuple(_line(entry, names) for entry in content.get("line", [])),
        tuple(panels),
        tuple(
            _claim(each, quick)
            for claim in _read(folder / "expected.toml")["claim"]
            for each in _claim_over(claim)
        ),
        left_out,
        content.get("relative_to", ""),
        content.get("names", {}),
    )


def on_files(study: Study, files: list[Path]) -> Study:
    """Return the first panel of a study on the user's own files, with the claims that apply."""
    change = study.kind.on_files
    if change is None:
        raise InvalidInput(
            f"--data needs a paper on query-document lists, which {study.key} is not."
        )
    first = study.panels[0]
    played = [replace(c, spec=change(c.spec, files)) for c in study.in_panel(first.name)]
    study.kind.build(played[0].spec)  # what is wrong with the files is said at once
    left_out = {c.label: "the files of --data take its place" for c in study.curves}
    for curve in played:
        del left_out[curve.label]
    title = ", ".join(path.name for path in files[:3]) + (", …" if len(files) > 3 else "")
    return replace(
        study,
        curves=tuple(played),
        panels=(replace(first, title=title),),
        claims=tuple({**c, "skip": c["on_data"]} if "on_data" in c else c for c in study.claims),
        left_out={**study.left_out, **left_out},
    )


def _over(
    entry: dict[str, Any], groups: dict[str, dict[str, Any]], where: str
) -> list[dict[str, Any]]:
    """Return a curve, or one for each value that it gives a field with ``over``, as a group.

    ``over = "groups"`` makes one for each group of the study, in the panel of the group.
    """
    own = dict(entry)
    over = own.pop("over", None)
    if over is None:
        return [own]
    if over == _ALL_GROUPS:
        name = own.pop("name", own["label"])
        return [
            {**own, "label": f"{group}: {own['label']}", "name": name, "group": group,
             "panel": fields["panel"]}
            for group, fields in groups.items()
        ]  # fmt: skip
    if len(over) != 1:
        raise InvalidInput(f"over of curve {own['label']!r} in {where} must be of one field.")
    ((field, values),) = over.items()
    name = own.pop("name", own["label"])
    return [
        {**own, "label": f"{value}: {own['label']}", "name": name, "group": value, field: value}
        for value in values
    ]


def _claim_over(claim: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a claim, or one for each group that it names with ``over``."""
    own = dict(claim)
    groups = own.pop("over", None)
    if groups is None:
        return [own]
    return [_in_group(own, group) for group in groups]


def _in_group(claim: dict[str, Any], group: str) -> dict[str, Any]:
    """Return a claim, or what --quick changes in it, about the curves of a group."""
    own = dict(claim)
    for name in {"text", "curve"} & own.keys():
        own[name] = f"{group}: {own[name]}"
    if "curves" in own:
        own["curves"] = [f"{group}: {label}" for label in own["curves"]]
    if isinstance(own.get("quick"), dict):
        own["quick"] = _in_group(own["quick"], group)
    return own


def _claim(claim: dict[str, Any], quick: bool) -> dict[str, Any]:
    """Return a claim as it is judged: ``quick`` changes fields of it, or says why not to."""
    own = dict(claim)
    change = own.pop("quick", {})
    if not quick:
        return own
    return {**own, "skip": change} if isinstance(change, str) else {**own, **change}


def _merged(*layers: dict[str, Any]) -> dict[str, Any]:
    """Return fields, each layer over the ones before.

    Options are added to those before, unless the layer names another owner of them.
    """
    fields: dict[str, Any] = {}
    for layer in layers:
        for name, value in layer.items():
            if value != fields.get(name):
                fields.pop(f"{name}_options", None)
        options = {
            name: {**fields.get(name, {}), **value}
            for name, value in layer.items()
            if name.endswith("_options")
        }
        fields = {**fields, **layer, **options}
    return fields


def _line(entry: dict[str, Any], panels: list[str]) -> LineSpec:
    own = dict(entry)
    label = own.pop("label")
    return LineSpec(
        label, own.pop("name", label), own.pop("panel", panels[0]), own.pop("kind"), own
    )


def _group(entry: dict[str, Any], kind: str, where: str) -> dict[str, Any]:
    """Return a group of points, with what is particular to it under the name of the kind."""
    for name in entry:
        check_choice(name, f"A field of a group in {where}", (*_GROUP_FIELDS, kind))
    return entry


def _panel(entry: dict[str, Any], kind: str, where: str) -> PanelSpec:
    for name in entry:
        check_choice(name, f"A field of a panel in {where}", (*_PANEL_FIELDS, kind))
    return PanelSpec(
        entry.get("name", "main"),
        entry.get("title", ""),
        entry.get("from", 1),
        entry.get("log_x", False),
        entry.get("log_y", False),
        entry.get("scale", ""),
    )
