"""The command that compares rankers on the same users."""

from pathlib import Path
from typing import Annotated, Any

import typer

from keyhole.base.errors import InvalidInput, check_number, shown
from keyhole.base.files import write_atomically
from keyhole.cli import csv_options
from keyhole.cli.csv_options import Grades, Ids, Missing, Threshold
from keyhole.cli.exit_codes import one_sentence
from keyhole.cli.learn import Groups, KeepEmpty, LabelNoise, PermuteAt, Raw, Shuffle, round_of
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
    to_json,
)
from keyhole.lab.compare import (
    Comparison,
    Contest,
    as_record,
    contest_of_games,
    contest_of_lists,
    play_contest,
)
from keyhole.lab.figures.canvas import check_figures
from keyhole.lab.figures.comparison import save_comparison
from keyhole.lab.figures.styles import reveal_name, source_name
from keyhole.lab.kinds.games import GameSpec, has_lists_that_change
from keyhole.lab.kinds.lists import ListSpec
from keyhole.lab.results import curves_csv
from keyhole.rankers import RANKERS
from keyhole.worlds import WORLDS


def compare_command(
    files: Annotated[
        list[Path] | None,
        typer.Argument(help="LETOR or SVMLight files of query-document lists.", metavar="[FILE…]"),
    ] = None,
    world: Annotated[
        str | None,
        typer.Option(
            help="Without FILEs: a world of 'keyhole list', or a .csv file of people by items. "
            "Default: flips."
        ),
    ] = None,
    rankers: Annotated[
        str | None,
        typer.Option(
            help="Which to compare, such as keystone,rtopk,random. Default: all that fit."
        ),
    ] = None,
    against: Annotated[
        list[str] | None,
        typer.Option(help="Also play this ranker, with all the feedback it needs; not judged."),
    ] = None,
    items: Annotated[int | None, typer.Option(help="Length of a fixed list.")] = None,
    top: Annotated[int, typer.Option(help="Positions revealed each round, to everybody.")] = 1,
    measure: Annotated[
        str | None,
        typer.Option(help="How rankings are judged. Default: DCG; NDCG@10 for FILEs."),
    ] = None,
    rounds: Annotated[int, typer.Option(help="Rounds of a run.")] = 10_000,
    runs: Annotated[int, typer.Option(help="Runs, each with other users.")] = 20,
    seed: Annotated[int, typer.Option(help="Everything random follows from it.")] = 0,
    threshold: Threshold = None,
    grades: Grades = None,
    missing: Missing = None,
    ids: Ids = None,
    groups: Groups = None,
    raw: Raw = False,
    keep_empty: KeepEmpty = False,
    shuffle: Shuffle = False,
    label_noise: LabelNoise = 0.0,
    permute_at: PermuteAt = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="OWNER.NAME=VALUE",
            help="Any option of the world, the measure or a ranker by its name, such as "
            "world.flip=0.2 or rtopk.eps_scale=0.1.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for compare.png, compare.svg, curves.csv, results.json."),
    ] = None,
    settings_file: SettingsFile = None,
    as_json: Json = False,
) -> None:
    """Compare every ranker that fits, on the same users, and say which is best.

    All rankers see the same positions of the same lists. They are sorted by average regret (or
    by the measure, where the best ranking is not known), and the verdict rests on intervals of
    their differences, paired by run, that hold for all pairs at once.

    On the thesis's game, with what full information would have given:

        keyhole compare --items 20 --against ftpl

    On people of your own, or query-document lists:

        keyhole compare --world ratings.csv --threshold 4

        keyhole compare train.txt --shuffle --rounds 20000 --against listnet
    """
    with one_sentence(options=csv_options.OPTIONS):
        owners = ("world", "measure", *RANKERS)
        options = parse_options(settings or [], owners)
        of_world, of_measure = options.pop("world"), options.pop("measure")
        of_world |= csv_options.given(threshold=threshold, grades=grades, missing=missing, ids=ids)
        names, beside = _names(rankers), against or []
        if files or _is_of_lists(world):
            spec = ListSpec(
                world=[str(path) for path in files] if files else str(world),
                measure=measure or "NDCG@10", rounds=rounds, top=top, runs=runs, seed=seed,
                noise=check_number(label_noise, "--label-noise", at_least=0.0, at_most=1.0),
                world_options={
                    **of_world,
                    **_shown(files, groups, raw, keep_empty, shuffle, permute_at, rounds, seed),
                },
            )  # fmt: skip
            if world is not None and files:
                raise InvalidInput(f"--world must not be given with FILEs, got {shown(world)}.")
            if items is not None or of_measure:
                raise InvalidInput("--items and measure.NAME are for fixed lists alone.")
            contest = contest_of_lists(spec, names, beside, options)
        else:
            if any((groups, raw, keep_empty, shuffle, label_noise, permute_at is not None)):
                raise InvalidInput(
                    "--groups, --raw, --keep-empty, --shuffle, --label-noise and --permute-at are "
                    "for query-document lists alone."
                )
            game = GameSpec(
                world=world or "flips", measure=measure or "DCG", items=items, rounds=rounds,
                top=top, runs=runs, seed=seed, world_options=of_world, measure_options=of_measure,
            )  # fmt: skip
            contest = contest_of_games(game, names, beside, options)
        if out is not None:
            check_figures()
        with output_folder(out) as folder:
            comparison = _play(contest, quiet=as_json)
            record = as_record(comparison)
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


