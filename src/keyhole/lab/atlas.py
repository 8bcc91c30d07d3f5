"""The atlas: which measures can be learnt from the top k, for many games at once."""

import csv
import io
import itertools
import multiprocessing
import signal
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, astuple, dataclass, fields, replace
from functools import partial
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any

from keyhole.base.errors import InvalidInput
from keyhole.base.threads import n_cores
from keyhole.lab.result_store import Store
from keyhole.measures import measure as named_measure
from keyhole.monitoring.classification import RATES
from keyhole.monitoring.games import Game, check_ranking_game, is_enumerable
from keyhole.monitoring.hopeless import best_witness
from keyhole.monitoring.observability import solve_game
from keyhole.monitoring.rules import rule_for

MEASURES = (
    "SumLoss", "PairwiseLoss", "InversionLoss", "DCG", "DCG@2", "Precision@1", "Precision@2",
    "NDCG", "NDCG@2", "AP", "AUC", "RR", "ERR", "Recall@1", "Recall@2",
)  # fmt: skip
"""Measures of the atlas where none are named."""
SHORT = {"T": "T", "T^(2/3)": "T^2/3", "T^(1/2)": "T^1/2", "0": "0", "unknown": "?"}
"""Rates as tables and figures show them."""

# Most rankings times relevance vectors: five items of three grades take seconds, six of two
# minutes. The linear programs behind a constant take longer still.
_ENUMERATED = 30_000
_WITH_CONSTANTS = 4_000
_MOST_ACROSS = 150

Done = Callable[[int], None]
"""Called with the number of entries just finished."""


@dataclass(frozen=True, order=True)
class Column:
    """A measure on lists of one length and number of grades: an entry for each k."""

    measure: str
    items: int
    grades: int


@dataclass(frozen=True)
class Entry:
    """The class of one game.

    ``by_rule`` is what the rule says, whatever the source; ``constant`` is the regret per
    round that a hopeless game forces, where it was computed.
    """

    measure: str
    items: int
    top: int
    grades: int
    class_: str
    source: str | None
    exact: bool
    constant: float | None
    by_rule: str

    @property
    def rate(self) -> str:
        """The order of the regret in the number of rounds T."""
        return RATES[self.class_]

    @property
    def is_disputed(self) -> bool:
        """Whether enumeration and a rule both answer, and differ."""
        return self.by_rule not in (self.class_, "unknown")


@dataclass(frozen=True)
class Atlas:
    """All entries, and how many of them were finished before."""

    entries: tuple[Entry, ...]
    n_resumed: int = 0

    @property
    def disputed(self) -> list[Entry]:
        """Entries where a rule and enumeration disagree."""
        return [entry for entry in self.entries if entry.is_disputed]


def columns_of(
    measures: Sequence[str], items: Sequence[int], grades: Sequence[int]
) -> list[Column]:
    """Return the columns of an atlas, each once, or raise where one makes no sense."""
    if sum(set(items)) > _MOST_ACROSS:
        raise InvalidInput(
            f"items must add up to at most {_MOST_ACROSS} columns of a figure, got "
            f"{sum(set(items))}."
        )
    found = [Column(*each) for each in itertools.product(measures, items, grades)]
    for column in found:
        check_ranking_game(column.measure, column.items, 1, column.grades)
    return list(dict.fromkeys(found))


def fill_column(column: Column) -> list[Entry]:
    """Classify the games of a column: by enumeration if they are small, otherwise by rule.

    Examples
    --------
    >>> [entry.rate for entry in fill_column(Column("NDCG", 1000, 2))][-3:]
    ['T', 'T^(2/3)', 'T^(1/2)']
    """
    name, n_items, grades = astuple(column)
    rule = rule_for(named_measure(name), n_items, grades)
    entries = []
    for k in range(1, n_items + 1):
        by_rule = "unknown" if rule is None else rule.class_at(k)
        entry = Entry(name, n_items, k, grades, by_rule, None, False, None, by_rule)
        if is_enumerable(n_items, grades, _ENUMERATED):
            entry = _enumerated(entry)
        elif by_rule != "unknown":
            entry = replace(entry, source="rule", exact=True)
        entries.append(entry)
    return entries


def _enumerated(entry: Entry) -> Entry:
    solution = solve_game(Game.of(entry.measure, entry.items, entry.top, entry.grades))
    constant = None
    if solution.class_ == "hopeless" and is_enumerable(entry.items, entry.grades, _WITH_CONSTANTS):
        witness = best_witness(solution.game)
        constant = None if witness is None else float(witness.constant)
    return replace(
        entry,
        class_=solution.class_,
        source="enumeration",
        exact=solution.is_exact,
        constant=constant,
    )


