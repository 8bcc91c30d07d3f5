"""Items that are moved up to where they are seen."""

from typing import Any

from keyhole.kernels.compiled import kernel
from keyhole.kernels.draw import uniform


@kernel
def lift(order: Any, place: int, k: int) -> None:
    """Move the item at a place up to position k; those between go down by one."""
    item = order[place]
    for position in range(place, k - 1, -1):
        order[position] = order[position - 1]
    order[k - 1] = item


@kernel
def place_of_any(draw: Any, use: int, order: Any) -> int:
    """Return where a uniformly random item stands: the one with the largest number."""
    best, chosen = -1.0, 0
    for place in range(order.shape[0]):
        number = uniform(draw, use, order[place])
        if number > best:
            best, chosen = number, place
    return chosen


@kernel
def lift_any(draw: Any, use: int, order: Any, k: int) -> None:
    """Lift a uniformly random item to position k, unless it is there or above."""
    place = place_of_any(draw, use, order)
    if place >= k:
        lift(order, place, k)
