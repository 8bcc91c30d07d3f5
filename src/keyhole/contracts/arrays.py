"""Arrays of states and scratch memory, allocated from their annotations; notes that are kept there.

A NamedTuple says beside each name how large its array is and of what::

    class Work(NamedTuple):
        keys: PerItem
        note: PerSeen
        sort: Sorting

:func:`ranker_kernel` makes of two of them, and of what ranks and learns, the kernel of a ranker.
"""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Annotated, Any, NamedTuple, get_args, get_type_hints

import numpy as np

from keyhole.contracts.rankers import RankerKernel, nothing_to_prepare
from keyhole.kernels.compiled import kernel
from keyhole.kernels.sorting import SortWork, sort_work


class Array(NamedTuple):
    """An array of some shape, filled with one number.

    A size is a number, or what it is called: ``n_items``, ``n_features``, or a setting among the
    params of the kernel.
    """

    shape: tuple[str | int, ...]
    dtype: Any = np.float64
    fill: float = 0.0


PerItem = Annotated[Any, Array(("n_items",))]
ItemIndices = Annotated[Any, Array(("n_items",), np.int64)]
ItemFlags = Annotated[Any, Array(("n_items",), np.bool_)]
PerFeature = Annotated[Any, Array(("n_features",))]
SingleFeature = Annotated[Any, Array(("n_features",), np.float32)]
PerDocumentFeature = Annotated[Any, Array(("n_items", "n_features"))]
PerSeen = Annotated[Any, Array(("k",))]
Clock = Annotated[Any, Array((1,), np.int64)]
Sorting = Annotated[SortWork, sort_work]
"""What a function allocates that is told how many items there are."""


@lru_cache(maxsize=256)
def _fields(kind: Any) -> tuple[Any, ...]:
    """Return the array, or the function that allocates, of each field of a NamedTuple."""
    return tuple(get_args(hint)[1] for hint in get_type_hints(kind, include_extras=True).values())


def allocate(kind: Any, params: Any, n_items: int, n_features: int | None = None) -> Any:
    """Return a NamedTuple of arrays, as its annotations say."""

    def size(given: str | int) -> int:
        if isinstance(given, int):
            return given
        told = {"n_items": n_items, "n_features": n_features}.get(given)
        return int(getattr(params, given)) if told is None else told

    return kind(
        *(
            np.full([size(each) for each in field.shape], field.fill, field.dtype)
            if isinstance(field, Array)
            else field(n_items)
            for field in _fields(kind)
        )
    )


@kernel
def _copy_note(params: Any, work: Any, out: Any) -> None:
    for place in range(out.shape[0]):
        out[place] = work.note[place]


def _allocating(kind: Any) -> Callable[..., Any]:
    # Partial functions can be pickled, as rankers are to be copied.
    return partial(allocate, kind) if isinstance(kind, type) else kind


def ranker_kernel(
    state: Any,
    work: Any,
    rank: Callable[..., tuple[bool, float]],
    update: Callable[..., None],
    greedy: Callable[..., None] | None = None,
    prepare: Callable[..., None] = nothing_to_prepare,
) -> RankerKernel:
    """Return the kernel of a ranker whose state and scratch memory are allocated as annotated.

    Either may be a function that allocates as well. What ``rank`` leaves in a field ``note`` of
    the scratch memory, whose size is a setting among the params, travels with the impression.
    """
    made = RankerKernel(_allocating(state), _allocating(work), rank, update, greedy, prepare)
    if "note" not in getattr(work, "_fields", ()):
        return made
    size = _fields(work)[work._fields.index("note")].shape[0]
    return made._replace(note=_copy_note, note_size=lambda params: int(getattr(params, size)))
