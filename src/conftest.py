"""Modules whose examples are tests are imported as the package does it, and not a second time."""

from importlib import import_module
from pathlib import Path

_SOURCES = Path(__file__).parent


def pytest_collect_file(file_path: Path) -> None:
    """Import a module by its name: pytest would make another of what its parent has imported.

    Classes of the other have the same names, and compiled code that is read from disk is then of
    types that nobody uses.
    """
    if file_path.suffix == ".py" and file_path != Path(__file__):
        import_module(".".join(file_path.relative_to(_SOURCES).with_suffix("").parts))
