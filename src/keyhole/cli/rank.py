"""The command that ranks documents by a saved model."""

import sys
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from keyhole.cli.endings import one_sentence
from keyhole.cli.learn import Files, Groups
from keyhole.cli.terminal import Json, print_json
from keyhole.data import read_letor
from keyhole.errors import InvalidInput
from keyhole.kernels.sorting import sort_descending, sort_work
from keyhole.lab.kinds.lists import how_to_read
from keyhole.rankers.lists.models import load_model


def rank_command(
    files: Files,
    model: Annotated[Path, typer.Option(help="A scorer saved by keyhole learn.")],
    groups: Groups = None,
    as_json: Json = False,
) -> None:
    """Rank the documents of every query by a model's scores.

    Prints a line per query: its id and its documents, best first, numbered from 0 in the order
    of the file.
    """
    with one_sentence():
        scorer = load_model(model)
        queries = read_letor(files, **how_to_read(groups, raw=not scorer.minmax, keep_empty=True))
        if queries.n_features > scorer.n_features:
            raise InvalidInput(
                f"Documents must have at most the {scorer.n_features} features of {model}, got "
                f"{queries.n_features}."
            )
        work = sort_work(queries.largest)
        rankings: list[list[int]] = []
        for index in range(queries.n_queries):
            features, _ = queries.query(index)
            order = np.empty(len(features), dtype=np.int64)
            sort_descending(scorer.scores(features), order, work)
            rankings.append(order.tolist())
        if as_json:
            lines = [
                {"query": name, "ranking": ranking}
                for name, ranking in zip(queries.query_ids, rankings, strict=True)
            ]
            print_json(lines)
            return
        for name, ranking in zip(queries.query_ids, rankings, strict=True):
            sys.stdout.write(f"{name}\t{' '.join(map(str, ranking))}\n")
