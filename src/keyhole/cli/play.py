"""The command that plays games on one fixed list."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from keyhole.base.errors import InvalidInput
from keyhole.base.files import write_atomically
from keyhole.cli.data_options import RatingsOptions
from keyhole.cli.description_options import but, command
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
    shown_number,
    to_json,
)
from keyhole.experiment.description import BuiltExperiment, Experiment
from keyhole.experiment.worlds import check_fixed
from keyhole.lab.figures.canvas import check_figures
from keyhole.lab.figures.layout import save_figure
from keyhole.lab.figures.panels import Panel
from keyhole.lab.figures.styles import readable
from keyhole.lab.results import REGRET, Curve, curves_csv, summary

_NAMED = 6
"""Items of a ranking that are printed by name."""


@command()
def play_command(
    *,
    ranker: Annotated[
        str | None,
        "The algorithm: a name of 'keyhole list', or file.py:Class or module:Class for your own "
        "class; the same holds for --measure and --world. Default: keystone, with the papers' "
        "rtopk for comparison.",
    ] = None,
    subroutine: Annotated[
        str | None, "Full-information learner inside rtopk: ftpl (default), plackett-luce, …"
    ] = None,
    experiment: Annotated[Experiment, but(noise=None)],
    ratings: RatingsOptions,
    settings: Annotated[
        list[str] | None,
        "Any other option, such as ranker.n_blocks=200, ranker.eps_scale=0.1 or world.flip=0.2; "
        "'keyhole list' shows them all.",
        "--set",
        "OWNER.NAME=VALUE",
    ] = None,
    against: Annotated[
        list[str] | None,
        "Also play this ranker on the same users, with the feedback it needs. Its options may "
        "follow its name: 'ftpl eps_scale=0.01'.",
        "NAME",
    ] = None,
    out: Annotated[
        Path | None, "Folder for regret.png, regret.svg, curves.csv, results.json."
    ] = None,
    log_log: Annotated[
        bool, "Draw the figure with logarithmic axes, where a rate is a slope."
    ] = False,
    settings_file: SettingsFile = None,
    as_json: Json = False,
) -> None:
    """Play a game and see regret fall.

    In each round a user with individual tastes sees a ranking of the whole list. The ranker is
    judged on the whole ranking but learns only from the revealed part. Its regret is its
    distance to the best fixed ranking.

    The thesis's game, with the thesis's algorithm, and with a full-information learner that adds
    a hundredth of the noise of its theorem (`--against ftpl` adds all of it):

        keyhole play --items 20 --top 1 --against rtopk --against "ftpl eps_scale=0.01"

    Your own ratings, people by items, where 4 or more is relevant:

        keyhole play --world ratings.csv --threshold 4 --top 1
    """
    options = parse_options(settings or [])
    if subroutine is not None:
        options["ranker"]["subroutine"] = subroutine
    if ranker is None and subroutine is None and against is None:
        against = ["rtopk"]
    check_fixed(experiment.world)
    experiment = replace(
        experiment,
        ranker=ranker or ("keystone" if subroutine is None else "rtopk"),
        ranker_options=options["ranker"],
        world_options=options["world"] | ratings.given,
        measure_options=options["measure"],
    )
    if log_log and out is None:
        raise InvalidInput("--log-log is about the figure, and needs the --out to draw it in.")
    if out is not None:
        check_figures()
    with output_folder(out) as folder:
        first = experiment.build()
        labels = (experiment.ranker, *(against or ()))
        games = [first, *(_beside(first, each) for each in labels[1:])]
        results, curves = [], []
        for label, game in zip(labels, games, strict=True):
            with progress_bar(label, experiment.work, quiet=as_json) as advance:
                trace = game.play(advance)
            results.append(summary(game, trace))
            curves.append(Curve.of(f"{label}, {game.reveal}", trace))
        record = {**results[0], "against": results[1:]}
        has_figure = any(result["average_regret"] is not None for result in results)
        if folder is not None:
            label = first.measure.label
            where = short_name(Path(str(experiment.world)).name)
            title = f"{label}, {first.world.n_items} items, {where}"
            write_atomically(folder / "results.json", to_json(record).encode())
            write_atomically(folder / "curves.csv", curves_csv(curves, REGRET))
            if has_figure:
                names = [readable(curve.label).partition(", ")[0] for curve in curves]
                notes = [_learnt(*each) for each in zip(names, results, strict=True)]
                panel = Panel("", curves, log_x=log_log, log_y=log_log)
                save_figure(folder, "regret", title, [panel], REGRET, label, notes)
        if as_json:
            print_json(record)
            return
        _print_results(labels, results)
        if folder is not None:
            what = "Figure and results" if has_figure else "Results"
            say(f"{what} are in {folder}.")


def _beside(first: BuiltExperiment, given: str) -> BuiltExperiment:
    """Return the same game for another ranker, which sees as much, or more if it needs more."""
    words = given.split(" ")
    start = next((place for place, word in enumerate(words) if "=" in word), len(words))
    options = parse_options([f"ranker.{word}" for word in words[start:] if word])["ranker"]
    name, top = " ".join(words[:start]), first.experiment.top
    game = first.beside(name, options, reveal=None)
    needs_more = top is not None and game.ranker.depth > top
    return first.beside(name, options, reveal=None, top=None) if needs_more else game


def _learnt(label: str, result: dict[str, Any]) -> str:
    """Return what a ranker would show in the end, as a sentence: items by name, or from 0."""
    first = result["learnt_ranking"][:_NAMED]
    n_more = len(result["learnt_ranking"]) - len(first)
    more = f" and {n_more} more" if n_more else ""
    called = "" if result["item_names"] is not None else "items "
    shown = f"{called}{', '.join(map(str, first))}{more}"
    return f"{label} would now show: {shown}"


def _print_results(labels: tuple[str, ...], results: list[dict[str, Any]]) -> None:
    rows = [
        (
            escape(label),
            result["reveal"],
            shown_number(result["average_regret"], result["average_regret_error"]),
            shown_number(result["average_score"]),
            shown_number(result["best_fixed_score"]),
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
