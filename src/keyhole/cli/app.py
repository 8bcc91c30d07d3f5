"""The command line: parse, call, print."""

import inspect
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

import keyhole
from keyhole.cli.bounds import bound_command
from keyhole.cli.lists import learn_command, rank_command
from keyhole.cli.logs import evaluate_command
from keyhole.cli.oracle import AtlasCommand, atlas_command, classify_command
from keyhole.cli.terminal import (
    OUT,
    Json,
    escape,
    parse_options,
    progress_bar,
    sentences,
    to_json,
)
from keyhole.contracts import options_of
from keyhole.files import check_folder, write_atomically
from keyhole.lab.figures.curves import Panel, check_figures, save_figure
from keyhole.lab.figures.groups import table_of
from keyhole.lab.kinds.games import GameSpec, build, play_game
from keyhole.lab.results import REGRET, Curve, curves_csv, summary
from keyhole.lab.run import reproduce
from keyhole.lab.study import find_study, list_studies, on_files
from keyhole.measures import MEASURES, measure
from keyhole.rankers import RANKERS, SUBROUTINES
from keyhole.rankers.lists import CONTEXTUAL_RANKERS
from keyhole.reveals import REVEALS
from keyhole.surrogates import SURROGATES
from keyhole.worlds import WORLDS

app = typer.Typer(
    name="keyhole",
    help="Learn to rank a whole list while seeing only its top.",
    epilog="Start with: keyhole play --help, keyhole list, keyhole reproduce thesis-fig3.1",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)


