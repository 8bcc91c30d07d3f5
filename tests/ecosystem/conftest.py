"""What the tests against other packages share; `make test-ecosystem` runs them.

The plain suite does not collect this folder: the packages are not among the project's own.
"""

import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType

import pytest

from keyhole.data.letor.reader import read_letor


class _StandIn(ModuleType):
    """A module of which every name is an empty class."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


def _stand_in_for_pytorch():
    """Let the Open Bandit Pipeline be imported without PyTorch.

    It imports PyTorch for learners of its own and for one check of a type. Nothing here calls
    them, and PyTorch takes gigabytes.
    """
    used = ("nn", "nn.functional", "optim", "utils", "utils.data")
    for name in ("torch", *(f"torch.{module}" for module in used)):
        sys.modules[name] = module = _StandIn(name)
        parent, _, own = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], own, module)


if importlib.util.find_spec("torch") is None:
    _stand_in_for_pytorch()

# MLflow tells its makers what it is used for, over the network, unless it is told not to.
os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"


def pytest_configure(config):
    """Let other packages warn: what they warn of is theirs to mend."""
    config.addinivalue_line("filterwarnings", "default")


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="session")
def real_data():
    """Return the folder of real data, or skip."""
    root = Path(__file__).parents[2]
    folder = Path(os.environ.get("KEYHOLE_DATA", root.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"there is no data in {folder}")
    return folder


@pytest.fixture(scope="session")
def mq2008(real_data):
    """Return the queries of one part of MQ2008, as they are read from its file."""
    return read_letor([real_data / "mq2008" / "S1.txt.gz"])
