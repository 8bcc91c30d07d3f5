"""Run the command line, or say in one sentence what it lacks.

Whatever takes time to import is imported within, so that an interrupt is heard at any moment.
"""

import signal
import sys
import threading
import traceback
from typing import Any

_A_MOMENT = 0.05


def main() -> None:
    """Run ``keyhole``."""
    sys.unraisablehook = _hear_lost_interrupts
    try:
        _run()
    except KeyboardInterrupt:  # before there was anything to say so, or while it was said
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        if sys.stderr is not None:
            sys.stderr.write("Interrupted; nothing was written.\n")
        sys.exit(130)
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # all that is left is to end
        # Python marks an interrupt that leaves code run from a string, as named tuples and
        # dataclasses are made, and at its end dies of the signal whatever the exit code is. To run
        # another string takes the mark away.
        exec("")  # noqa: S102 - there is nothing in it


def _run() -> None:
    from keyhole.cli.exit_codes import needing, one_sentence

    with one_sentence():
        with needing("The command line", "all"):
            from keyhole.cli.app import app
        app()


def _hear_lost_interrupts(lost: Any) -> None:
    """Interrupt again where Python dropped an interrupt: in a callback or a finaliser.

    A moment later, as one that comes within the callback is dropped as well; and what fails in
    that moment, for want of what the callback should have done, fails by the interrupt.
    """
    if issubclass(lost.exc_type, KeyboardInterrupt):
        endings: Any = sys.modules.get("keyhole.cli.exit_codes")
        if endings is not None:
            endings.LOST_INTERRUPTS.append(lost.exc_type)
        again = threading.Timer(_A_MOMENT, signal.raise_signal, [signal.SIGINT])
        again.daemon = True
        again.start()
    elif sys.stderr is not None:
        traceback.print_exception(lost.exc_type, lost.exc_value, lost.exc_traceback)


if __name__ == "__main__":
    main()
