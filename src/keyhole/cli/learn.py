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
from keyhole.errors import InvalidInput, check_integer, check_number, check_seed
from keyhole.files import check_file, plain
from keyhole.game import LetorStream, Trace, play
from keyhole.lab.kinds.lists import (
    feedback_of,
    how_to_read,
    make_ranker,
    ranker_of_lists,
)
from keyhole.measures import measure as named_measure
from keyhole.rankers.lists.models import model_arrays, save_model
from keyhole.registry import options_of
from keyhole.reveals import Top, least_reveal
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
    measure: Annotated[str, typer.Option(help="How lists are judged.")] = "NDCG@10",
    rounds: Annotated[int | None, typer.Option(help="Lists to show.")] = None,
    passes: Annotated[int | None, typer.Option(help="Passes over all queries, instead.")] = None,
    runs: Annotated[
        int, typer.Option(help="Runs, each with lists in another order; the mean is reported.")
    ] = 1,
    seed: Annotated[int, typer.Option(help="Everything random follows from it.")] = 0,
    groups: Groups = None,
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
    as_json: Json = False,
) -> None:
    """Learn a ranker online from query-document lists.

    Every round a query's documents are shown in an order, the relevance of the first few is
    revealed, and the ranker learns. The score is the running mean over the lists as they were
    shown; beside it, that of the lists it would have shown had it never explored.

        keyhole learn train.txt --top 1

        keyhole learn train.txt --surrogate kl --top 1 --rounds 100000 --model m.npz

        keyhole learn train.txt --surrogate ordinal --set surrogate.max_grade=4 --top 5

        keyhole rank test.txt --model m.npz
    """
    with one_sentence():
        ranker, *beside = _contenders(ranker, papers=surrogate is not None or model is not None)
        options = _ranker_options(ranker, surrogate, settings or [])
        if rounds is not None and passes is not None:
            raise InvalidInput("At most one of --rounds and --passes can be given.")
        for given, name in (
            (rounds, "rounds"), (passes, "passes"), (top, "top"), (runs, "runs"),
        ):  # fmt: skip
            if given is not None:
                check_integer(given, name, at_least=1)
        check_seed(seed)
        check_number(label_noise, "--label-noise", at_least=0.0, at_most=1.0)
        if runs > 1 and model is not None:
            raise InvalidInput(f"--runs must be 1 where a --model is saved, got {runs}.")
        if stream and (shuffle or permute_at is not None):
            raise InvalidInput("--shuffle and --permute-at need lists in memory, without --stream.")
        named_measure(measure)
        with output_folder(None if model is None else model.parent):
            if model is not None:
                check_file(model, "--model")
            how = how_to_read(groups, raw=raw, keep_empty=keep_empty)
            queries = LetorStream(files, **how) if stream else read_letor(files, **how)
            if passes is not None:
                rounds = queries.n_queries * passes
            rounds = 100_000 if rounds is None else rounds
            change = None if permute_at is None else round_of(permute_at, rounds)
            world = (
                queries
                if isinstance(queries, LetorStream)
                else Queries(
                    queries.features, queries.relevance, queries.starts,
                    document_seed=seed if shuffle else None, permute_at=change,
                )
            )  # fmt: skip
            chosen = make_ranker(ranker, world, options, top=top, seed=seed)
            if model is not None:
                model_arrays(chosen, chosen.state._asdict())  # what cannot be saved is not learnt
            contenders = {name: make_ranker(name, world, {}, top=top, seed=seed) for name in beside}
            records = []
            for name, contender in {ranker: chosen, **contenders}.items():
                shown_to = least_reveal(contender.depth, world.n_items) if top is None else Top(top)
                with progress_bar(name, rounds * runs, quiet=as_json) as advance:
                    result = play(
                        contender, world, measure=measure,
                        reveal=feedback_of(shown_to, label_noise, world),
                        rounds=rounds, seed=seed, runs=runs, progress=advance,
                    )  # fmt: skip
                if model is not None:
                    save_model(model, contender, result.states[0], minmax=not raw)
                record = _record(result, queries, name, measure, seed)
                records.append({**record, "options": options, **_after(result, change)})
                options = {}
            if as_json:
                print_json({**records[0], "against": records[1:]})
            else:
                _print(records)


def _record(
    result: Trace,
    queries: QuerySet | LetorStream,
    ranker: str,
    measure: str,
    seed: int,
) -> Any:
    curve = zip(result.rounds, result.scores.mean(axis=0) / result.rounds, strict=True)
    return plain(
        {
            "average_score": result.average_score.mean,
            "average_score_error": result.average_score.error,
            "average_greedy_score": result.average_greedy_score.mean,
            "curve": [[int(t), float(score)] for t, score in curve],
            "ranker": ranker,
            "measure": str(named_measure(measure)),
            "rounds": int(result.rounds[-1]),
            "runs": result.n_runs,
            "seed": seed,
            "queries": queries.n_queries,
            "documents": queries.n_documents,
            "features": queries.n_features,
            "dropped_queries": queries.n_dropped,
            "seconds": result.seconds,
            "version": keyhole.__version__,
        }
    )


def _after(result: Trace, change: int | None) -> dict[str, Any]:
    """Return the score of the lists shown after labels were permuted, if they were."""
    if change is None:
        return {}
    first = int(np.searchsorted(result.rounds, change))
    if first >= len(result.rounds) - 1:
        return {"average_score_after": None}
    totals = result.scores[:, -1] - result.scores[:, first]
    n_after = int(result.rounds[-1] - result.rounds[first])
    return {"average_score_after": float(totals.mean()) / n_after}


def _print(records: list[Any]) -> None:
    rows = []
    for record in records:
        error = record["average_score_error"]
        rows.append(
            (
                escape(record["ranker"]),
                f"{record['rounds']:,}",
                f"{record['average_score']:.4f}" + ("" if error is None else f" ± {error:.4f}"),
                f"{record['average_greedy_score']:.4f}",
            )
        )
    first = records[0]
    show_table(
        escape(first["measure"]),
        ("ranker", "rounds>", "average score>", "without exploring>"),
        rows,
    )
    for record in records:
        if record.get("average_score_after") is not None:
            say(
                f"{record['ranker']}, after labels were permuted: "
                f"{record['average_score_after']:.4f}."
            )
    say(
        f"{first['queries']} queries, {first['documents']} documents, {first['features']} "
        f"features; {first['dropped_queries']} queries without a relevant document left out."
    )
