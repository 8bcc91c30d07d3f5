"""What things look like and are called: the same ranker alike in every figure.

Colours tell things apart on a screen; dashes and marks do so in grey print, for any colour vision.
"""

import colorsys
import re
import zlib
from collections.abc import Iterable
from typing import Any, NamedTuple

SOLID, DASHED, DOTTED, DASH_DOT = "-", (0, (5, 2)), (0, (1.2, 1.6)), (0, (6, 2, 1.2, 2))
_DASHES = (SOLID, DASHED, DASH_DOT, DOTTED)
_MARKS = "osD^vPX*<>hp"
_GREY = "#757575"

# Okabe & Ito, told apart by readers with any colour vision; further ones after Paul Tol.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_OWN_COLOURS = ("#8C564B", "#1B6E53", "#6A3D9A", "#B15928", "#C51B7D", "#5C6B00", "#00727A")
_OWN_MARKS = "1234x|_"
"""Of rankers that are not the package's, one each."""

LINE_DASHES = (DASHED, DOTTED, DASH_DOT, (0, (1, 3)), (0, (9, 3)), (0, (3, 1, 1, 1, 1, 1)))
"""Of bounds and closed forms, which are grey and have no marks."""
LINE_COLOUR = "0.35"


class Look(NamedTuple):
    """How one thing is drawn."""

    colour: str
    dash: Any
    mark: str


class _Style(NamedTuple):
    """What a ranker is called, and how it is drawn."""

    name: str
    look: Look


def _shown(name: str, colour: str, dash: Any, mark: str) -> _Style:
    return _Style(name, Look(colour, dash, mark))


RANKERS_SHOWN = {
    # of one list for everybody
    "keystone": _shown("Keystone", "#D55E00", SOLID, "o"),
    "rtopk": _shown("RTop-kF", "#0072B2", DASHED, "s"),
    "iw-onlinerank": _shown("IW-OnlineRank", "#CC79A7", DASH_DOT, "^"),
    "semibandit": _shown("Semi-bandit", "#882255", SOLID, "v"),
    "neighbourhood": _shown("Neighbourhood watch", "#8A8A00", DASHED, "<"),
    "ftpl": _shown("FTPL", "#000000", DOTTED, "D"),
    "onlinerank": _shown("OnlineRank", "#009E73", SOLID, "P"),
    "hedge": _shown("Hedge", "#44AA99", DASHED, "h"),
    "forecaster": _shown("Forecaster", "#7A3B10", DASH_DOT, "8"),
    "thompson": _shown("Thompson sampling", "#E69F00", DASHED, "*"),
    "epsilon-greedy": _shown("ε-greedy", "#56B4E9", SOLID, "p"),
    "cascade-ucb": _shown("CascadeUCB", "#332288", DASH_DOT, ">"),
    "toprank": _shown("TopRank", "#117733", DASHED, "d"),
    "pege": _shown("PEGE", "#AA4499", DOTTED, "<"),
    "pege2": _shown("PEGE2", "#B8A030", DASH_DOT, "H"),
    "random": _shown("Random order", _GREY, DOTTED, "X"),
    "fixed": _shown("Fixed list", "#404040", DASH_DOT, "+"),
    # of query-document lists
    "recall": _shown("Recall", "#D55E00", SOLID, "o"),
    "contextual-rtopk": _shown("Contextual RTop-kF", "#0072B2", DASHED, "s"),
    "listnet": _shown("ListNet", "#009E73", DASH_DOT, "D"),
    "slam": _shown("SLAM perceptron", "#E69F00", SOLID, "^"),
    "max-violation": _shown("Max-violation perceptron", "#CC79A7", DASHED, "v"),
    "kernel-slam": _shown("Kernel SLAM perceptron", "#8A6A00", DASH_DOT, "^"),
    "kernel-max-violation": _shown("Kernel max-violation perceptron", "#882255", DOTTED, "v"),
    "perceptron": _shown("Perceptron", "#7A3B10", SOLID, "8"),
    "linucb": _shown("LinUCB", "#332288", DASHED, ">"),
    "linear-thompson": _shown("Linear Thompson sampling", "#56B4E9", DASH_DOT, "*"),
    "pdgd": _shown("PDGD", "#44AA99", SOLID, "P"),
    "dbgd": _shown("DBGD", "#AA4499", DASHED, "h"),
    "random-lists": _shown("Random order", _GREY, DOTTED, "X"),
}
"""The rankers of the package by the names that tables have for them."""

# Further settings of a ranker keep its hue: darker, lighter, or turned a little.
_TURNS = ((0.0, 0.0), (0.0, -0.5), (0.0, 0.5), (0.1, -0.15), (-0.1, 0.3), (0.05, 0.55))


def ranker_name(name: str, k: int | None = None) -> str:
    """Return what readers call a ranker: that of a table, or a class of one's own.

    Examples
    --------
    >>> ranker_name("iw-onlinerank"), ranker_name("rtopk", k=1), ranker_name("mine.py:Best")
    ('IW-OnlineRank', 'RTop-1F', 'Best')
    """
    if name in RANKERS_SHOWN:
        shown = RANKERS_SHOWN[name].name
        return shown if k is None else shown.replace("-kF", f"-{k}F")
    own = re.fullmatch(r"\S+:(\w+)", name)
    return own[1] if own else name


