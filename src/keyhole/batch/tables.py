"""Documents by features as they come: arrays, or data frames whose columns have names.

What is refused is refused in scikit-learn's words where it has some: its users know them, and its
checks of an estimator look for them.
"""

import sys
import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from keyhole.base.errors import FloatArray, IntArray, InvalidInput

_MOST_NAMES = 5
"""Names that an error lists."""


def documents_of(X: ArrayLike) -> FloatArray:
    """Return documents by features as a table of finite numbers, or raise.

    Examples
    --------
    >>> documents_of([[1.0, float("nan")]])
    Traceback (most recent call last):
    ...
    keyhole.base.errors.InvalidInput: `X` must be finite numbers, got NaN or inf in row 0.
    """
    if hasattr(X, "toarray"):
        raise InvalidInput("`X` must be dense, got sparse data: X.toarray() makes it dense.")
    table = np.asarray(X)
    if table.dtype.kind == "O":
        table = _numbers_in(table)
    if table.dtype.kind == "c":
        raise InvalidInput("Complex data not supported: `X` must be real numbers.")
    if table.dtype.kind not in "biuf":
        raise InvalidInput(f"`X` must be numbers, got {table.dtype}.")
    if table.ndim != 2:
        raise InvalidInput(
            f"`X` must be documents by features, got shape {table.shape}. Reshape your data: "
            f"X.reshape(1, -1) makes it one document."
        )
    if 0 in table.shape:
        noun = "sample" if table.shape[0] == 0 else "feature"
        raise InvalidInput(
            f"`X` has 0 {noun}(s) (shape={table.shape}) while a minimum of 1 is required."
        )
    bad = ~np.isfinite(table).all(axis=1)
    if bad.any():
        raise InvalidInput(
            f"`X` must be finite numbers, got NaN or inf in row {int(np.argmax(bad))}."
        )
    return table


def _numbers_in(table: NDArray[Any]) -> NDArray[Any]:
    if any(isinstance(cell, complex) for cell in table.flat):
        return table.astype(np.complex128)
    try:
        return table.astype(np.float64)
    except (TypeError, ValueError) as error:
        # The words of Python name the cell: "float() argument must be a string or a real number".
        kind = TypeError if isinstance(error, TypeError) else InvalidInput
        raise kind(f"`X` must be numbers: {error}.") from None


def grades_of(y: ArrayLike | None, order: IntArray) -> FloatArray:
    """Return the grades of documents in some order, or raise."""
    if y is None:
        raise InvalidInput("BatchRanker requires y to be passed, but the target y is None.")
    grades = np.asarray(y, dtype=np.float64)
    if grades.shape != order.shape:
        raise InvalidInput(
            f"`y` must have one grade per document ({len(order)}), got shape {grades.shape}."
        )
    return grades[order]


def feature_names(X: Any) -> NDArray[Any] | None:
    """Return the names of the columns of a data frame, or None where not all of them are text."""
    columns = list(getattr(X, "columns", ()))
    if not columns or not all(isinstance(name, str) for name in columns):
        return None
    return np.array(columns, dtype=object)


def check_features(X: Any, n_features: int, names: NDArray[Any] | None, owner: str) -> FloatArray:
    """Return documents that have the features which a model was fitted with, or raise."""
    given = feature_names(X)
    if names is not None and given is not None:
        _check_names(given.tolist(), names.tolist())
    elif names is not None or given is not None:
        which = ("X does not have", "was") if given is None else ("X has", "was not")
        warnings.warn(
            f"{which[0]} valid feature names, but {owner} {which[1]} fitted with feature names.",
            stacklevel=3,
        )
    documents = documents_of(X)
    if documents.shape[1] != n_features:
        raise InvalidInput(
            f"X has {documents.shape[1]} features, but {owner} is expecting {n_features} features "
            f"as input."
        )
    return documents


def _check_names(given: list[str], fitted: list[str]) -> None:
    if given == fitted:
        return
    lines = ["The feature names should match those that were passed during fit."]
    for head, names in (
        ("Feature names unseen at fit time:", set(given) - set(fitted)),
        ("Feature names seen at fit time, yet now missing:", set(fitted) - set(given)),
    ):
        if names:
            shown = [f"- {name}" for name in sorted(names)[:_MOST_NAMES]]
            lines += [head, *shown, *["- ..."] * (len(names) > _MOST_NAMES)]
    if len(lines) == 1:
        lines.append("Feature names must be in the same order as they were in fit.")
    raise InvalidInput("\n".join([*lines, ""]))


def not_fitted(owner: str) -> InvalidInput:
    """Return the error of a model that is asked before it was fitted.

    It is scikit-learn's NotFittedError too, where scikit-learn is in use.
    """
    own: type[InvalidInput] = InvalidInput
    theirs = sys.modules.get("sklearn.exceptions")
    if theirs is not None:
        own = type("NotFitted", (InvalidInput, theirs.NotFittedError), {})
    return own(f"{owner} must be fitted before it predicts.")
