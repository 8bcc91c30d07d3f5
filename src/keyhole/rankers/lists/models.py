"""Scorers saved as plain arrays, and loaded to rank documents."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keyhole.contracts import Ranker
from keyhole.errors import FloatArray, InvalidInput, check_choice
from keyhole.files import reading_arrays, write_arrays
from keyhole.kernels.vectors import linear_scores
from keyhole.rankers.lists.similarity import (
    SIMILARITIES,
    SimilarityParams,
    scores_kernel,
    similarity_work,
)


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
    raise InvalidInput(f"{type(ranker).__name__} learns nothing, so it has no model to save.")


def save_model(path: Path, ranker: Ranker, state: dict[str, Any], minmax: bool) -> None:
    """Write a scorer as plain arrays; ``minmax`` says whether its features were normalised."""
    write_arrays(path, {**model_arrays(ranker, state), "minmax": np.array(minmax)})


@dataclass(frozen=True)
class Model(ABC):
    """A scorer of documents; features beyond those that documents have are 0."""

    minmax: bool

    @property
    @abstractmethod
    def n_features(self) -> int:
        """The most features that a document may have."""

    @abstractmethod
    def scores(self, features: Any) -> FloatArray:
        """Return the score of each document of a list."""


@dataclass(frozen=True)
class LinearModel(Model):
    """Features times weights."""

    weights: FloatArray

    @property
    def n_features(self) -> int:
        return len(self.weights)

    def scores(self, features: Any) -> FloatArray:
        out = np.empty(len(features))
        weights = self.weights[: features.shape[1]]
        linear_scores(features, weights, weights.astype(np.float32), features[:0], out)
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

    def scores(self, features: Any) -> FloatArray:
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


def load_model(path: Path) -> Model:
    """Return a scorer that :func:`save_model` wrote."""
    with reading_arrays(path, "a model saved by keyhole learn") as arrays:
        minmax = bool(arrays["minmax"])
        if "support" not in arrays:
            return LinearModel(minmax, np.ascontiguousarray(arrays["weights"], dtype=np.float64))
        similarity = check_choice(str(arrays["kernel"]), "kernel", SIMILARITIES)
        of_documents = SimilarityParams(float(arrays["gamma"]), int(arrays["degree"]))
        support, coefficients, norms = (
            np.ascontiguousarray(arrays[name], dtype=np.float64)
            for name in ("support", "coefficients", "norms")
        )
        if support.ndim != 2 or not coefficients.shape == norms.shape == support.shape[:1]:
            raise ValueError("a support vector must have one coefficient and one norm")
        return SimilarityModel(minmax, support, coefficients, norms, similarity, of_documents)
