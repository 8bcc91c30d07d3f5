"""The command that classifies many measures as an atlas."""

import re
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

import keyhole
from keyhole.base.errors import InvalidInput
from keyhole.base.files import check_folder, write_atomically
from keyhole.cli.description_options import command
from keyhole.cli.exit_codes import ExitCode
from keyhole.cli.terminal import ERR, Json, print_json, progress_bar, say
from keyhole.lab import atlas as maps
from keyhole.lab.figures.atlas import save_atlas
from keyhole.lab.figures.canvas import check_figures

_LISTS = ("--items", "--grades", "--measures")


class AtlasCommand(TyperCommand):
    """A command whose options take several values, such as ``--grades 2 3``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        spread: list[str] = []
        option = ""
        for arg in args:
            is_further = option and not arg.startswith("-") and spread[-1] != option
            spread += [option, arg] if is_further else [arg]
            if arg.startswith("-"):
                option = arg if arg in _LISTS else ""
        return super().parse_args(ctx, spread)


atlas_app = typer.Typer(add_completion=False, rich_markup_mode="markdown")


def _numbers(texts: list[str], name: str) -> list[int]:
    """Parse numbers and ranges, such as ``2-4 7``."""
    numbers: set[int] = set()
    for text in texts:
        match = re.fullmatch(r"(\d{1,4})(?:-(\d{1,4}))?", text)
        if match is None:
            raise InvalidInput(f"{name} must be numbers or ranges such as 2-5, got {text!r}.")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first:
            raise InvalidInput(f"{name} must have ascending ranges, got {text!r}.")
        numbers |= set(range(first, last + 1))
    return sorted(numbers)


@atlas_app.command(name="atlas", cls=AtlasCommand)
@command("Interrupted; finished cells are saved: run the same command to resume.")
def atlas_command(
    out: Annotated[Path, "Folder for atlas.png, atlas.svg, atlas.csv and atlas.md."],
    items: Annotated[list[str] | None, "Lengths of lists, such as 3 8. Default: 2-5."] = None,
    grades: Annotated[list[str] | None, "Numbers of relevance grades. Default: 2 3."] = None,
    measures: Annotated[list[str] | None, "Measures, such as NDCG DCG@2. Default: fifteen."] = None,
    as_json: Json = False,
) -> None:
    """Classify measures for all k and many list lengths, as an atlas.

    Small games (up to five items of three grades) are enumerated and compared with the rules;
    larger ones are classified by rule. Uses all cores. Finished parts are saved in the folder, so
    that an interrupted atlas can be resumed. Exits with 1 if a rule and enumeration disagree.

        keyhole atlas --out atlas

        keyhole atlas --items 2-8 --grades 2 --measures NDCG AUC DCG --out atlas
    """
    columns = maps.columns_of(
        measures or maps.MEASURES,
        _numbers(items or ["2-5"], "--items"),
        _numbers(grades or ["2", "3"], "--grades"),
    )
    check_figures()
    check_folder(out)
    total = sum(column.items for column in columns)
    with progress_bar("atlas", total, quiet=as_json, unit="cells") as advance:
        atlas = maps.make_atlas(columns, out / "cells", advance)
    write_atomically(out / "atlas.csv", maps.atlas_csv(atlas))
    write_atomically(out / "atlas.md", maps.atlas_markdown(atlas).encode())
    save_atlas(out, atlas)
    if as_json:
        print_json(_record(atlas))
    else:
        _print_atlas(atlas, out)
    for entry in atlas.disputed:
        say(
            f"Disagreement: {entry.measure} on {entry.items} items with {entry.grades} grades and "
            f"the top {entry.top} shown is {entry.class_} by enumeration, {entry.by_rule} by rule.",
            console=ERR,
        )
    if atlas.disputed:
        raise SystemExit(ExitCode.NO)


def _record(atlas: maps.Atlas) -> dict[str, Any]:
    return {
        "cells": [
            {**asdict(entry), "class": entry.class_, "rate": entry.rate} for entry in atlas.entries
        ],
        "resumed": atlas.n_resumed,
        "disagreements": len(atlas.disputed),
        "version": keyhole.__version__,
    }


def _print_atlas(atlas: maps.Atlas, folder: Path) -> None:
    n_both = sum(c.source == "enumeration" and c.by_rule != "unknown" for c in atlas.entries)
    sources = [entry.source for entry in atlas.entries]
    say(
        f"{len(sources)} games: {sources.count('enumeration')} enumerated, {sources.count('rule')} "
        f"by rule, {sources.count(None)} unknown; {atlas.n_resumed} resumed. Of "
        f"{n_both} games classified by both, rule and enumeration disagree on "
        f"{len(atlas.disputed)}."
    )
    say(f"Figure and tables are in {folder}.")
