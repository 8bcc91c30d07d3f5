"""The command that learns from query-document lists."""

from pathlib import Path
from typing import Annotated, Any

import typer

from keyhole.base.errors import InvalidInput, check_integer, check_number, check_seed
from keyhole.base.files import check_file
from keyhole.cli.exit_codes import one_sentence
from keyhole.cli.learn_report import Learnt, print_results, record_of, say_where, write_results
from keyhole.cli.settings import SettingsFile
from keyhole.cli.terminal import (
    Json,
    output_folder,
    parse_options,
    print_json,
    progress_bar,
    short_name,
)
from keyhole.contracts.measures import Measure
from keyhole.contracts.registry import options_of
from keyhole.data.letor.queries import QuerySet
from keyhole.data.letor.reader import letor_columns, read_letor
from keyhole.game.play import play
from keyhole.game.stream import LetorStream
from keyhole.lab.figures.canvas import check_figures
from keyhole.lab.heldout import held_out_scores, read_held_out
from keyhole.lab.kinds.lists import (
    feedback_of,
    how_to_read,
    make_ranker,
    ranker_of_lists,
)
from keyhole.measures import measure as named_measure
from keyhole.rankers.lists.models import model_arrays, save_model
from keyhole.reveals import least_reveal
from keyhole.reveals.top import Top
from keyhole.worlds.queries import Queries

Files = Annotated[
    list[Path], typer.Argument(help="LETOR or SVMLight files, also .gz/.bz2/.xz.", metavar="FILE…")
]
Groups = Annotated[
    list[Path] | None,
    typer.Option("--groups", help="Group file of each FILE that has no qid: (list lengths)."),
]
Raw = Annotated[
    bool, typer.Option("--raw", help="Features as they are; default: min-max within each query.")
]


KeepEmpty = Annotated[
    bool, typer.Option("--keep-empty", help="Keep queries without a relevant document.")
]
Shuffle = Annotated[
    bool,
    typer.Option(
        "--shuffle",
        help="Shuffle the documents of each list: ties go to the first, and files may be sorted "
        "by label.",
    ),
]
LabelNoise = Annotated[
    float,
    typer.Option(help="Share of the labels revealed that are a grade at random; scores are true."),
]
PermuteAt = Annotated[
    float | None,
    typer.Option(
        help="After this share of the rounds, such as 0.5, the documents of each list have each "
        "other's labels."
    ),
]


def round_of(share: float, rounds: int) -> int:
    """Return the round that a share of all rounds ends with, or raise."""
    check_integer(rounds, "rounds", at_least=1)
    return round(check_number(share, "--permute-at", above=0.0, at_most=1.0) * rounds)


def _ranker_options(ranker: str, surrogate: str | None, settings: list[str]) -> dict[str, Any]:
    """Return the options of a ranker, its surrogate as a mapping if that has options too."""
    parsed = parse_options(settings, ("ranker", "surrogate"))
    options, of_surrogate = parsed["ranker"], parsed["surrogate"]
    if surrogate is not None:
        options["surrogate"] = surrogate
    if of_surrogate:
        name = options.get("surrogate", options_of(ranker_of_lists(ranker)).get("surrogate"))
        options["surrogate"] = {"name": name, **of_surrogate}
    return options


def _contenders(ranker: str | None, *, papers: bool) -> list[str]:
    """Return who learns: by default our own with the papers' algorithm, or that one alone."""
    if ranker is not None:
        return [ranker]
    return ["contextual-rtopk"] if papers else ["recall", "contextual-rtopk"]