def readable(label: str) -> str:
    """Return a label with the ranker that it may begin with by the name that readers know.

    Examples
    --------
    >>> readable("iw-onlinerank, k = 1"), readable("rtopk, top(2)"), readable("ftpl, full")
    ('IW-OnlineRank, k = 1', 'RTop-2F, top 2', 'FTPL, full information')
    """
    head, comma, rest = label.partition(", ")
    seen = re.fullmatch(r"top\((\d+)\)", rest)
    name = ranker_name(head, int(seen[1]) if seen else None)
    return f"{name}{comma}{reveal_name(rest)}"


def reveal_name(reveal: str) -> str:
    """Return what readers call that which a ranker sees.

    Examples
    --------
    >>> reveal_name("top(1)"), reveal_name("full"), reveal_name("choice(single)")
    ('top 1', 'full information', 'choice(single)')
    """
    top = re.fullmatch(r"top\((\d+)\)", reveal)
    return f"top {top[1]}" if top else {"full": "full information"}.get(reveal, reveal)


def source_name(path: str, longest: int = 40) -> str:
    """Return what a title calls where data is from: no folders, no ending, and not too long.

    Examples
    --------
    >>> source_name("data/ratings.csv.gz"), source_name("flips"), source_name("own/mine.py:Crowd")
    ('ratings', 'flips', 'Crowd')
    """
    name = re.sub(r"(\.[A-Za-z]\w*)+$", "", ranker_name(re.split(r"[/\\]", path)[-1]))
    name = name or path.strip("/\\.")
    if len(name) <= longest:
        return name
    return f"{name[: longest // 2]}…{name[1 - longest // 2 :]}"


def looks_of(drawn: Iterable[tuple[str, str]]) -> dict[str, Look]:
    """Return the look of each label, given with the ranker that it is a curve of, if any.

    A ranker looks as it does in every figure. Several labels of one ranker, which are settings of
    it, share its hue. What is no ranker's has colours in the order of its labels.

    Examples
    --------
    >>> looks = looks_of([("K = 10", "rtopk"), ("keystone", ""), ("noise 0.3", "")])
    >>> [look.colour for look in looks.values()]
    ['#0072B2', '#D55E00', '#0072B2']
    """
    rankers: dict[str, str] = {}
    for label, ranker in drawn:
        rankers.setdefault(label, ranker or _ranker_of(label))
    bases = _bases(rankers.values())
    n_seen: dict[str, int] = {}
    looks = {}
    for label, ranker in rankers.items():
        turn = n_seen.get(ranker, 0)
        n_seen[ranker] = turn + 1
        looks[label] = _setting(bases[ranker], turn) if ranker else _plain(turn)
    return looks


def _ranker_of(label: str) -> str:
    head = label.partition(", ")[0]
    return head if head in RANKERS_SHOWN or ranker_name(head) != head else ""


def _bases(rankers: Iterable[str]) -> dict[str, Look]:
    """Return the look of each ranker; those of one's own have it by their name, all different."""
    bases: dict[str, Look] = {}
    for ranker in rankers:
        if ranker in RANKERS_SHOWN:
            bases[ranker] = RANKERS_SHOWN[ranker].look
        elif ranker and ranker not in bases:
            first = zlib.crc32(ranker_name(ranker).encode())
            places = [(first + step) % len(_OWN_COLOURS) for step in range(len(_OWN_COLOURS))]
            taken = {look.colour for look in bases.values()}
            free = [place for place in places if _OWN_COLOURS[place] not in taken]
            place = (free or places)[0]
            bases[ranker] = Look(_OWN_COLOURS[place], _DASHES[first % 4], _OWN_MARKS[place])
    return bases


def _plain(place: int) -> Look:
    return Look(
        COLOURS[place % len(COLOURS)], _DASHES[place % len(_DASHES)], _MARKS[place % len(_MARKS)]
    )


def _setting(base: Look, turn: int) -> Look:
    """Return the look of a further setting of a ranker."""
    if turn == 0:
        return base
    by, lighter = _TURNS[turn % len(_TURNS)]
    parts = [int(base.colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    hue, lightness, saturation = colorsys.rgb_to_hls(*parts)
    parts = list(colorsys.hls_to_rgb((hue + by) % 1.0, lightness, 0.85 * saturation))
    goal = 1.0 if lighter > 0.0 or lightness < 0.05 else 0.0  # black has nothing to darken
    mixed = [part + abs(lighter) * (goal - part) for part in parts]
    colour = "#" + "".join(f"{round(255 * part):02X}" for part in mixed)
    dash = _DASHES[(_DASHES.index(base.dash) + turn) % len(_DASHES)]
    others = [mark for mark in _MARKS if mark != base.mark]
    return Look(colour, dash, others[(turn - 1) % len(others)])
