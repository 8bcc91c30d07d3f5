"""The pages of the papers: their figures, claims and verdicts, from what is committed of them.

    keyhole reproduce KEY --out out/KEY            # plays a study, minutes
    python -m bench.site.papers out/KEY …          # keeps its numbers in docs/results/KEY.json
    python -m bench.site.papers                    # writes all pages, without playing anything

What is kept of a study are the means and standard errors of its curves, at few points and few
digits, and its verdicts: enough to draw the figure with the code as it is now. The site is built
with pages that were written this way; none of them is edited.
"""

import argparse
import csv
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from bench.site.drawing import save_svg
from keyhole.base.files import write_atomically
from keyhole.lab.figures.groups import table_of
from keyhole.lab.figures.studies import make_study_figure
from keyhole.lab.results import Curve
from keyhole.lab.run import _lines as lines_of
from keyhole.lab.study import Study, list_studies, papers_folder

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "docs" / "results"
_MOST_POINTS = 60
_DIGITS = 5
_WORDS = {True: "holds", False: "fails", None: "skipped"}


def kept_of(folder: Path) -> dict[str, Any]:
    """Return what is kept of a reproduced study: its verdicts, and its curves thinned out."""
    record = json.loads((folder / "verdicts.json").read_text(encoding="utf-8"))
    curves: dict[str, Any] = {}
    with (folder / "curves.csv").open(encoding="utf-8", newline="") as lines:
        for label, x, mean, error, runs in list(csv.reader(lines))[1:]:
            curve = curves.setdefault(
                label, {"runs": int(runs), "x": [], "mean": [], "standard_error": []}
            )
            curve["x"].append(int(x))
            curve["mean"].append(_rounded(mean))
            curve["standard_error"].append(_rounded(error) if error else None)
    return {
        "version": record["version"],
        "verdicts": record["verdicts"],
        "missing": record["missing"],
        "curves": {label: _thinned(curve) for label, curve in curves.items()},
    }


def _rounded(number: str) -> float:
    return float(f"{float(number):.{_DIGITS}g}")


def _thinned(curve: dict[str, Any]) -> dict[str, Any]:
    """Return a curve with few of its points, the first and the last among them."""
    n_points = len(curve["x"])
    places = np.unique(np.linspace(0, n_points - 1, min(n_points, _MOST_POINTS)).round())
    return {
        name: kept if name == "runs" else [kept[int(place)] for place in places]
        for name, kept in curve.items()
    }


def curve_of(label: str, kept: dict[str, Any]) -> Curve:
    """Return a curve of two runs, or of one, with the means and standard errors that were kept."""
    mean = np.array(kept["mean"])
    x = np.array(kept["x"])
    if kept["standard_error"][0] is None:
        return Curve(label, x, mean[np.newaxis])
    error = np.array(kept["standard_error"])
    return Curve(label, x, np.array([mean - error, mean + error]))


def read_kept(key: str) -> dict[str, Any]:
    """Return what is kept of a study."""
    kept: dict[str, Any] = json.loads((RESULTS / f"{key}.json").read_text(encoding="utf-8"))
    return kept


def curves_of(kept: dict[str, Any]) -> dict[str, Curve]:
    """Return the curves that were kept, by label."""
    return {label: curve_of(label, each) for label, each in kept["curves"].items()}


def figure_of(study: Study, curves: dict[str, Curve], folder: Path) -> Any:
    """Return the figure of a study, which will be in a folder."""
    return make_study_figure(folder, study, curves, lines_of(study, curves))


def write_pages(folder: Path) -> None:
    """Write a page and a figure for each study of which there are results, and a list of them."""
    folder.mkdir(exist_ok=True)
    there = {path.stem for path in RESULTS.glob("*.json")}
    studies = {key: study for key, study in list_studies().items() if key in there}
    kept = {key: read_kept(key) for key in studies}
    for key, study in studies.items():
        curves = curves_of(kept[key])
        save_svg(figure_of(study, curves, folder), folder / f"{key}.svg")
        _write_page(folder / f"{key}.md", page_of(study, curves, kept[key]))
    _write_page(folder / "index.md", index_of(studies, kept))


