"""Scorers that are sums of similarities to documents met before: the kernel trick."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from keyhole.base.errors import LARGEST_NUMBER, check_choice, check_integer, check_number
from keyhole.kernels.compiled import assemble, kernel
from keyhole.kernels.vectors import linear_scores


class SimilarityParams(NamedTuple):
    """What K(x, y) depends on besides the documents."""

    gamma: float
    degree: int


class SimilarityWork(NamedTuple):
    """Scratch memory: one document, and for each of a list its squared norm and its products."""

    row: Any
    rounded: Any
    norms: Any
    products: Any


@kernel
def _linear(params: SimilarityParams, product: float, distance: float) -> float:
    return params.gamma * product


@kernel
def _polynomial(params: SimilarityParams, product: float, distance: float) -> float:
    base, power = 1.0 + params.gamma * product, 1.0
    for _ in range(params.degree):
        power *= base
    return power


@kernel
def _rbf(params: SimilarityParams, product: float, distance: float) -> float:
    # Rounding can make the distance of near twins negative.
    return math.exp(-params.gamma * max(distance, 0.0))


SIMILARITIES: dict[str, Callable[..., float]] = {
    "linear": _linear,  # gamma x.y
    "polynomial": _polynomial,  # (1 + gamma x.y)^degree
    "rbf": _rbf,  # exp(-gamma |x - y|^2)
}
"""K of two documents, from their inner product and their squared distance."""


def similarity_of(
    name: str, similarity: str, gamma: float, degree: int, row_norm: float
) -> tuple[SimilarityParams, float]:
    """Return the parameters that options describe, and the most of a document's K with itself.

    It is that of documents divided by ``row_norm``, none of which has then a norm above 1;
    the linear one is their inner product.
    """
    check_choice(similarity, f"`similarity` of {name}", SIMILARITIES)
    gamma = check_number(gamma, f"`gamma` of {name}", above=0.0)
    degree = check_integer(degree, f"`degree` of {name}", at_least=1)
    row_norm = check_number(row_norm, f"`row_norm` of {name}", above=0.0)
    if similarity == "linear":
        gamma = 1.0
    if similarity == "polynomial":
        most = int(math.log(LARGEST_NUMBER) / math.log1p(gamma)) if gamma > 1e-9 else degree
        check_integer(degree, f"`degree` of {name}, gamma={gamma:g},", at_least=1, at_most=most)
    largest = (1.0 + gamma) ** degree if similarity == "polynomial" else 1.0
    return SimilarityParams(gamma / row_norm**2, degree), largest


def similarity_work(n_features: int, n_items: int) -> SimilarityWork:
    """Allocate the scratch memory for lists of up to ``n_items``."""
    row, rounded = np.empty(n_features), np.empty(n_features, np.float32)
    return SimilarityWork(row, rounded, np.empty(n_items), np.empty(n_items))


@kernel
def copy_norm(features: Any, item: int, row: Any, rounded: Any, norms: Any) -> None:
    """Copy one document to ``row`` and put its squared norm into ``norms[item]``.

    The norm is added up in the order of all inner products: a document's distance from
    itself is exactly 0.
    """
    for column in range(row.shape[0]):
        row[column] = features[item, column]
    alone = features[item : item + 1]
    linear_scores(alone, row, rounded, alone[:0], norms[item : item + 1])


@kernel
def squared_norms(features: Any, row: Any, rounded: Any, out: Any) -> None:
    """Fill ``out`` with the squared norm of each document."""
    for item in range(features.shape[0]):
        copy_norm(features, item, row, rounded, out)


def _scores_by(similarity: Any) -> Callable[..., None]:
    def similarity_scores(
        params: SimilarityParams,
        support: Any,
        coefficients: Any,
        norms: Any,
        features: Any,
        out: Any,
        work: SimilarityWork,
    ) -> None:
        n_items = features.shape[0]
        products = work.products[:n_items]
        squared_norms(features, work.row, work.rounded, work.norms)
        for item in range(n_items):
            out[item] = 0.0
        for j in range(support.shape[0]):
            linear_scores(features, support[j], work.rounded, features[:0], products)
            for item in range(n_items):
                distance = norms[j] + work.norms[item] - 2.0 * products[item]
                out[item] += coefficients[j] * similarity(params, products[item], distance)

    return similarity_scores


def scores_kernel(similarity: str) -> Callable[..., None]:
    """Return what fills ``out`` with the sum over j of coefficient j times K(support j, document).

    It takes (params, support, coefficients, norms, features, out, work).
    """
    return assemble(_scores_by, SIMILARITIES[similarity])
