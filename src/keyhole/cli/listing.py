"""The command that lists all that can be named."""

import inspect
import sys

from rich.table import Table

from keyhole.cli.terminal import OUT, Json, escape, sentences, to_json
from keyhole.contracts import options_of
from keyhole.lab.study import list_studies
from keyhole.measures import MEASURES, measure
from keyhole.rankers import RANKERS, SUBROUTINES
from keyhole.rankers.lists import CONTEXTUAL_RANKERS
from keyhole.reveals import REVEALS
from keyhole.surrogates import SURROGATES
from keyhole.worlds import WORLDS


def _summary_of(thing: object) -> str:
    return (thing.__doc__ or "").strip().splitlines()[0]


def _options_text(cls: type) -> str:
    return ", ".join(
        name if default is inspect.Parameter.empty else f"{name}={default!r}"
        for name, default in options_of(cls).items()
    )


def list_command(as_json: Json = False) -> None:
    """List rankers, surrogates, measures, worlds, reveals and papers, with their options.

    What is listed under a name are its options and their defaults. In a game they are set with
    their owner:

        keyhole play --set ranker.n_blocks=200 --set world.flip=0.2
    """
    with sentences():
        tables: dict[str, dict[str, tuple[str, str]]] = {
            "rankers": {n: (_summary_of(c), _options_text(c)) for n, c in RANKERS.items()},
            "subroutines": {n: (s.summary, "") for n, s in SUBROUTINES.items()},
            "rankers of query-document lists": {
                n: (_summary_of(c), _options_text(c)) for n, c in CONTEXTUAL_RANKERS.items()
            },
            "surrogates": {n: (_summary_of(c), _options_text(c)) for n, c in SURROGATES.items()},
            "measures": {n: (str(measure(n)), _summary_of(c)) for n, c in MEASURES.items()},
            "worlds": {n: (_summary_of(c), _options_text(c)) for n, c in WORLDS.items()},
            "reveals": {n: (_summary_of(c), _options_text(c)) for n, c in REVEALS.items()},
            "papers": {k: (f"{s.paper}: {s.about}", "") for k, s in list_studies().items()},
        }
        if as_json:
            record = {
                title: {
                    name: {"summary": text, "options": more} for name, (text, more) in rows.items()
                }
                for title, rows in tables.items()
            }
            sys.stdout.write(to_json(record))
            return
        for title, rows in tables.items():
            table = Table(
                title=title, title_justify="left", show_header=False, box=None, padding=(0, 2)
            )
            for name, (text, more) in rows.items():
                shown = escape(text) + (f"\n[dim]{escape(more)}[/]" if more else "")
                table.add_row(f"[bold]{name}[/]", shown)
            OUT.print(table)
            OUT.print()
