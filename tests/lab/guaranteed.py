"""What rankers say is proved of them, and tables where only some say so."""

from keyhole.rankers import RANKERS


def guarantees():
    """Return what is proved of each ranker that says something, first those to be taken first."""
    return {name: cls.guarantee for name, cls in RANKERS.items() if cls.guarantee is not None}


def only_with_guarantees(monkeypatch, kept):
    """Let no ranker but these have a guarantee."""
    for name, cls in RANKERS.items():
        monkeypatch.setattr(cls, "guarantee", kept.get(name))
