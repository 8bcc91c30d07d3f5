"""Query-document lists as Vowpal Wabbit's cost-sensitive examples, for ``vw --csoaa_ldf``.

A line is a document, ``place:cost 'query | 1:value 2:value …``, and an empty line ends a list. A
cost is a grade negated, features are numbered from 1 as in LETOR files, and the tag is the query.
Logs of bandit feedback go both ways in :mod:`keyhole.data`.
"""

import re
from pathlib import Path

import numpy as np

from keyhole.base.errors import InvalidInput
from keyhole.base.limits import check_memory
from keyhole.data.bandit.tables import write_text
from keyhole.data.bandit.vowpal_wabbit import Line, read_blocks
from keyhole.data.letor.queries import QuerySet


def write_lists(queries: QuerySet, path: Path | str) -> None:
    """Write query-document lists, gzipped if the name ends with .gz; features of 0 are left out."""
    lines = []
    for index, name in enumerate(queries.query_ids):
        features, grades = queries.query(index)
        tag = re.sub(r"[\s|]", "_", name)  # what would end a tag
        for place, (row, grade) in enumerate(zip(features, grades, strict=True), 1):
            words = [f"{i + 1}:{float(row[i])!r}" for i in np.flatnonzero(row).tolist()]
            label = f"{place}:{0.0 - float(grade)!r} '{tag}"
            lines.append(" ".join([label, "|", *words]))
        lines.append("")
    write_text(path, "\n".join(lines) + "\n")


def read_lists(path: Path | str, *, n_features: int | None = None) -> QuerySet:
    """Read query-document lists, plain or compressed.

    Lists without a tag are called by their number, from 1. ``n_features`` is by default the highest
    number of a feature.
    """
    path = Path(path)
    blocks = read_blocks(path)
    lines = [line for block in blocks for line in block]
    columns = [_columns(path, line) for line in lines]
    highest = max((max(row, default=0) for row in columns), default=0)
    width = highest if n_features is None else n_features
    if width < highest:
        raise InvalidInput(f"{path}: a feature must be at most n_features={width}, got {highest}.")
    check_memory(8.0 * len(lines) * width, f"The documents of {path}")
    features = np.zeros((len(lines), width))
    for index, row in enumerate(columns):
        for column, value in row.items():
            features[index, column - 1] = value
    return QuerySet(
        features,
        np.array([_grade(path, line) for line in lines]),
        np.concatenate([[0], np.cumsum([len(block) for block in blocks])]),
        tuple(block[0].tag or str(number) for number, block in enumerate(blocks, 1)),
        0,
    )


def _columns(path: Path, line: Line) -> dict[int, float]:
    for name in line.features:
        if not name.isdecimal() or int(name) < 1:
            raise InvalidInput(
                f"{path}, line {line.number}: a feature must be a number from 1, got {name!r}."
            )
    return {int(name): value for name, value in line.features.items()}


def _grade(path: Path, line: Line) -> float:
    parts = line.labels[0].split(":") if len(line.labels) == 1 else []
    try:
        _, cost = parts
        grade = 0.0 - float(cost)
    except ValueError:
        grade = np.nan
    if not grade >= 0.0:
        raise InvalidInput(
            f"{path}, line {line.number}: a document must have one label place:cost, whose cost is "
            f"a grade negated, got {' '.join(line.labels)!r}."
        )
    return grade
