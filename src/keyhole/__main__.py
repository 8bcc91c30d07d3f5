"""Run the command line, or say in one sentence what it lacks."""

import sys


def main() -> None:
    """Run ``keyhole``."""
    try:
        from keyhole.cli.app import app
    except ModuleNotFoundError as error:
        if error.name and error.name.startswith("keyhole"):
            raise
        sys.exit(
            f"The command line needs {error.name}: install it with pip install 'keyhole[all]'."
        )
    app()


if __name__ == "__main__":
    main()
