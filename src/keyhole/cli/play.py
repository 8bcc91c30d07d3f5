"""The command that plays games on one fixed list."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from keyhole.base.errors import InvalidInput
from keyhole.base.files import write_atomically
from keyhole.cli import csv_options
from keyhole.cli.csv_options import Grades, Ids, Missing, Threshold
from keyhole.cli.exit_codes import one_sentence
from keyhole.cli.settings import SettingsFile
from keyhole.cli.terminal import (
    Json,
    escape,
    lower_is_better,
    output_folder,
    parse_options,
    print_json,
    progress_bar,
    say,
    short_name,
    show_table,
    to_json,
)
from keyhole.lab.figures.canvas import check_figures
from keyhole.lab.figures.layout import save_figure
from keyhole.lab.figures.panels import Panel
from keyhole.lab.kinds.games import BuiltGame, GameSpec, build, play_game, summary
from keyhole.lab.results import REGRET, Curve, curves_csv

_NAMED = 6
"""Items of a ranking that are printed by name."""


def play_command(
    ranker: Annotated[
        str | None,
        typer.Option(
            help="Algorithm to play: a name of 'keyhole list', or file.py:Class or module:Class "
            "for one of your own. Measures and worlds of your own are named likewise. Default: "
            "keystone, with the papers' rtopk beside it."
        ),
    ] = None,
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
    threshold: Threshold = None,
    grades: Grades = None,
    missing: Missing = None,
    ids: Ids = None,
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
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Also play this ranker on the same users; it sees as much as it needs. Options "
            "of it may follow its name: 'ftpl eps_scale=0.01'.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for regret.png, regret.svg, curves.csv, results.json."),
    ] = None,
    log_log: Annotated[
        bool,
        typer.Option("--log-log", help="Draw the figure with both axes logarithmic: rates show."),
    ] = False,
    settings_file: SettingsFile = None,
    as_json: Json = False,
) -> None:
    """Play a game and see regret fall.

    Every round a user with tastes of their own meets a ranking of the whole list. The ranker is
    judged on all of it but learns only what is revealed, and its regret is what the best fixed
    ranking would have scored more.

    The thesis's game, with the thesis's algorithm, and with what full information gives where it
    adds a hundredth of the noise of its theorem (`--against ftpl` adds all of it):

        keyhole play --items 20 --top 1 --against rtopk --against "ftpl eps_scale=0.01"

    Your own people by items, a rating of 4 or more being relevant:

        keyhole play --world ratings.csv --threshold 4 --top 1
    """
    with one_sentence(options=csv_options.OPTIONS):
        options = parse_options(settings or [])
        options["world"] |= csv_options.given(
            threshold=threshold, grades=grades, missing=missing, ids=ids
        )
        if subroutine is not None:
            options["ranker"]["subroutine"] = subroutine
        if ranker is None and subroutine is None and against is None:
            against = ["rtopk"]
        if ranker is None:
            ranker = "keystone" if subroutine is None else "rtopk"
        spec = GameSpec(
            ranker=ranker, world=world, measure=measure, items=items, rounds=rounds, top=top,
            reveal=reveal, runs=runs, seed=seed, same_users=same_users, comparator=comparator,
            ranker_options=options["ranker"], world_options=options["world"],
            measure_options=options["measure"],
        )  # fmt: skip
        if log_log and out is None:
            raise InvalidInput("--log-log is about the figure, and needs the --out to draw it in.")
        if out is not None:
            check_figures()
        with output_folder(out) as folder:
            labels = (ranker, *(against or []))
            games = [build(spec), *(_beside(spec, given) for given in labels[1:])]
            results, curves = [], []
            for label, game in zip(labels, games, strict=True):
                with progress_bar(label, rounds * runs, quiet=as_json) as advance:
                    trace = play_game(game, advance)
                results.append(summary(game, trace))
                curves.append(Curve.of(f"{label}, {game.reveal}", trace))
            record = {**results[0], "against": results[1:]}
            has_figure = any(result["average_regret"] is not None for result in results)
            if folder is not None:
                label = games[0].measure.label
                title = f"{label}, {games[0].world.n_items} items, {short_name(Path(world).name)}"
                write_atomically(folder / "results.json", to_json(record).encode())
                write_atomically(folder / "curves.csv", curves_csv(curves, REGRET))
                if has_figure:
                    notes = [_learnt(*each) for each in zip(labels, results, strict=True)]
                    panel = Panel("", curves, log_x=log_log, log_y=log_log)
                    save_figure(folder, "regret", title, [panel], REGRET, label, notes)
            if as_json:
                print_json(record)
                return
            _print_results(labels, results)
            if folder is not None:
                what = "Figure and results" if has_figure else "Results"
                say(f"{what} are in {folder}.")


def _beside(spec: GameSpec, given: str) -> BuiltGame:
    """Return the same game for another ranker, which sees as much, or more if it needs more."""
    words = given.split(" ")
    first = next((place for place, word in enumerate(words) if "=" in word), len(words))
    options = parse_options([f"ranker.{word}" for word in words[first:] if word])["ranker"]
    name = " ".join(words[:first])
    other = replace(spec, ranker=name, ranker_options=options, reveal=None)
    game = build(other)
    needs_more = spec.top is not None and game.ranker.depth > spec.top
    return build(replace(other, top=None)) if needs_more else game


def _learnt(label: str, result: dict[str, Any]) -> str:
    """Return what a ranker would show in the end, as a sentence: items by name, or from 0."""
    first = result["learnt_ranking"][:_NAMED]
    n_more = len(result["learnt_ranking"]) - len(first)
    more = f" and {n_more} more" if n_more else ""
    called = "" if result["item_names"] is not None else "items "
    shown = f"{called}{', '.join(map(str, first))}{more}"
    return f"{label} would now show: {shown}"


def _number(value: float | None, error: float | None = None) -> str:
    if value is None:
        return "not known"
    return f"{value:.4f}" if error is None else f"{value:.4f}\u00a0±\u00a0{error:.4f}"


def _print_results(labels: tuple[str, ...], results: list[dict[str, Any]]) -> None:
    rows = [
        (
            escape(label),
            result["reveal"],
            _number(result["average_regret"], result["average_regret_error"]),
            _number(result["average_score"]),
            _number(result["best_fixed_score"]),
            "not known" if result["slope"] is None else f"{result['slope']:.2f}",
        )
        for label, result in zip(labels, results, strict=True)
    ]
    show_table(
        escape(results[0]["measure"]) + lower_is_better(results[0]["is_loss"]),
        ("ranker", "sees", "average regret>", "average score>", "best fixed>", "slope>"),
        rows,
    )
    for each in zip(labels, results, strict=True):
        say(f"{_learnt(*each)}.")
    for note in dict.fromkeys(note for result in results for note in result["notes"]):
        say(f"Note: {note}.")
