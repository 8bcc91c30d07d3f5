"""Scorers that are sums of similarities to documents met before: the kernel trick."""

import math
from typing import Any, NamedTuple

import numpy as np

from keyhole.errors import check_choice, check_integer, check_number
from keyhole.kernels.compiled import kernel, rare_kernel
from keyhole.kernels.vectors import linear_scores

LINEAR, POLYNOMIAL, RBF = 0, 1, 2
SIMILARITIES = {"linear": LINEAR, "polynomial": POLYNOMIAL, "rbf": RBF}


class Similarity(NamedTuple):
    """K(x, y) of a kind: gamma x.y, (1 + gamma x.y)^degree, or exp(-gamma |x - y|^2)."""

    kind: int
    gamma: float
    degree: int


class SimilarityWork(NamedTuple):
    """Scratch memory: one document, and for each of a list its squared norm and its products."""

    row: Any
    rounded: Any
    norms: Any
    products: Any


def similarity_of(
    name: str, kernel: str, gamma: float, degree: int, row_norm: float
) -> tuple[Similarity, float]:
    """Return the similarity that options describe, and the most that a document has with itself.

    It is that of documents divided by ``row_norm``, none of which has then a norm above 1;
    the linear one is their inner product.
    """
    kind = SIMILARITIES[check_choice(kernel, f"`kernel` of {name}", SIMILARITIES)]
    gamma = check_number(gamma, f"`gamma` of {name}", above=0.0)
    degree = check_integer(degree, f"`degree` of {name}", at_least=1)
    row_norm = check_number(row_norm, f"`row_norm` of {name}", above=0.0)
    if kind == LINEAR:
        gamma = 1.0
    largest = {LINEAR: 1.0, POLYNOMIAL: (1.0 + gamma) ** degree, RBF: 1.0}[kind]
    return Similarity(kind, gamma / row_norm**2, degree), largest


def similarity_work(n_features: int, n_items: int) -> SimilarityWork:
    """Allocate the scratch memory for lists of up to ``n_items``."""
    row, rounded = np.empty(n_features), np.empty(n_features, np.float32)
    return SimilarityWork(row, rounded, np.empty(n_items), np.empty(n_items))


@kernel
def similarity(form: Similarity, product: float, distance: float) -> float:
    """Return K of two documents, from their inner product and their squared distance."""
    if form.kind == RBF:
        # Rounding can make the distance of near twins negative.
        return math.exp(-form.gamma * max(distance, 0.0))
    if form.kind == LINEAR:
        return form.gamma * product
    base, power = 1.0 + form.gamma * product, 1.0
    for _ in range(form.degree):
        power *= base
    return power


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


@rare_kernel
def similarity_scores(
    form: Similarity,
    support: Any,
    coefficients: Any,
    norms: Any,
    features: Any,
    out: Any,
    work: SimilarityWork,
) -> None:
    """Fill ``out`` with the sum over j of coefficient j times K(support j, document)."""
    n_items = features.shape[0]
    products = work.products[:n_items]
    squared_norms(features, work.row, work.rounded, work.norms)
    for item in range(n_items):
        out[item] = 0.0
    for j in range(support.shape[0]):
        linear_scores(features, support[j], work.rounded, features[:0], products)
        for item in range(n_items):
            distance = norms[j] + work.norms[item] - 2.0 * products[item]
            out[item] += coefficients[j] * similarity(form, products[item], distance)
