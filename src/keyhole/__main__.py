"""Run the command line, or say in one sentence what it lacks."""

import sys

from keyhole.errors import LibraryMissing


def main() -> None:
    """Run ``keyhole``."""
    try:
        from keyhole.cli.app import app
    except ModuleNotFoundError as error:
        if error.name and error.name.startswith("keyhole"):
            raise
        sys.exit(str(LibraryMissing(f"The command line needs {error.name}", "all")))
    app()


if __name__ == "__main__":
    main()