def _is_of_lists(world: str | None) -> bool:
    return world is not None and world in WORLDS and has_lists_that_change(WORLDS[world])


def _shown(
    files: list[Path] | None,
    groups: list[Path] | None,
    raw: bool,
    keep_empty: bool,
    shuffle: bool,
    permute_at: float | None,
    rounds: int,
    seed: int,
) -> dict[str, Any]:
    """Return how the lists of files are read and shown, where that is not as always."""
    given: dict[str, Any] = {
        "groups": [str(path) for path in groups or []], "raw": raw, "keep_empty": keep_empty
    }  # fmt: skip
    if shuffle:
        given["document_seed"] = seed
    if permute_at is not None:
        given["permute_at"] = round_of(permute_at, rounds)
    chosen = {name: value for name, value in given.items() if value or name == "document_seed"}
    if chosen and not files:
        raise InvalidInput(
            "--groups, --raw, --keep-empty, --shuffle and --permute-at need the FILEs that they "
            "are about."
        )
    return chosen


def _play(contest: Contest, quiet: bool) -> Comparison:
    """Play with one progress bar for all."""
    total = contest.spec.work * len(contest.contenders)
    with progress_bar("comparing", total, quiet=quiet) as advance:
        return play_contest(contest, lambda _name: advance)


def _write(comparison: Comparison, record: Any, folder: Path) -> None:
    contest, curves = comparison.contest, comparison.curves
    label = contest.measure.label
    what = "lists" if contest.world.n_features else f"{contest.world.n_items} items"
    title = f"{label}, {what}, {_where(contest)}, {reveal_name(record['sees'])}"
    write_atomically(folder / "results.json", to_json(record).encode())
    write_atomically(folder / "curves.csv", curves_csv(curves, comparison.axes))
    save_comparison(
        folder, "compare", title, curves, comparison.axes, label, comparison.verdict
    )  # fmt: skip


def _where(contest: Contest) -> str:
    """Return a short name of the world."""
    world = contest.spec.world
    names = [source_name(name) for name in (world if isinstance(world, list) else [world])]
    return ", ".join(names[:2]) + (", …" if len(names) > 2 else "")


def _print(comparison: Comparison, record: Any) -> None:
    what = "regret" if comparison.knows_regret else "score"
    lower = lower_is_better(what == "score" and comparison.contest.measure.is_loss)
    rows = []
    for row in record["rankers"]:
        low, high = row["worse_by_interval"] or (None, None)
        is_apart = low is not None and row["ranker"] != record["best"]
        rows.append(
            (
                escape(row["ranker"]),
                _number(row[f"average_{what}"], row[f"average_{what}_error"]),
                f"{low:.4f} to {high:.4f}" if is_apart else "",
                row["standing"] or f"sees {row['sees']}",
            )
        )
    show_table(
        escape(f"{record['measure']}; all see {record['sees']}{lower}"),
        ("ranker", f"average {what}>", "worse than the best by>", "verdict"),
        rows,
    )
    for sentence in record["verdict"]:
        say(f"{sentence}.")
    notes = [*record["notes"], *(note for row in record["rankers"] for note in row["notes"])]
    for note in dict.fromkeys(notes):
        say(f"Note: {note}.")
    for name, why in record["left_out"].items():
        say(f" {why}", f"{name} does not fit:", "dim")


def _number(value: float | None, error: float | None) -> str:
    if value is None:
        return "not known"
    return f"{value:.4f}" if error is None else f"{value:.4f} ± {error:.4f}"
