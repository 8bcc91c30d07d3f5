"""Scorers saved as plain arrays, and loaded to rank documents."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keyhole.base.errors import FloatArray, InvalidInput, check_choice, check_integer, check_number
from keyhole.base.files import reading_arrays, write_arrays
from keyhole.contracts.rankers import Ranker
from keyhole.kernels.vectors import linear_scores
from keyhole.rankers.lists.similarity import (
    SIMILARITIES,
    SimilarityParams,
    scores_kernel,
    similarity_work,
)

_HIGHEST_DEGREE = 10**6
"""A power is computed by as many multiplications: a higher one would take forever."""


def model_arrays(ranker: Ranker, state: dict[str, Any]) -> dict[str, NDArray[Any]]:
    """Return what must be kept of a ranker's state to score documents as it does, or raise."""
    if "weights" in state:
        return {"weights": state["weights"]}
    if "support" in state:
        n_used = min(int(state["added"][0]), len(state["coefficients"]))
        return {
            "support": state["support"][:n_used],
            "coefficients": state["coefficients"][:n_used],
            "norms": state["norms"][:n_used],
            "kernel": np.array(vars(ranker)["similarity"]),
            "gamma": np.array(ranker.params.similarity.gamma),
            "degree": np.array(ranker.params.similarity.degree),
        }
    why = "scores whole lists" if ranker.depth else "learns nothing"
    raise InvalidInput(f"{type(ranker).__name__} {why}, so it has no model to save.")


def save_model(
    path: Path,
    ranker: Ranker,
    state: dict[str, Any],
    minmax: bool,
    first_index: int | None = None,
) -> None:
    """Write a scorer as plain arrays.

    ``minmax`` says whether its features were normalised, ``first_index`` what files call the first
    of them; None where they were not read from files.
    """
    read = {"minmax": np.array(minmax)}
    if first_index is not None:
        read["first_index"] = np.array(first_index)
    write_arrays(path, {**model_arrays(ranker, state), **read})


@dataclass(frozen=True)
class Model(ABC):
    """A scorer of documents; features beyond those that documents have are 0."""

    minmax: bool
    first_index: int | None = field(default=None, kw_only=True)
    """What files call the first feature, 0 or 1; None where that was not kept."""

    @property
    @abstractmethod
    def n_features(self) -> int:
        """The most features that a document may have."""

    def scores(self, features: Any) -> FloatArray:
        """Return the score of each document of a list, or raise where one is no finite number."""
        scores = self._scores(features)
        if not np.isfinite(scores).all():
            raise InvalidInput(
                f"The scores of documents must be finite, got {scores[~np.isfinite(scores)][0]}: "
                f"the features or the numbers of the model are too large."
            )
        return scores

    @abstractmethod
    def _scores(self, features: Any) -> FloatArray:
        """Return the score of each document of a list, whatever it may be."""


@dataclass(frozen=True)
class LinearModel(Model):
    """Features times weights."""

    weights: FloatArray

    @property
    def n_features(self) -> int:
        return len(self.weights)

    def _scores(self, features: Any) -> FloatArray:
        out = np.empty(len(features))
        weights = self.weights[: features.shape[1]]
        with np.errstate(over="ignore"):
            rounded = weights.astype(np.float32)
        linear_scores(features, weights, rounded, features[:0], out)
        return out


@dataclass(frozen=True)
class SimilarityModel(Model):
    """A sum of similarities to support vectors."""

    support: FloatArray
    coefficients: FloatArray
    norms: FloatArray
    similarity: str
    of_documents: SimilarityParams

    @property
    def n_features(self) -> int:
        return self.support.shape[1]

    def _scores(self, features: Any) -> FloatArray:
        n_items, n_features = features.shape
        out = np.empty(n_items)
        scores_kernel(self.similarity)(
            self.of_documents,
            np.ascontiguousarray(self.support[:, :n_features]),
            self.coefficients,
            self.norms,
            features,
            out,
            similarity_work(n_features, n_items),
        )
        return out


def _numbers(arrays: dict[str, NDArray[Any]], name: str, n_dims: int) -> FloatArray:
    """Return finite numbers, or raise."""
    numbers = np.ascontiguousarray(arrays[name], dtype=np.float64)
    if arrays[name].ndim != n_dims:
        raise ValueError(f"{name} must have {n_dims} dimensions, got shape {arrays[name].shape}")
    if not np.isfinite(numbers).all():
        raise ValueError(f"{name} must be finite, got {numbers[~np.isfinite(numbers)][0]}")
    return numbers


def load_model(path: Path) -> Model:
    """Return a scorer that :func:`save_model` wrote."""
    with reading_arrays(path, "a model saved by keyhole learn") as arrays:
        model = _model_of(arrays)
        if model.n_features == 0:
            raise ValueError("it must be of one feature at least")
        return model


def _model_of(arrays: dict[str, NDArray[Any]]) -> Model:
    minmax = bool(arrays["minmax"])
    first = None
    if "first_index" in arrays:
        first = check_integer(arrays["first_index"].item(), "first_index", at_least=0, at_most=1)
    if "support" not in arrays:
        return LinearModel(minmax, _numbers(arrays, "weights", 1), first_index=first)
    similarity = check_choice(str(arrays["kernel"]), "kernel", SIMILARITIES)
    of_documents = SimilarityParams(
        check_number(arrays["gamma"].item(), "gamma", above=0.0),
        check_integer(arrays["degree"].item(), "degree", at_least=1, at_most=_HIGHEST_DEGREE),
    )
    support = _numbers(arrays, "support", 2)
    coefficients, norms = (_numbers(arrays, name, 1) for name in ("coefficients", "norms"))
    if not coefficients.shape == norms.shape == support.shape[:1]:
        raise ValueError("a support vector must have one coefficient and one norm")
    return SimilarityModel(
        minmax, support, coefficients, norms, similarity, of_documents, first_index=first
    )
