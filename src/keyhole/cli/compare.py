"""The command that compares rankers on the same users."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from keyhole.base.described import described
from keyhole.base.errors import InvalidInput, shown
from keyhole.base.files import write_atomically
from keyhole.cli.data_options import RatingsOptions, Reading
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
    show_table,
    shown_number,
    to_json,
)
from keyhole.experiment.description import Experiment
from keyhole.lab.compare import Comparison, contest
from keyhole.lab.figures.canvas import check_figures
from keyhole.lab.figures.comparison import save_comparison
from keyhole.lab.figures.styles import reveal_name, source_name
from keyhole.lab.price import Price
from keyhole.lab.results import curves_csv
from keyhole.rankers import RANKERS


@command()
def compare_command(
    *,
    files: Annotated[
        list[Path] | None,
        typer.Argument(help="LETOR or SVMLight files of query-document lists.", metavar="[FILE…]"),
    ] = None,
    world: Annotated[
        str | None,
        "Without FILEs: a world of 'keyhole list', or a .csv file of people by items. "
        "Default: flips.",
    ] = None,
    rankers: Annotated[
        str | None, "Rankers to compare, such as keystone,rtopk,random. Default: all that fit."
    ] = None,
    against: Annotated[
        list[str] | None,
        "Also play this ranker, with all the feedback it needs, outside the verdict.",
    ] = None,
    price: Annotated[
        bool,
        "Also play all rankers that see everything, and each with everything shown: how many times "
        "as much is lost by seeing less.",
    ] = False,
    measure: Annotated[
        str | None, "The measure of a ranking. Default: DCG; NDCG@10 for FILEs."
    ] = None,
    experiment: Annotated[
        Experiment,
        but(
            top=described(1, "Positions revealed to every ranker in each round.", type=int),
            runs=described(20, "Runs with different users."),
            reveal=None,
            same_users=None,
            comparator=None,
        ),
    ],
    ratings: RatingsOptions,
    reading: Reading,
    settings: Annotated[
        list[str] | None,
        "Any option of the world, the measure or a ranker by its name, such as world.flip=0.2 or "
        "rtopk.eps_scale=0.1.",
        "--set",
        "OWNER.NAME=VALUE",
    ] = None,
    out: Annotated[
        Path | None, "Folder for compare.png, compare.svg, curves.csv, results.json."
    ] = None,
    settings_file: SettingsFile = None,
    as_json: Json = False,
) -> None:
    """Compare every ranker that fits, on the same users, and say which is best.

    All rankers see the same positions of the same lists. They are sorted by average regret (or
    by the measure, where the best ranking is not known), and the verdict rests on intervals of
    their differences, paired by run, that hold for all pairs at once.

    On the thesis's game, with a full-information learner for reference:

        keyhole compare --items 20 --against ftpl

    How many times as much is lost as by the best that sees all:

        keyhole compare --items 20 --rankers keystone,rtopk --price

    On people of your own, or query-document lists:

        keyhole compare --world ratings.csv --threshold 4

        keyhole compare train.txt --shuffle --rounds 20000 --against listnet
    """
    options = parse_options(settings or [], ("world", "measure", *RANKERS))
    of_world, of_measure = options.pop("world") | ratings.given, options.pop("measure")
    names = _names(rankers)
    if files and world is not None:
        raise InvalidInput(f"--world must not be given with FILEs, got {shown(world)}.")
    shown_how = reading.world_options(experiment.rounds, experiment.seed)
    if shown_how and not files:
        raise InvalidInput(
            "--groups, --raw, --keep-empty, --shuffle and --permute-at are for query-document "
            "lists alone, and need FILEs."
        )
    changes: dict[str, Any] = {
        "world": [str(path) for path in files] if files else world or "flips",
        "measure": measure,  # None: what is usual for the kind of list
        "world_options": of_world | shown_how,
        "measure_options": of_measure,
    }
    asked = replace(experiment, **changes)
    taking_part = contest(asked, names, against or [], options, price)
    if out is not None:
        check_figures()
    with output_folder(out) as folder:
        n_games = len(taking_part.contenders) + len(taking_part.again)
        total = asked.work * n_games
        with progress_bar("comparing", total, quiet=as_json) as advance:
            comparison = taking_part.play(lambda _: advance)
        record = comparison.as_dict()
        if folder is not None:
            _write(comparison, record, folder)
        if as_json:
            print_json(record)
            return
        _print(comparison, record)
        if folder is not None:
            say(f"Figure and results are in {folder}.")


def _names(rankers: str | None) -> list[str] | None:
    """Return the rankers of --rankers, or raise if one is named twice or there is none."""
    if rankers is None:
        return None
    names = [name.strip() for name in rankers.split(",")]
    if "" in names or len(set(names)) < len(names):
        raise InvalidInput(
            f"--rankers must be different names with commas between them, got {shown(rankers)}."
        )
    for name in names:
        RANKERS.find(name)
    return names


def _write(comparison: Comparison, record: Any, folder: Path) -> None:
    played, curves = comparison.contest.built, comparison.curves
    label = played.measure.label
    what = "lists" if played.world.n_features else f"{played.world.n_items} items"
    title = f"{label}, {what}, {_where(played.experiment.world)}, {reveal_name(record['sees'])}"
    write_atomically(folder / "results.json", to_json(record).encode())
    write_atomically(folder / "curves.csv", curves_csv(curves, comparison.axes))
    save_comparison(
        folder, "compare", title, curves, comparison.axes, label, comparison.verdict
    )  # fmt: skip


def _where(world: str | list[str]) -> str:
    """Return a short name of a world."""
    names = [source_name(name) for name in (world if isinstance(world, list) else [world])]
    return ", ".join(names[:2]) + (", …" if len(names) > 2 else "")


def _paid(prices: tuple[Price | None, Price | None] | None) -> str:
    """Return how many times the regret of the best that sees all, for a table."""
    return "" if prices is None or prices[0] is None else str(prices[0])


def _print(comparison: Comparison, record: Any) -> None:
    what = "regret" if comparison.knows_regret else "score"
    lower = lower_is_better(what == "score" and comparison.contest.built.measure.is_loss)
    rows = []
    for row in record["rankers"]:
        low, high = row["worse_by_interval"] or (None, None)
        is_apart = low is not None and row["ranker"] != record["best"]
        paid = comparison.prices.get(row["ranker"])
        rows.append(
            (
                escape(row["ranker"]),
                shown_number(row[f"average_{what}"], row[f"average_{what}_error"]),
                *((_paid(paid),) if comparison.prices else ()),
                f"{low:.4f} to {high:.4f}" if is_apart else "",
                row["standing"] or f"sees {row['sees']}",
            )
        )
    prices = ("times who sees all>",) if comparison.prices else ()
    show_table(
        escape(f"{record['measure']}; all see {record['sees']}{lower}"),
        ("ranker", f"average {what}>", *prices, "worse than the best by>", "verdict"),
        rows,
    )
    for sentence in record["verdict"]:
        say(f"{sentence}.")
    notes = [*record["notes"], *(note for row in record["rankers"] for note in row["notes"])]
    for note in dict.fromkeys(notes):
        say(f"Note: {note}.")
    for name, why in record["left_out"].items():
        say(f" {why}", f"{name} does not fit:", "dim")
