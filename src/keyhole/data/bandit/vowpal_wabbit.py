"""Logs as Vowpal Wabbit's contextual bandits read and write them, in text.

``--cb`` has a line per row, ``action:cost:probability | features``. ``--cb_adf`` has a line
``shared | features`` and one for each action, that of the action taken with the label, and then an
empty line. Actions of ``--cb`` count from 1; a cost is a reward negated.
"""

import re
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from keyhole.base.errors import FloatArray, InvalidInput, check_choice
from keyhole.base.limits import check_memory
from keyhole.data.bandit.columns import UnusableRow
from keyhole.data.bandit.log import BanditLog
from keyhole.data.bandit.tables import write_text
from keyhole.data.packed import decoded, read_unpacked

FORMS = ("cb", "cb_adf")
_POSITION = "position="
"""The tag of a row whose action was not on the first place of a page."""
_SHARED = "shared"
_ACTIONS = "action"
"""The namespace of what actions are called."""


def write_vowpal_wabbit(log: BanditLog, path: Path | str, *, form: str = "cb") -> None:
    """Write a log for ``vw --cb`` or ``vw --cb_adf``; .gz is gzipped.

    Features that are 0 are left out. What the format gives a meaning to becomes ``_`` in names. A
    position other than the first is written as a tag, which Vowpal Wabbit does not look at.

    Parameters
    ----------
    form
        ``cb``: a line per row. ``cb_adf``: a line per action, each with its name as a feature.
    """
    check_choice(form, "`form`", FORMS)
    names = _plain(log.feature_names or _numbered_names(log.contexts.shape[1]), "feature_names")
    actions = _plain([log.name_of(a) for a in range(log.n_actions)], "action_names")
    lines = []
    for row in range(len(log)):
        context = log.contexts[row]
        features = " ".join(
            f"{names[i]}:{float(context[i])!r}" for i in np.flatnonzero(context).tolist()
        )
        position, action = int(log.positions[row]), int(log.actions[row])
        outcome = f"{0.0 - float(log.rewards[row])!r}:{float(log.propensities[row])!r}"
        tag = f" '{_POSITION}{position}" if position else ""
        if form == "cb":
            lines.append(f"{action + 1}:{outcome}{tag} | {features}".rstrip())
            continue
        lines.append(f"{_SHARED}{tag} | {features}".rstrip())
        for each, name in enumerate(actions):
            label = f"0:{outcome} " if each == action else ""
            lines.append(f"{label}|{_ACTIONS} {name}")
        lines.append("")
    write_text(path, "\n".join(lines) + "\n")


def read_vowpal_wabbit(
    path: Path | str, *, n_actions: int | None = None, feature_names: Sequence[str] | None = None
) -> BanditLog:
    """Read a log in either form, plain or compressed.

    Parameters
    ----------
    n_actions
        How many actions there are, where a file of ``--cb`` may not show the last of them.
    feature_names
        All features, in their order; by default those that occur, in the order in which they do.

    Notes
    -----
    Features of a namespace are called ``namespace^feature``, as Vowpal Wabbit itself reports them,
    and those without a value are 1. In a file of ``--cb_adf`` every row must have the same actions:
    a log has one set of them.
    """
    path = Path(path)
    blocks = read_blocks(path)
    has_actions = any(line.is_shared or not line.labels for line in blocks[0])
    if has_actions:
        examples = [_of_actions(path, block) for block in blocks]
        action_names = _check_actions(path, examples)
        n_actions = len(examples[0].actions)
    else:
        examples = [_of_line(path, line) for block in blocks for line in block]
        action_names = None
    contexts, names = _contexts(path, [each.features for each in examples], feature_names)
    try:
        return BanditLog.of(
            contexts,
            [each.action for each in examples],
            [0.0 - each.cost for each in examples],
            [each.probability for each in examples],
            n_actions=n_actions,
            positions=[each.position for each in examples],
            action_names=action_names,
            feature_names=names,
        )
    except UnusableRow as error:
        number = examples[error.row].number
        raise InvalidInput(f"{path}, line {number}: {error.reason}.") from None


class VowpalLine(NamedTuple):
    """A line that is not empty: labels and a tag before the first bar, features after it."""

    number: int
    is_shared: bool
    labels: list[str]
    tag: str
    features: dict[str, float]

    @property
    def position(self) -> int:
        """The position that a tag tells, or the first."""
        place = self.tag.removeprefix(_POSITION)
        return int(place) if place != self.tag and place.isdecimal() else 0


def read_blocks(path: Path) -> list[list[VowpalLine]]:
    """Return the lines of a file, plain or compressed, parted where lines are empty."""
    text = decoded(path, read_unpacked(path, "Vowpal Wabbit"), "Vowpal Wabbit")
    numbered = groupby(enumerate(text.split("\n"), 1), lambda line: not line[1].strip())
    blocks = [
        [_line_of(path, number, line) for number, line in group]
        for is_empty, group in numbered
        if not is_empty
    ]
    if not blocks:
        raise InvalidInput(f"{path} must have at least one row.")
    return blocks


class _Example(NamedTuple):
    """A row of a log, and the features of every action where the file has some."""

    number: int
    action: int
    cost: float
    probability: float
    position: int
    features: dict[str, float]
    actions: tuple[tuple[str, ...], ...] = ()