def _version(value: bool) -> None:
    if value:
        OUT.print(f"keyhole {keyhole.__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Learn to rank a whole list while seeing only its top."""


_OF_A_CSV = {name: f"--{name}" for name in ("threshold", "grades", "missing")}
"""What ratings are read with that has an option of its own."""


@app.command(name="play")
def play_command(
    ranker: Annotated[
        str, typer.Option(help="Algorithm to play: a name of 'keyhole list'.")
    ] = "rtopk",
    subroutine: Annotated[
        str | None,
        typer.Option(
            help="Full-information learner inside rtopk: ftpl (default), plackett-luce, …"
        ),
    ] = None,
    items: Annotated[
        int | None, typer.Option(help="Length of the list. Default: the world's own.")
    ] = None,
    rounds: Annotated[int, typer.Option(help="Rounds to play.")] = 10_000,
    top: Annotated[
        int | None,
        typer.Option(help="Positions revealed each round. Default: what the ranker needs."),
    ] = None,
    measure: Annotated[
        str, typer.Option(help="How rankings are judged: DCG, NDCG@10, SumLoss, …")
    ] = "DCG",
    world: Annotated[
        str,
        typer.Option(
            help="Where relevance comes from: a name of 'keyhole list', or a .csv file of people "
            "by items whose header names the items."
        ),
    ] = "flips",
    reveal: Annotated[
        str | None,
        typer.Option(help="What is shown: top, full, choice:single or choice:set. Default: top."),
    ] = None,
    runs: Annotated[int, typer.Option(help="Independent runs, played on all cores.")] = 1,
    seed: Annotated[int, typer.Option(help="Everything random follows from it.")] = 0,
    same_users: Annotated[
        bool, typer.Option("--same-users", help="All runs meet the same users.")
    ] = False,
    comparator: Annotated[
        str,
        typer.Option(help="Regret against the best ranking so far (prefix) or at the end (final)."),
    ] = "prefix",
    threshold: Annotated[
        float | None, typer.Option(help="For a .csv: ratings of at least this are relevant.")
    ] = None,
    grades: Annotated[
        int | None, typer.Option(help="For a .csv: cut ratings into grades 0 to this.")
    ] = None,
    missing: Annotated[
        str | None,
        typer.Option(help="For a .csv: people with a missing rating are an error, or drop."),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="OWNER.NAME=VALUE",
            help="Any other option, such as ranker.n_blocks=200, ranker.eps_scale=0.1 or "
            "world.flip=0.2; 'keyhole list' shows them all.",
        ),
    ] = None,
    against: Annotated[
        list[str] | None, typer.Option(help="Also play this ranker on the same users, to compare.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for regret.png, regret.svg, curves.csv, results.json."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Play a game and see regret fall.

    Every round a user with tastes of their own meets a ranking of the whole list. The ranker is
    judged on all of it but learns only what is revealed, and its regret is what the best fixed
    ranking would have scored more.

    The thesis's game, with what full information would have given:

        keyhole play --items 20 --top 1 --runs 10 --against ftpl

    Your own people by items, a rating of 4 or more being relevant:

        keyhole play --world ratings.csv --threshold 4 --top 1
    """
    with sentences(options=_OF_A_CSV):
        options = parse_options(settings or [])
        for name, value in (("threshold", threshold), ("grades", grades), ("missing", missing)):
            if value is not None:
                options["world"][name] = value
        if subroutine is not None:
            options["ranker"]["subroutine"] = subroutine
        spec = GameSpec(
            ranker=ranker, world=world, measure=measure, items=items, rounds=rounds, top=top,
            reveal=reveal, runs=runs, seed=seed, same_users=same_users, comparator=comparator,
            ranker_options=options["ranker"], world_options=options["world"],
            measure_options=options["measure"],
        )  # fmt: skip
        specs = [spec] + [
            replace(spec, ranker=name, top=None, reveal=None, ranker_options={})
            for name in against or []
        ]
        games = [build(each) for each in specs]
        if out is not None:
            check_figures()
        folder = None if out is None else check_folder(out)
        results, curves = [], []
        for game in games:
            label = game.spec.ranker
            with progress_bar(label, rounds * runs, quiet=as_json) as advance:
                trace = play_game(game, advance)
            results.append(summary(game, trace))
            curves.append(Curve.of(f"{label}, {game.reveal}", trace))
        record = {**results[0], "against": results[1:]}
        has_figure = any(result["average_regret"] is not None for result in results)
        if folder is not None:
            label = games[0].measure.label
            title = f"{label}, {games[0].world.n_items} items, {_short(Path(world).name)}"
            write_atomically(folder / "results.json", to_json(record).encode())
            write_atomically(folder / "curves.csv", curves_csv(curves, REGRET))
            if has_figure:
                save_figure(folder, "regret", title, [Panel("", curves)], REGRET, label)
        if as_json:
            sys.stdout.write(to_json(record))
            return
        _print_results(results)
        if folder is not None:
            what = "Figure and results" if has_figure else "Results"
            OUT.print(f"{what} are in {escape(str(folder))}.", soft_wrap=True)


def _short(name: str, longest: int = 40) -> str:
    """Return the name of a file, without its middle if it is too long for a title."""
    if len(name) <= longest:
        return name
    return f"{name[: longest // 2]}…{name[1 - longest // 2 :]}"


def _number(value: float | None, error: float | None = None) -> str:
    if value is None:
        return "not known"
    return f"{value:.4f}" if error is None else f"{value:.4f}\u00a0±\u00a0{error:.4f}"


def _print_results(results: list[dict[str, Any]]) -> None:
    table = Table(title=escape(results[0]["measure"]), title_justify="left")
    for heading in ("ranker", "sees", "average regret", "average score", "best fixed", "slope"):
        table.add_column(heading, justify="left" if heading in ("ranker", "sees") else "right")
    for result in results:
        table.add_row(
            result["spec"]["ranker"],
            result["reveal"],
            _number(result["average_regret"], result["average_regret_error"]),
            _number(result["average_score"]),
            _number(result["best_fixed_score"]),
            "not known" if result["slope"] is None else f"{result['slope']:.2f}",
        )
    OUT.print(table)
    for note in dict.fromkeys(note for result in results for note in result["notes"]):
        OUT.print(f"Note: {escape(note)}.", soft_wrap=True, highlight=False)


def _summary_of(thing: object) -> str:
    return (thing.__doc__ or "").strip().splitlines()[0]


def _options_text(cls: type) -> str:
    return ", ".join(
        name if default is inspect.Parameter.empty else f"{name}={default!r}"
        for name, default in options_of(cls).items()
    )


@app.command(name="list")
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


def _grouped_table(title: str, rows: list[list[str]]) -> Table:
    table = Table(title=title, title_justify="left")
    for number, head in enumerate(rows[0]):
        table.add_column(head, justify="right" if number else "left")
    for row in rows[1:]:
        table.add_row(*row)
    return table


@app.command(name="reproduce")
def reproduce_command(
    key: Annotated[str, typer.Argument(help="A paper's key, as in 'keyhole list'.")],
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for figure, curves and verdicts. Default: out/KEY."),
    ] = None,
    data: Annotated[
        list[Path] | None,
        typer.Option(
            help="A LETOR file of your own, for a paper on query-document lists; repeatable."
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="A short horizon, where the paper has one.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Reproduce a figure or theorem of a paper and judge every claim about it.

    Writes KEY.png and KEY.svg, curves.csv and verdicts.json into the folder, prints a verdict per
    claim and exits with 1 if one fails. Finished curves are kept in the folder: an interrupted
    reproduction goes on where it was.

        keyhole reproduce thesis-fig3.1

        keyhole reproduce thesis-fig3.4 --data train.txt --data vali.txt
    """
    with sentences("Interrupted; finished curves are kept, and the same command goes on."):
        study = find_study(key, quick=quick)
        if data:
            study = on_files(study, data)
        folder = out or Path("out") / key
        total = sum(curve.spec.work for curve in study.curves)
        with progress_bar(key, total, quiet=as_json) as advance:
            result = reproduce(study, folder, lambda _label, work: advance(work))
        if as_json:
            sys.stdout.write((folder / "verdicts.json").read_text(encoding="utf-8"))
        else:
            OUT.print(f"[bold]{escape(study.title)}[/] ({escape(study.paper)})", soft_wrap=True)
            if result.n_resumed:
                OUT.print(f"{result.n_resumed} of {len(study.curves)} curves were finished before.")
            for panel in study.panels if study.is_grouped else ():
                rows = table_of(study, result.curves, panel.name)
                if len(rows) > 1:  # a panel may have been left out
                    OUT.print(_grouped_table(panel.title, rows))
            for verdict in result.verdicts:
                colour = {True: "green", False: "bold red", None: "yellow"}[verdict.holds]
                word, rest = str(verdict)[:4], str(verdict)[4:]
                OUT.print(f"[{colour}]{word}[/]{escape(rest)}", soft_wrap=True, highlight=False)
            shown = escape(str(folder))
            OUT.print(f"Figure, curves and verdicts are in {shown}.", soft_wrap=True)
    if not result.holds:
        raise typer.Exit(1)


app.command(name="learn")(learn_command)
app.command(name="rank")(rank_command)
app.command(name="evaluate")(evaluate_command)
app.command(name="classify")(classify_command)
app.command(name="atlas", cls=AtlasCommand)(atlas_command)
app.command(name="bound")(bound_command)
