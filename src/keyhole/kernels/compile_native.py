"""Compile one function for the processor at hand: what :mod:`keyhole.kernels.native` starts."""

import os
import pickle
import sys

from keyhole.kernels.compiled import function_of


def main() -> None:
    """Read what to compile from standard input, compile it, and leave it on disk."""
    if hasattr(os, "nice"):
        os.nice(10)  # the game that waits for it goes on meanwhile
    from keyhole.kernels.whole_program import Program  # noqa: PLC0415 - not in every version of Numba

    identity, args = pickle.load(sys.stdin.buffer)  # noqa: S301 - written by its parent
    Program.native_only = True
    function_of(identity).compile(args)


if __name__ == "__main__":
    main()
