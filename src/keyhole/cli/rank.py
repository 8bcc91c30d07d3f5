"""The command that ranks documents with a saved model."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer

from keyhole.base.errors import FloatArray, InvalidInput, check_choice, shown
from keyhole.cli.description_options import command
from keyhole.cli.terminal import Json, print_json
from keyhole.data.letor.documents import document_ids
from keyhole.data.letor.queries import QuerySet
from keyhole.data.letor.reader import read_letor
from keyhole.experiment.worlds import how_to_read
from keyhole.kernels.sorting import sort_descending, sort_work
from keyhole.rankers.lists.models import Model, load_model

FORMATS = ("tsv", "trec", "json")


class RankedQuery(NamedTuple):
    """The documents of a query, best first: positions in the file, ids and scores."""

    query: str
    ranking: list[int]
    documents: list[str]
    scores: FloatArray


@command()
def rank_command(
    files: Annotated[
        list[Path],
        typer.Argument(
            help="A model saved by keyhole learn, then LETOR or SVMLight files, also .gz/.bz2/.xz.",
            metavar="MODEL FILE…",
        ),
    ],
    model: Annotated[Path | None, "The model, if it is not the first argument."] = None,
    groups: Annotated[
        list[Path] | None, "Group file of each FILE that has no qid: (list lengths)."
    ] = None,
    form: Annotated[str, "tsv (a table), trec (a run for trec_eval) or json.", "--format"] = "tsv",
    tag: Annotated[str, "The tag of a TREC run."] = "keyhole",
    as_json: Json = False,
) -> None:
    """Rank the documents of every query by a model's scores.

    Prints a line per document with query, rank, document and score, best first. Document names
    come from comments (#docid = GX004-93), otherwise from the position in the query, from 0. In a
    TREC run, equal scores are changed in the last digit, so that trec_eval keeps the order.

        keyhole rank m.npz test.txt

        keyhole rank m.npz test.txt --format trec --tag kl > kl.run
    """
    form = "json" if as_json else check_choice(form, "--format", FORMATS)
    if not tag.isprintable() or len(tag.split()) != 1 or tag != tag.strip():
        raise InvalidInput(f"--tag must be one word, got {shown(tag)}.")
    if model is None:
        model, *files = files
        if not files:
            raise InvalidInput(f"A FILE to rank must follow the model, got only {model}.")
    scorer = load_model(model)
    how = how_to_read(groups, raw=not scorer.minmax, keep_empty=True)
    queries = read_letor(files, **{**how, "first_index": scorer.first_index})
    if queries.n_features > scorer.n_features:
        raise InvalidInput(
            f"Documents must have at most the {scorer.n_features} features of {model}, got "
            f"{queries.n_features}."
        )
    ranked = _rank(queries, document_ids(files), scorer)
    if form == "json":
        print_json([{**row._asdict(), "scores": row.scores.tolist()} for row in ranked])
        return
    lines = list(_trec_lines(ranked, tag) if form == "trec" else _table_lines(ranked))
    sys.stdout.write("".join(f"{line}\n" for line in lines))


def _rank(queries: QuerySet, ids: list[str | None], scorer: Model) -> list[RankedQuery]:
    """Return the documents of every query, sorted by score."""
    work, ranked = sort_work(queries.largest), []
    for index, name in enumerate(queries.query_ids):
        features, _ = queries.query(index)
        scores, order = scorer.scores(features), np.empty(len(features), dtype=np.int64)
        sort_descending(scores, order, work)
        places, first = order.tolist(), int(queries.starts[index])
        documents = [ids[first + place] or str(place) for place in places]
        ranked.append(RankedQuery(name, places, documents, scores[order]))
    return ranked


def _table_lines(ranked: list[RankedQuery]) -> Iterator[str]:
    yield "query\trank\tdocument\tscore"
    for row in ranked:
        for place, (document, score) in enumerate(zip(row.documents, row.scores, strict=True)):
            yield f"{row.query}\t{place + 1}\t{document}\t{float(score)!r}"


def _trec_lines(ranked: list[RankedQuery], tag: str) -> Iterator[str]:
    """Yield the lines of a run; raise if two queries or documents have the same name."""
    _check_different([row.query for row in ranked], "queries of all files")
    for row in ranked:
        _check_different(row.documents, f"documents of query {row.query}")
        scores = _told_apart(row.scores)
        for place, (document, score) in enumerate(zip(row.documents, scores, strict=True)):
            yield f"{row.query} Q0 {document} {place + 1} {score!s} {tag}"


def _check_different(names: list[str], what: str) -> None:
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidInput(f"--format trec needs different ids of the {what}, got {twice} twice.")


def _told_apart(scores: FloatArray) -> Any:
    """Return strictly descending float32 scores, the precision of trec_eval.

    It sorts equal scores by document id and would evaluate another ranking.
    """
    with np.errstate(over="ignore"):
        told = scores.astype(np.float32)
        for place in range(1, len(told)):
            if not told[place] < told[place - 1]:
                told[place] = np.nextafter(told[place - 1], np.float32(-np.inf))
    if not np.isfinite(told).all():
        raise InvalidInput(
            f"--format trec needs scores between -3.4e38 and 3.4e38, got "
            f"{scores[~np.isfinite(told)][0]:g}."
        )
    return told
