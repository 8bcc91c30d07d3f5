"""The command that lists rankers, measures, worlds and other names."""

import inspect
from typing import Any

from rich.table import Table

from keyhole.cli.description_options import command
from keyhole.cli.terminal import OUT, Json, escape, print_json
from keyhole.contracts.registry import Table as NamedRows, options_of
from keyhole.lab.study import list_studies
from keyhole.measures import MEASURES, measure
from keyhole.rankers import RANKERS
from keyhole.rankers.fixed.base import FixedListRanker
from keyhole.rankers.fixed.subroutines import SUBROUTINES
from keyhole.rankers.lists.base import ContextualRanker
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


def _rows(table: NamedRows[Any], base: type = object) -> dict[str, tuple[str, str]]:
    """Return the rows of a table with a summary and the options of each."""
    return {
        name: (_summary_of(cls), _options_text(cls))
        for name, cls in {**table, **table.installed()}.items()
        if issubclass(cls, base)
    }


@command()
def list_command(
    as_json: Json = False,
) -> None:
    """List rankers, surrogates, measures, worlds, reveals and papers, with their options.

    Below each name are its options with their defaults. Set them in a game with --set:

        keyhole play --set ranker.n_blocks=200 --set world.flip=0.2
    """
    tables: dict[str, dict[str, tuple[str, str]]] = {
        "rankers": _rows(RANKERS, FixedListRanker),
        "subroutines": {n: (s.summary, "") for n, s in SUBROUTINES.items()},
        "rankers of query-document lists": _rows(RANKERS, ContextualRanker),
        "surrogates": _rows(SURROGATES),
        "measures": {n: (str(measure(n)), _summary_of(c)) for n, c in MEASURES.items()},
        "worlds": _rows(WORLDS),
        "reveals": _rows(REVEALS),
        "papers": {k: (f"{s.paper}: {s.about}", "") for k, s in list_studies().items()},
    }
    if as_json:
        record = {
            title: {name: {"summary": text, "options": more} for name, (text, more) in rows.items()}
            for title, rows in tables.items()
        }
        print_json(record)
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