def _write_page(path: Path, text: str) -> None:
    """Write a page unless it is there already: Sphinx reads what has changed."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        write_atomically(path, text.encode())


def page_of(study: Study, curves: dict[str, Curve], kept: dict[str, Any]) -> str:
    """Return the page of a study as Markdown."""
    told = (papers_folder() / study.key / "README.md").read_text(encoding="utf-8")
    about, _, _ = told.partition("\n## Run it")
    about = about.partition("\n")[2].strip()
    opening, found, rest = about.partition("\n## ")
    parts = [
        f"# {study.title}",
        f"*{study.paper[0].upper()}{study.paper[1:]}*: {study.about}. "
        f"The study `{study.key}`; {_tally(kept)}.",
        f"![{study.title}]({study.key}.svg)",
        opening.strip(),
        "## Claims and verdicts",
        _table(
            ["verdict", "claim", "numbers"],
            [[_WORDS[v["holds"]], v["claim"], v["evidence"]] for v in kept["verdicts"]],
        ),
        "## Numbers of the figure",
        *_numbers(study, curves, kept),
        found.strip() + f" {rest.strip()}" if found else "",
        "## Run it again",
        f"    keyhole reproduce {study.key}",
        "writes this figure, its curves and these verdicts. How a figure is cited is in "
        "[Reproducing and citing a figure](../tutorials/reproduce.md), what a study is made of in "
        "[Studies](../studies.md).",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _tally(kept: dict[str, Any]) -> str:
    held = [verdict["holds"] for verdict in kept["verdicts"]]
    told = f"{held.count(True)} of {len(held)} claims hold"
    for word, value in (("fail", False), ("were skipped", None)):
        told += f", {held.count(value)} {word}" if value in held else ""
    return told


def _numbers(study: Study, curves: dict[str, Curve], kept: dict[str, Any]) -> list[str]:
    """Return tables of what the curves end with."""
    if study.is_grouped:
        tables = [(panel.title, table_of(study, curves, panel.name)) for panel in study.panels]
        return [
            part
            for title, rows in tables
            if len(rows) > 1
            for part in (title, _table(rows[0], rows[1:]))
        ]
    axes = study.kind.axes(study.curves[0].spec.measure)
    rows = []
    for label, curve in curves.items():
        end = curve.at()
        spread = "" if np.isnan(end.error) else f" ± {end.error:.2g}"
        rows.append([label, str(kept["curves"][label]["runs"]), f"{curve.x[-1]:,}",
                     f"{end.mean:.4g}{spread}"])  # fmt: skip
    heads = ["curve", "runs", axes.x_column, axes.y_column.replace("_", " ")]
    return [_table(heads, rows)]


def _table(heads: list[str], rows: list[list[str]]) -> str:
    """Return a table as Markdown."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(
        "| " + " | ".join(cell.replace("|", r"\|") for cell in line) + " |" for line in lines
    )


def index_of(studies: dict[str, Study], kept: dict[str, Any]) -> str:
    """Return the page that lists the studies."""
    rows = [
        [f"[{study.title}]({key}.md)", study.paper, _tally(kept[key])]
        for key, study in studies.items()
    ]
    return "\n\n".join(
        [
            "# Papers",
            "Figures and theorems of the papers, and studies of this project, each played by one "
            "command and judged by claims that were written down before. Figures and numbers "
            "below are those that the command gave; [Studies](../studies.md) explains the files, "
            "[Sources](../sources.md) has the papers.",
            _table(["figure", "from", "claims"], rows),
            "```{toctree}\n:hidden:\n\n" + "\n".join(studies) + "\n```",
        ]
    ) + "\n"  # fmt: skip


def main() -> int:
    """Keep what was reproduced in the folders that are named, or write all pages."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folders", nargs="*", type=Path, help="folders of `keyhole reproduce`")
    folders = parser.parse_args().folders
    for folder in folders:
        text = json.dumps(kept_of(folder), ensure_ascii=False, indent=None) + "\n"
        write_atomically(RESULTS / f"{folder.name}.json", text.encode())
    if not folders:
        write_pages(ROOT / "docs" / "papers")
    return 0


if __name__ == "__main__":
    sys.exit(main())
