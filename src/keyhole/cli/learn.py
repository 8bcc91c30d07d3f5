"""The command that learns from query-document lists."""

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

import keyhole
from keyhole.cli.endings import one_sentence
from keyhole.cli.terminal import (
    Json,
    escape,
    output_folder,
    parse_options,
    print_json,
    progress_bar,
    say,
    show_table,
)
from keyhole.data import QuerySet, read_letor
from keyhole.errors import InvalidInput, check_integer, check_seed
from keyhole.files import check_file, plain
from keyhole.game import LetorStream, Trace, play
from keyhole.lab.kinds.lists import make_ranker, ranker_of_lists
from keyhole.measures import measure as named_measure
from keyhole.rankers.lists.models import model_arrays, save_model
from keyhole.registry import options_of
from keyhole.reveals import Top
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


def how_to_read(groups: list[Path] | None, raw: bool, keep: bool) -> dict[str, Any]:
    """Return how files are read."""
    return {
        "groups": groups or None,
        "dtype": np.float32,
        "normalise": None if raw else "minmax",
        "missing_relevant": "keep" if keep else "drop",
    }


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


def learn_command(
    files: Files,
    ranker: Annotated[
        str,
        typer.Option(
            help="A name of 'keyhole list', or file.py:Class or module:Class for one of your own."
        ),
    ] = "contextual-rtopk",
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
    measure: Annotated[str, typer.Option(help="How lists are judged.")] = "NDCG@10",
    rounds: Annotated[int | None, typer.Option(help="Lists to show.")] = None,
    passes: Annotated[int | None, typer.Option(help="Passes over all queries, instead.")] = None,
    seed: Annotated[int, typer.Option(help="Everything random follows from it.")] = 0,
    groups: Groups = None,
    raw: Raw = False,
    keep_empty: Annotated[
        bool, typer.Option("--keep-empty", help="Keep queries without a relevant document.")
    ] = False,
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
    as_json: Json = False,
) -> None:
    """Learn a ranker online from query-document lists.

    Every round a query's documents are shown in an order, the relevance of the first few is
    revealed, and the ranker learns. The score is the running mean over the lists as they were
    shown; beside it, that of the lists it would have shown had it never explored.

        keyhole learn train.txt --surrogate kl --top 1 --rounds 100000 --model m.npz

        keyhole learn train.txt --surrogate ordinal --set surrogate.max_grade=4 --top 5

        keyhole rank test.txt --model m.npz
    """
    with one_sentence():
        options = _ranker_options(ranker, surrogate, settings or [])
        if rounds is not None and passes is not None:
            raise InvalidInput("At most one of --rounds and --passes can be given.")
        for given, name in ((rounds, "rounds"), (passes, "passes"), (top, "top")):
            if given is not None:
                check_integer(given, name, at_least=1)
        check_seed(seed)
        named_measure(measure)
        with output_folder(None if model is None else model.parent):
            if model is not None:
                check_file(model, "--model")
            how = how_to_read(groups, raw, keep_empty)
            queries = LetorStream(files, **how) if stream else read_letor(files, **how)
            world = (
                queries
                if isinstance(queries, LetorStream)
                else Queries(queries.features, queries.relevance, queries.starts)
            )
            if passes is not None:
                rounds = world.n_queries * passes
            rounds = 100_000 if rounds is None else rounds
            chosen = make_ranker(ranker, world, options, top=top, seed=seed)
            if model is not None:
                model_arrays(chosen, chosen.state._asdict())  # what cannot be saved is not learnt
            with progress_bar(ranker, rounds, quiet=as_json) as advance:
                result = play(
                    chosen, world, measure=measure, reveal=None if top is None else Top(top),
                    rounds=rounds, seed=seed, progress=advance,
                )  # fmt: skip
            if model is not None:
                save_model(model, chosen, result.states[0], minmax=not raw)
            record = _record(result, queries, ranker, measure, seed, options)
            if as_json:
                print_json(record)
            else:
                _print(record)


def _record(
    result: Trace,
    queries: QuerySet | LetorStream,
    ranker: str,
    measure: str,
    seed: int,
    options: Any,
) -> Any:
    curve = zip(result.rounds, result.scores[0] / result.rounds, strict=True)
    return plain(
        {
            "average_score": result.average_score.mean,
            "average_greedy_score": result.average_greedy_score.mean,
            "curve": [[int(t), float(score)] for t, score in curve],
            "ranker": ranker,
            "options": options,
            "measure": str(named_measure(measure)),
            "rounds": int(result.rounds[-1]),
            "seed": seed,
            "queries": queries.n_queries,
            "documents": queries.n_documents,
            "features": queries.n_features,
            "dropped_queries": queries.n_dropped,
            "seconds": result.seconds,
            "version": keyhole.__version__,
        }
    )


def _print(record: Any) -> None:
    row = (
        escape(record["ranker"]),
        f"{record['rounds']:,}",
        f"{record['average_score']:.4f}",
        f"{record['average_greedy_score']:.4f}",
    )
    show_table(
        escape(record["measure"]),
        ("ranker", "rounds>", "average score>", "without exploring>"),
        [row],
    )
    say(
        f"{record['queries']} queries, {record['documents']} documents, {record['features']} "
        f"features; {record['dropped_queries']} queries without a relevant document left out."
    )