def _line_of(path: Path, number: int, text: str) -> VowpalLine:
    head, bar, rest = text.partition("|")
    words, tag = head.split(), ""
    if words and (words[-1].startswith("'") or (bar and _touches_the_bar(head, words[-1]))):
        tag = words.pop().removeprefix("'")
    labels = [word for word in words if word != _SHARED]
    features = _features(f"{path}, line {number}", rest) if bar else {}
    return VowpalLine(number, _SHARED in words, labels, tag, features)


def _touches_the_bar(head: str, word: str) -> bool:
    """Return whether the last word before a bar is a tag by having no space behind it."""
    return not head[-1].isspace() and ":" not in word and word != _SHARED


def _features(where: str, text: str) -> dict[str, float]:
    """Return the features of all namespaces; those named twice count twice, as for vw."""
    found: dict[str, float] = {}
    for part in text.split("|"):
        words = part.split()
        space, weight = "", 1.0
        if words and not part[0].isspace():
            space, _, given = words.pop(0).partition(":")
            weight = _number(where, "the weight of a namespace", given) if given else 1.0
        for word in words:
            name, colon, value = word.partition(":")
            name = f"{space}^{name}" if space else name
            size = _number(where, f"the value of {name}", value) if colon else 1.0
            found[name] = found.get(name, 0.0) + weight * size
    return found


def _number(where: str, what: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InvalidInput(f"{where}: {what} must be a number, got {text!r}.") from None


def _of_line(path: Path, line: VowpalLine) -> _Example:
    action, cost, probability = _label(path, line)
    if action < 1:
        raise InvalidInput(f"{path}, line {line.number}: an action counts from 1, got {action}.")
    return _Example(line.number, action - 1, cost, probability, line.position, line.features)


def _label(path: Path, line: VowpalLine) -> tuple[int, float, float]:
    """Return action, cost and probability of the only label that has them."""
    where = f"{path}, line {line.number}"
    known = [word.split(":") for word in line.labels if ":" in word]
    if len(known) != 1 or len(known[0]) != 3 or not known[0][0].isdecimal():
        raise InvalidInput(
            f"{where}: a row must have one label action:cost:probability, got "
            f"{' '.join(line.labels)!r}."
        )
    action, cost, probability = known[0]
    return (
        int(action),
        _number(where, "a cost", cost),
        _number(where, "a probability", probability),
    )


def _of_actions(path: Path, block: list[VowpalLine]) -> _Example:
    shared = [line for line in block if line.is_shared]
    actions = [line for line in block if not line.is_shared]
    taken = [index for index, line in enumerate(actions) if line.labels]
    if len(taken) != 1 or len(shared) > 1:
        raise InvalidInput(
            f"{path}, line {block[0].number}: the lines up to the next empty one must have one "
            f"label among the actions and at most one shared line, got {len(taken)} and "
            f"{len(shared)}."
        )
    _, cost, probability = _label(path, actions[taken[0]])
    context = shared[0] if shared else block[0]._replace(features={})
    return _Example(
        actions[taken[0]].number, taken[0], cost, probability, context.position, context.features,
        tuple(tuple(line.features) for line in actions),
    )  # fmt: skip


def _check_actions(path: Path, examples: list[_Example]) -> list[str] | None:
    """Return what actions are called, or raise where rows have different ones."""
    first = examples[0].actions
    for each in examples:
        if each.actions != first:
            raise InvalidInput(
                f"{path}, line {each.number}: the actions of a row must be those of the first row, "
                f"got others."
            )
    names = [features[0].removeprefix(f"{_ACTIONS}^") for features in first if len(features) == 1]
    if len(set(names)) != len(first) or names == [str(i) for i in range(len(first))]:
        return None
    return names


def _contexts(
    path: Path, rows: Sequence[dict[str, float]], given: Sequence[str] | None
) -> tuple[FloatArray, list[str]]:
    occurring = dict.fromkeys(name for row in rows for name in row)
    names = list(occurring) if given is None else list(given)
    column = {name: index for index, name in enumerate(_plain(names, "feature_names"))}
    for name in occurring:
        if name not in column:
            raise InvalidInput(f"{path}: a feature must be one of `feature_names`, got {name!r}.")
    check_memory(8.0 * len(rows) * len(names), f"The contexts of {path}")
    contexts = np.zeros((len(rows), len(names)))
    for index, row in enumerate(rows):
        for name, value in row.items():
            contexts[index, column[name]] = value
    return contexts, names


def _numbered_names(n_features: int) -> list[str]:
    return [f"x{index}" for index in range(n_features)]


def _plain(names: Sequence[Any], what: str) -> list[str]:
    """Return names without what the format gives a meaning to, or raise where two become one."""
    plain = [re.sub(r"[\s:|]", "_", str(name)) for name in names]
    seen: dict[str, Any] = {}
    for name, given in zip(plain, names, strict=True):
        if seen.setdefault(name, given) != given:
            raise InvalidInput(
                f"`{what}` must differ when spaces, : and | are _, got {seen[name]!r} and "
                f"{given!r}."
            )
    return plain
