"""States of rankers as plain arrays: written down, and checked before they are taken over."""

import json
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from keyhole.base.errors import MAX_ROUND, InvalidInput, as_array, check_round
from keyhole.kernels.checking import all_finite

S = TypeVar("S", bound=Any)


def state_arrays(
    described: Mapping[str, Any], state: Mapping[str, NDArray[Any]], next_round: int
) -> dict[str, NDArray[Any]]:
    """Return a copy of the state of a ranker, as ``load_state_dict`` takes it."""
    arrays = {name: array.copy() for name, array in state.items()}
    spec = np.array(json.dumps(described))
    return {**arrays, "next_round": np.array(next_round), "spec": spec}


def in_few_pieces(state: S) -> tuple[S, list[NDArray[Any]]]:
    """Return a state whose arrays of one kind lie side by side, and those pieces of memory.

    A state of twenty arrays is copied, and checked, in the time of two.
    """
    by_dtype: dict[Any, list[tuple[str, NDArray[Any]]]] = {}
    for name, array in zip(state._fields, state, strict=True):
        by_dtype.setdefault(array.dtype, []).append((name, np.asarray(array)))
    pieces, moved = [], {}
    for named in by_dtype.values():
        piece, end = np.concatenate([array.reshape(-1) for _, array in named]), 0
        for name, array in named:
            end += array.size
            moved[name] = piece[end - array.size : end].reshape(array.shape)
        pieces.append(piece)
    return type(state)(**moved), pieces


def are_finite(arrays: Iterable[NDArray[Any]]) -> bool:
    """Return whether all floats of some arrays are finite."""
    return all(array.dtype.kind != "f" or all_finite(array.reshape(-1)) for array in arrays)


def check_arrays(
    name: str, own: Mapping[str, NDArray[Any]], given: Any
) -> tuple[dict[str, NDArray[Any]], int]:
    """Return the arrays and the next round of a state, or raise unless they fit the own ones.

    Floats must be finite. Whole numbers of a state count something, or name a round: kernels may
    index by them, so they must be what a count can be.
    """
    wanted = [*own, "next_round", "spec"]
    if not isinstance(given, Mapping) or set(given) != set(wanted):
        held = ", ".join(map(str, given)) if isinstance(given, Mapping) else repr(given)
        raise InvalidInput(f"state of {name} must hold {', '.join(wanted)}, got {held}.")
    arrays = {}
    for key, array in own.items():
        arrays[key] = as_array(given[key], f"`{key}` of the state")
        _check_like(arrays[key], array, key)
    next_round = as_array(given["next_round"], "`next_round` of the state")
    if next_round.size != 1:
        raise InvalidInput(
            f"`next_round` of the state must be one number, got shape {next_round.shape}."
        )
    return arrays, check_round(next_round.item())


def _check_like(given: NDArray[Any], own: NDArray[Any], key: str) -> None:
    if given.shape != own.shape or given.dtype != own.dtype:
        raise InvalidInput(
            f"`{key}` of the state must be {own.dtype} of shape {own.shape}, got {given.dtype} of "
            f"shape {given.shape}."
        )
    if not are_finite([given]):
        bad = given[~np.isfinite(given)][0]
        raise InvalidInput(f"`{key}` of the state must be finite, got {bad}.")
    if given.dtype.kind in "iu" and given.size and not 0 <= given.min() <= given.max() <= MAX_ROUND:
        raise InvalidInput(
            f"`{key}` of the state must be counts of 0 to {MAX_ROUND}, got {given.min()} to "
            f"{given.max()}."
        )


def check_settings(described: Mapping[str, Any], text: str) -> None:
    """Raise unless a spec, as text, is that of a ranker with the settings described."""
    try:
        theirs = dict(json.loads(text))
    except (TypeError, ValueError, RecursionError):
        raise InvalidInput("`spec` of the state must be the spec of a ranker.") from None
    own = json.loads(json.dumps(described))
    for name in sorted({*own, *theirs} - {"version", "seed", "run"}):
        if own.get(name) != theirs.get(name):
            raise InvalidInput(
                f"state must be of a {own['name']} with {name}={own.get(name)!r}, got one of a "
                f"{theirs.get('name')} with {name}={theirs.get(name)!r}."
            )
