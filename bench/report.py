"""What the bench found: printed as tables, written as JSON."""

import json
import os
import platform
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path

from rich.console import Console
from rich.table import Table

from keyhole.base.threads import n_cores

OUT = Path(__file__).parent / "out" / "bench.json"


@dataclass(frozen=True)
class Bar:
    """One promise: what was measured, the figure it is judged by, and the verdict."""

    promise: str
    measured: str
    figure: float
    bar: str
    passed: bool


@dataclass
class Report:
    """All findings of one run."""

    quick: bool
    bars: list[Bar] = field(default_factory=list)
    contenders: list[dict[str, float | int | str]] = field(default_factory=list)
    scaling: list[dict[str, float | int]] = field(default_factory=list)
    rankers: list[dict[str, float | int | str]] = field(default_factory=list)

    def at_least(self, promise: str, measured: str, figure: float, bar: float) -> None:
        """Add a promise that ``figure`` reaches ``bar``."""
        self.bars.append(Bar(promise, measured, figure, f"at least {bar:g}", figure >= bar))

    def at_most(self, promise: str, measured: str, figure: float, bar: float) -> None:
        """Add a promise that ``figure`` stays below ``bar``."""
        self.bars.append(Bar(promise, measured, figure, f"at most {bar:g}", figure <= bar))

    @property
    def passed(self) -> bool:
        """Whether every promise was kept."""
        return all(bar.passed for bar in self.bars)

    def save(self) -> None:
        """Write everything, with the machine and the versions it was measured on."""
        machine = {
            "system": platform.platform(),
            "cores": n_cores(),
            "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
            "python": platform.python_version(),
            **{name: version(name) for name in ("keyhole", "numpy", "numba")},
        }
        OUT.parent.mkdir(exist_ok=True)
        OUT.write_text(json.dumps({"machine": machine, **asdict(self)}, indent=1) + "\n")

    def print(self, console: Console) -> None:
        """Print the tables."""
        table = Table(title="The game: one thread, CPU time, contenders in turn, medians")
        for name in ("items", "rounds", "contender", "ns/round", "rounds/s", "keyhole is"):
            table.add_column(name, justify="left" if name == "contender" else "right")
        for row in self.contenders:
            cells = [f"{row['items']:,}", f"{row['rounds']:,}", str(row["contender"])]
            cells += [f"{row['ns']:,.0f}", f"{1e9 / float(row['ns']):,.0f}"]
            table.add_row(*cells, f"{row['keyhole']:.2f} times as fast")
        _print_if_any(console, table)
        table = Table(title="Cost of a round against the length of the list (keyhole)")
        for name in ("items", "rounds", "ns/round", "ns/(m log2 m)"):
            table.add_column(name, justify="right")
        for size in self.scaling:
            cells = [f"{size['items']:,}", f"{size['rounds']:,}"]
            table.add_row(*cells, f"{size['ns']:,.0f}", f"{size['per_m_log_m']:.3f}")
        _print_if_any(console, table)
        table = Table(title="Every ranker and subroutine (keyhole, one thread)")
        for name in ("ranker", "items", "ns/round", "rounds/s"):
            table.add_column(name, justify="left" if name == "ranker" else "right")
        for row in self.rankers:
            cells = [str(row["ranker"]), str(row["items"]), f"{row['ns']:,.0f}"]
            table.add_row(*cells, f"{1e9 / float(row['ns']):,.0f}")
        _print_if_any(console, table)
        table = Table(title="Promises")
        for name in ("promise", "measured", "figure", "bar", "verdict"):
            table.add_column(name, justify="right" if name == "figure" else "left")
        for bar in self.bars:
            verdict = "[green]PASS[/]" if bar.passed else "[bold red]FAIL[/]"
            table.add_row(bar.promise, bar.measured, f"{bar.figure:.2f}", bar.bar, verdict)
        console.print(table)


def _print_if_any(console: Console, table: Table) -> None:
    """Print a table unless this part of the bench has no rows for it."""
    if table.row_count:
        console.print(table)