def learn_command(
    files: Files,
    ranker: Annotated[
        str | None,
        typer.Option(
            help="A name of 'keyhole list', or file.py:Class or module:Class for one of your own. "
            "Default: recall, with the papers' contextual-rtopk beside it; that one alone where a "
            "--surrogate or a --model is asked for, which recall has not."
        ),
    ] = None,
    surrogate: Annotated[
        str | None,
        typer.Option(help="What contextual-rtopk or listnet descends: kl, squared, ranksvm, …"),
    ] = None,
    top: Annotated[
        int | None,
        typer.Option(
            help="Documents revealed per list, all of which contextual-rtopk then learns from. "
            "Default: the fewest that do. The other rankers see all or none."
        ),
    ] = None,
    measures: Annotated[
        list[str] | None,
        typer.Option(
            "--measure",
            help="How lists are judged: NDCG@10 (default), … With --test it may be repeated: the "
            "lists held out are judged by all, those learnt from by the first.",
        ),
    ] = None,
    rounds: Annotated[int | None, typer.Option(help="Lists to show.")] = None,
    passes: Annotated[int | None, typer.Option(help="Passes over all queries, instead.")] = None,
    runs: Annotated[
        int, typer.Option(help="Runs, each with lists in another order; the mean is reported.")
    ] = 1,
    seed: Annotated[int, typer.Option(help="Everything random follows from it.")] = 0,
    test: Annotated[
        list[Path] | None,
        typer.Option(
            help="Lists held out: judge what was learnt on this file, of which nothing is learnt; "
            "repeatable."
        ),
    ] = None,
    groups: Groups = None,
    test_groups: Annotated[
        list[Path] | None,
        typer.Option(help="Group file of each --test that has no qid: (list lengths)."),
    ] = None,
    raw: Raw = False,
    keep_empty: KeepEmpty = False,
    shuffle: Shuffle = False,
    label_noise: LabelNoise = 0.0,
    permute_at: PermuteAt = None,
    stream: Annotated[
        bool,
        typer.Option(
            "--stream",
            help="For files larger than memory: read, learn and drop a chunk of queries at a "
            "time. Lists are then shuffled within a chunk only.",
        ),
    ] = False,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="OWNER.NAME=VALUE",
            help="Any other option of the ranker or of its surrogate, such as ranker.mix=0.2 or "
            "surrogate.max_grade=4.",
        ),
    ] = None,
    model: Annotated[
        Path | None, typer.Option(help="Save the scorer here, for keyhole rank.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for learn.png, learn.svg, curves.csv, results.json."),
    ] = None,
    settings_file: SettingsFile = None,
    as_json: Json = False,
) -> None:
    """Learn a ranker online from query-document lists.

    Every round a query's documents are shown in an order, the relevance of the first few is
    revealed, and the ranker learns. The score is the running mean over the lists as they were
    shown; beside it, that of the lists it would have shown had it never explored. What it has
    learnt in the end is judged on lists held out, with --test.

        keyhole learn train.txt --top 1

        keyhole learn train.txt --test test.txt --measure NDCG@10 --measure AP --out out

        keyhole learn train.txt --surrogate kl --top 1 --rounds 100000 --model m.npz

        keyhole learn train.txt --surrogate ordinal --set surrogate.max_grade=4 --top 5

        keyhole rank m.npz test.txt
    """
    with one_sentence():
        ranker, *beside = _contenders(ranker, papers=surrogate is not None or model is not None)
        options = _ranker_options(ranker, surrogate, settings or [])
        _check_numbers(rounds=rounds, passes=passes, top=top, runs=runs)
        check_seed(seed)
        check_number(label_noise, "--label-noise", at_least=0.0, at_most=1.0)
        if runs > 1 and model is not None:
            raise InvalidInput(f"--runs must be 1 where a --model is saved, got {runs}.")
        if stream and (shuffle or permute_at is not None):
            raise InvalidInput("--shuffle and --permute-at need lists in memory, without --stream.")
        judges = _judges(measures or ["NDCG@10"], test, test_groups)
        if out is not None:
            check_figures()
        with output_folder(None if model is None else model.parent), output_folder(out) as folder:
            if model is not None:
                check_file(model, "--model")
            how = how_to_read(groups, raw=raw, keep_empty=keep_empty)
            queries = LetorStream(files, **how) if stream else read_letor(files, **how)
            how = how_to_read(test_groups, raw=raw, keep_empty=keep_empty)
            held_out = read_held_out(test, files, queries.n_features, how) if test else None
            if passes is not None:
                rounds = queries.n_queries * passes
            rounds = 100_000 if rounds is None else rounds
            change = None if permute_at is None else round_of(permute_at, rounds)
            document_seed = seed if shuffle else None
            world = _world(queries, document_seed, change)
            chosen = make_ranker(ranker, world, options, top=top, seed=seed)
            if model is not None:
                model_arrays(chosen, chosen.state._asdict())  # what cannot be saved is not learnt
            contenders = {name: make_ranker(name, world, {}, top=top, seed=seed) for name in beside}
            learnt = []
            for name, contender in {ranker: chosen, **contenders}.items():
                shown_to = least_reveal(contender.depth, world.n_items) if top is None else Top(top)
                with progress_bar(name, rounds * runs, quiet=as_json) as advance:
                    trace = play(
                        contender, world, measure=judges[0],
                        reveal=feedback_of(shown_to, label_noise, world),
                        rounds=rounds, seed=seed, runs=runs, progress=advance,
                    )  # fmt: skip
                scores = held_out_scores(contender, trace.states, held_out, judges, document_seed)
                learnt.append(Learnt(name, options if name == ranker else {}, trace, scores))
            if model is not None:
                first_index = letor_columns(files)[0]
                save_model(model, chosen, learnt[0].trace.states[0], not raw, first_index)
            records = [record_of(each, queries, held_out, judges, seed, change) for each in learnt]
            record = {
                **records[0],
                **({} if model is None else {"model": str(model)}),
                "against": records[1:],
            }
            if folder is not None:
                write_results(folder, learnt, record, judges[0], _title(judges[0], files))
            if as_json:
                print_json(record)
            else:
                print_results(records)
                say_where(model, folder)


def _check_numbers(**given: int | None) -> None:
    """Raise if a number of rounds and the like is none, or if rounds are counted in two ways."""
    if given["rounds"] is not None and given["passes"] is not None:
        raise InvalidInput("At most one of --rounds and --passes can be given.")
    for name, number in given.items():
        if number is not None:
            check_integer(number, name, at_least=1)


def _world(
    queries: QuerySet | LetorStream, document_seed: int | None, change: int | None
) -> LetorStream | Queries:
    """Return the lists to learn from as they are shown."""
    if isinstance(queries, LetorStream):
        return queries
    return Queries(
        queries.features, queries.relevance, queries.starts,
        document_seed=document_seed, permute_at=change,
    )  # fmt: skip


def _judges(
    names: list[str], test: list[Path] | None, test_groups: list[Path] | None
) -> list[Measure]:
    """Return the measures asked for, the first of which judges the lists learnt from, or raise."""
    judges = [named_measure(name) for name in names]
    labels = [judge.label for judge in judges]
    if len(set(labels)) < len(labels):
        raise InvalidInput(f"--measure must be different measures, got {', '.join(labels)}.")
    if len(judges) > 1 and not test:
        raise InvalidInput(
            f"--measure can be repeated for lists held out, with --test, got {', '.join(labels)}."
        )
    if test_groups and not test:
        raise InvalidInput("--test-groups needs the --test that it is about.")
    return judges


def _title(measure: Measure, files: list[Path]) -> str:
    names = [short_name(path.name) for path in files[:2]] + ["…"] * (len(files) > 2)
    return f"{measure.label}, lists of {', '.join(names)}"
