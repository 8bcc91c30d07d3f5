"""Orders in which people come: real crowds that change, made of tables of ratings."""

import numpy as np

from keyhole.base.errors import FloatArray, IntArray, check_choice

PEOPLE_ORDERS = ("drawn", "shuffled", "file", "drift", "mean")
"""Drawn again and again; each once, in an order of chance; as in the file; sorted."""


def people_in_order(values: FloatArray, order: str) -> FloatArray:
    """Return the rows of a table in the order in which its people come, where that is fixed.

    ``drift`` sorts them along the first principal component of their ratings, so that taste
    changes as fast as it can; ``mean`` by their mean rating, lowest first. Rows stay as they are
    for the other orders: a world draws them.

    Examples
    --------
    >>> people_in_order(np.array([[3.0, 0.0], [1.0, 1.0]]), "mean").tolist()
    [[1.0, 1.0], [3.0, 0.0]]
    """
    check_choice(order, "`order`", PEOPLE_ORDERS)
    if order == "drift":
        return values[_along_first_component(values)]
    if order == "mean":
        return values[np.argsort(values.mean(axis=1), kind="stable")]
    return values


def _along_first_component(values: FloatArray) -> IntArray:
    """Return the order of rows along their first principal component.

    Its largest entry is positive: a component has no sign of its own.
    """
    centred = values - values.mean(axis=0)
    _, components = np.linalg.eigh(centred.T @ centred)
    first = components[:, -1]
    first = first * np.sign(first[np.abs(first).argmax()])
    return np.argsort(centred @ first, kind="stable")
