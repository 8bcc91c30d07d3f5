"""The command that reproduces studies."""

import json
import os
from pathlib import Path
from typing import Annotated

import typer

from keyhole.base.display import counted
from keyhole.base.errors import InvalidInput, shown
from keyhole.cli.description_options import command
from keyhole.cli.exit_codes import ExitCode
from keyhole.cli.terminal import Json, print_json, progress_bar, say, show_table
from keyhole.lab.figures.groups import table_of
from keyhole.lab.run import reproduce
from keyhole.lab.study import find_study, on_files


@command("Interrupted; finished curves are saved: run the same command to resume.")
def reproduce_command(
    key: Annotated[str, typer.Argument(help="The key of a paper, from 'keyhole list'.")],
    out: Annotated[Path | None, "Folder for figure, curves and verdicts. Default: out/KEY."] = None,
    data: Annotated[
        list[Path] | None,
        "Your own LETOR file, for a paper on query-document lists; repeatable.",
    ] = None,
    quick: Annotated[bool, "Use a short horizon, if the study has one."] = False,
    as_json: Json = False,
) -> None:
    """Reproduce a figure or theorem of a paper and check every claim about it.

    Writes KEY.png and KEY.svg, curves.csv and verdicts.json into the folder, prints a verdict per
    claim and exits with 1 if a claim fails, with 2 if its data set is missing. Finished curves are
    saved in the folder, so that an interrupted reproduction can be resumed.

        keyhole reproduce thesis-fig3.1

        keyhole reproduce thesis-fig3.4 --data train.txt --data vali.txt
    """
    study = find_study(key, quick=quick)
    if data:
        study = on_files(study, data)
    folder = out or Path("out") / key
    total = sum(curve.spec.work for curve in study.curves)
    with progress_bar(key, total, quiet=as_json) as advance:
        result = reproduce(study, folder, lambda _label, work: advance(work))
    if as_json:
        print_json(json.loads((folder / "verdicts.json").read_text(encoding="utf-8")))
    else:
        say(f" ({study.paper})", study.title, "bold")
        if result.n_resumed:
            say(f"{result.n_resumed} of {len(study.curves)} curves were resumed.")
        for panel in study.panels if study.is_grouped else ():
            rows = table_of(study, result.curves, panel.name)
            if len(rows) > 1:  # a panel may be missing
                headings = [rows[0][0], *(f"{head}>" for head in rows[0][1:])]
                show_table(panel.title, headings, rows[1:])
        for verdict in result.verdicts:
            colour = {True: "green", False: "bold red", None: "yellow"}[verdict.holds]
            word, rest = str(verdict)[:4], str(verdict)[4:]
            say(rest, word, colour)
        written = "Figure, curves" if result.curves else "Curves"
        say(f"{written} and verdicts are in {folder}.")
    if not result.holds:
        raise SystemExit(ExitCode.NO)
    if result.without_data:
        raise InvalidInput(
            f"KEYHOLE_DATA must name the folder of the data sets that {len(result.without_data)} "
            f"of {counted(len(result.verdicts), 'claim')} could not be judged without, got "
            f"{shown(os.environ.get('KEYHOLE_DATA'))}."
        )