# --------------------------------------------------------------------------- many at once


def make_atlas(
    columns: Sequence[Column], folder: Path, done: Done | None = None, workers: int | None = None
) -> Atlas:
    """Return all columns, made on all cores and kept in ``folder`` as they finish."""
    store = Store(folder)
    found = {c: store.load(asdict(c), partial(_entries, c)) for c in columns}
    finished = {column: entries for column, entries in found.items() if entries is not None}
    n_resumed = sum(len(entries) for entries in finished.values())
    if done is not None:
        done(n_resumed)
    # The longest first, so that no core is left alone with one of them at the end.
    missing = sorted((c for c in columns if c not in finished), key=_size, reverse=True)
    for column, entries in _filled(missing, workers or n_cores()):
        store.save(asdict(column), [asdict(entry) for entry in entries])
        finished[column] = entries
        if done is not None:
            done(len(entries))
    return Atlas(tuple(entry for column in columns for entry in finished[column]), n_resumed)


def _entries(column: Column, kept: list[dict[str, Any]]) -> list[Entry]:
    """Return the entries of a column as they were kept, or raise unless there is one for each k."""
    entries = [Entry(**fields) for fields in kept]
    games = [(entry.measure, entry.items, entry.grades, entry.top) for entry in entries]
    if games != [(*astuple(column), k) for k in range(1, column.items + 1)]:
        raise InvalidInput("The entries of a column must be of its games.")
    for entry in entries:
        _ = entry.rate, RATES[entry.by_rule]  # names of classes, or an error
    return entries


def _size(column: Column) -> float:
    small = is_enumerable(column.items, column.grades, _ENUMERATED)
    return (column.grades * column.items) ** column.items if small else 0


def _filled(columns: list[Column], workers: int) -> Iterator[tuple[Column, list[Entry]]]:
    if workers == 1 or sum(_size(column) > 0 for column in columns) <= 1:
        yield from ((column, fill_column(column)) for column in columns)
        return
    # Processes: the work is in Python's own fractions. Spawned: compiled code has threads.
    # This process deals with Ctrl-C: the others never hear of it, not even while they begin.
    resource_tracker.ensure_running()  # when it begins, it lets interrupts through again
    heard = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        pool = multiprocessing.get_context("spawn").Pool(workers)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, heard)
    with pool:
        yield from pool.imap_unordered(_fill, columns)


def _fill(column: Column) -> tuple[Column, list[Entry]]:
    return column, fill_column(column)


# --------------------------------------------------------------------------- tables


def atlas_csv(atlas: Atlas) -> bytes:
    """Return all entries as CSV."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    heads = [field.name.rstrip("_") for field in fields(Entry)]
    heads.insert(heads.index("source"), "rate")
    heads.remove("by_rule")
    writer.writerow(heads)
    for entry in atlas.entries:
        values = {**asdict(entry), "class": entry.class_, "rate": entry.rate}
        values["exact"] = str(entry.exact).lower()
        writer.writerow(["" if values[head] is None else values[head] for head in heads])
    return text.getvalue().encode()


def atlas_markdown(atlas: Atlas) -> str:
    """Return one table per number of grades: a row per measure, a column per m with all its k.

    Examples
    --------
    >>> print(atlas_markdown(Atlas(tuple(fill_column(Column("NDCG", 4, 2))))))
    Two grades:
    <BLANKLINE>
    | measure | m = 4 |
    |---|---|
    | NDCG | T, T, T^2/3, T^1/2 |
    <BLANKLINE>
    """
    rows: dict[tuple[int, str, int], list[str]] = {}
    for entry in atlas.entries:
        key = (entry.grades, entry.measure, entry.items)
        rows.setdefault(key, []).append(SHORT[entry.rate])
    measures = list(dict.fromkeys(entry.measure for entry in atlas.entries))
    items = sorted({entry.items for entry in atlas.entries})
    parts = []
    for grades in sorted({entry.grades for entry in atlas.entries}):
        lines = [
            f"{grades_in_words(grades)}:\n",
            f"| measure | {' | '.join(f'm = {m}' for m in items)} |",
            "|---" * (len(items) + 1) + "|",
        ]
        for name in measures:
            row = [", ".join(rows.get((grades, name, m), [])) for m in items]
            lines.append(f"| {name} | {' | '.join(row)} |")
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def grades_in_words(grades: int) -> str:
    """Return ``Two grades`` and the like."""
    words = {2: "Two", 3: "Three", 4: "Four", 5: "Five"}
    return f"{words.get(grades, grades)} grades"
