"""Wrong changes of the kinds that put a wrong number before a person, each of one place.

- *variance*: a term under a root, in a sum or in a variance is dropped.
- *quantile*: a one-sided confidence becomes a two-sided one, or the other way round.
- *ignored option*: an argument is its default whatever was given, or a keyword is not passed on.
- *leaked future*: a slice ends one later, a round counts as one of before, learning comes first.
- *weight*: a factor called a weight, a share, a propensity, a chance is left out.
- *default*: another one in a signature, or in a field of a class.
"""

import ast
import itertools
import re
from collections.abc import Iterator
from typing import Protocol

Change = tuple[str, int, int, str]  # the operator, where the old text begins and ends, the new text
VARIANCE, QUANTILE, OPTION = "variance", "quantile", "ignored option"
FUTURE, WEIGHT, DEFAULT = "leaked future", "weight", "default"
AIMED = (VARIANCE, QUANTILE, OPTION, FUTURE, WEIGHT, DEFAULT)

_ROOTS = ("sqrt", "hypot", "sum", "fsum")
_SPREAD = re.compile(r"varianc|spread|error|squares|deviation|half_width|noise")
_SURE = re.compile(r"confidence|coverage$")
_UNSURE = re.compile(r"^(delta|alpha)$")
_WEIGHT = re.compile(r"weight|share|propensit|chance|discount|probabilit")
_ROUND = re.compile(r"^(t|now|seq|rounds?|time|before|until|next_round|n_rounds)$|_(round|seq)$")
_LEARNS = ("update", "learn", "add", "append", "observe", "take", "push", "record", "put")
_QUANTILES = {1.96: 1.645, 1.645: 1.96, 0.975: 0.95, 0.95: 0.975, 0.025: 0.05, 0.05: 0.025}
_PLAIN = {
    "strict", "encoding", "errors", "help", "flush", "end", "file", "dtype", "check", "text",
    "capture_output", "stderr", "stdout", "exist_ok", "parents", "indent", "copy", "maxsize",
    "progress", "timeout",
}  # fmt: skip
"""Keywords that only say how something is done."""
LOOKS = {
    "alpha", "c", "color", "colors", "edgecolor", "facecolor", "figsize", "fontsize", "fontweight",
    "frameon", "framealpha", "ha", "highlight", "justify", "layout", "linestyle", "linewidth", "ls",
    "lw", "marker", "markersize", "markup", "ms", "pad", "rotation", "soft_wrap", "style",
    "title", "va", "zorder", "no_wrap", "bbox_inches", "dpi",
}  # fmt: skip


class Text(Protocol):
    """Where the parts of a source file stand in it."""

    def span(self, node: ast.stmt | ast.expr) -> tuple[int, int]: ...

    def text(self, node: ast.stmt | ast.expr) -> str: ...

    def between(self, begin: int, end: int) -> str: ...


def of_expression(node: ast.AST, source: Text) -> Iterator[Change]:
    """Yield the wrong changes of an expression."""
    match node:
        case ast.Call():
            if called(node) in _ROOTS:
                for argument in node.args:
                    yield from _terms(argument, source)
            yield from _arguments(node, source)
        case ast.BinOp():
            yield from _weights(node, source)
            yield from _halves(node, source)
        case ast.Name(id=name) if _UNSURE.search(name) and isinstance(node.ctx, ast.Load):
            yield QUANTILE, *source.span(node), f"({name} / 2.0)"
        case ast.Constant(value=float(value)) if value in _QUANTILES:
            yield QUANTILE, *source.span(node), repr(_QUANTILES[value])
        case ast.Slice(upper=ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=1)) as upper):
            yield FUTURE, *source.span(upper), ""
        case ast.Slice(upper=ast.Name() | ast.Attribute() as upper) if _ROUND.search(called(upper)):
            yield FUTURE, *source.span(upper), f"{source.text(upper)} + 1"


def _weights(node: ast.BinOp, source: Text) -> Iterator[Change]:
    """Leave out a factor, or what is divided by."""
    sides = [(node.right, node.left)] if isinstance(node.op, ast.Mult | ast.Div) else []
    if isinstance(node.op, ast.Mult):
        sides.append((node.left, node.right))
    for factor, rest in sides:
        if _WEIGHT.search(called(factor)):
            yield WEIGHT, *source.span(node), f"({source.text(rest)})"


def of_statement(node: ast.AST, source: Text) -> Iterator[Change]:
    """Yield the wrong changes of a statement, or of the statements of a body."""
    match node:
        case ast.Assign(targets=[target], value=value) | ast.AugAssign(target=target, value=value):
            if _SPREAD.search(called(target)):
                yield from _terms(value, source)
        case ast.AnnAssign(target=target, value=ast.expr() as value):
            if _SPREAD.search(called(target)):
                yield from _terms(value, source)
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            for each in _walk(node) if _SPREAD.search(name) else ():
                if isinstance(each, ast.Return) and each.value is not None:
                    yield from _terms(each.value, source)
    match node:
        case ast.AugAssign(op=ast.Mult() | ast.Div(), value=value):
            if _WEIGHT.search(called(value)):
                yield WEIGHT, *source.span(node), "pass"
    for name in ("body", "orelse"):
        body = getattr(node, name, None)
        if isinstance(body, list):
            yield from _swaps(body, source)


def is_of_rounds(left: ast.expr, right: ast.expr) -> bool:
    """Return whether a comparison is one of times, of which ``<`` may let in the present."""
    return any(_ROUND.search(called(side)) for side in (left, right))


def called(node: ast.AST) -> str:
    """Return what a value is called: the last name of it, or nothing."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Subscript(value=value) | ast.Call(func=value) | ast.Starred(value=value):
            return called(value)
    return ""


def _terms(value: ast.expr, source: Text) -> Iterator[Change]:
    """Drop each term of the sums in an expression; of a difference, what is taken away."""
    for node in _walk(value):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
            yield VARIANCE, *source.span(node), f"({source.text(node.left)})"
            if isinstance(node.op, ast.Add):
                yield VARIANCE, *source.span(node), f"({source.text(node.right)})"


def _halves(node: ast.BinOp, source: Text) -> Iterator[Change]:
    """Halve what may go wrong, or take back its half and that of a confidence."""
    halved = node.left
    match node:
        case ast.BinOp(op=ast.Sub(), left=ast.Constant(value=1)) if _SURE.search(
            called(node.right)
        ):
            yield QUANTILE, *source.span(node), f"(({source.text(node)}) / 2.0)"
            return
        case ast.BinOp(op=ast.Div(), right=ast.Constant(value=2)):
            pass
        case ast.BinOp(op=ast.Mult(), right=ast.Constant(value=0.5)):
            pass
        case ast.BinOp(op=ast.Mult(), left=ast.Constant(value=0.5)):
            halved = node.right
        case _:
            return
    names = [each for each in _walk(halved) if isinstance(each, ast.Name | ast.Attribute)]
    for name in names:
        if _SURE.search(called(name)):
            is_sum = isinstance(halved, ast.BinOp) and isinstance(halved.op, ast.Add)
            kept = source.text(name if is_sum else halved)
            yield QUANTILE, *source.span(node), f"({kept})"
            return
    if any(_UNSURE.search(called(name)) for name in names):
        yield QUANTILE, *source.span(node), f"({source.text(halved)})"


def _arguments(node: ast.Call, source: Text) -> Iterator[Change]:
    """Make a confidence that is passed on two-sided, and drop each keyword."""
    values = [*node.args, *(keyword.value for keyword in node.keywords)]
    ends = sorted(source.span(each)[1] for each in values)
    for argument in values:
        if _SURE.search(called(argument)) and not isinstance(argument, ast.Call | ast.Starred):
            yield QUANTILE, *source.span(argument), f"((1.0 + {source.text(argument)}) / 2.0)"
    end_of_function = source.span(node.func)[1]
    for keyword in node.keywords:
        if keyword.arg is None or keyword.arg in _PLAIN | LOOKS or called(node)[:5] == "check":
            continue  # of a check, whose argument would go on as it is
        begin, end = source.span(keyword.value)
        before = [stop for stop in ends if stop <= begin]
        # From the end of the argument before, or from the opening bracket on.
        first = before[-1] if before else end_of_function
        written = source.between(first, begin)
        place = written.rfind(keyword.arg)
        comma = written.rfind(",", 0, place)
        if place < 0 or "#" in written or written[place:].strip() != f"{keyword.arg}=":
            continue
        if before and comma >= 0:
            yield OPTION, first + len(written[:comma].encode()), end, ""
        elif not before:
            yield OPTION, first + len(written[:place].encode()), end, "*()"


def _swaps(body: list[ast.stmt], source: Text) -> Iterator[Change]:
    """Let a statement that learns come before the one that it follows."""
    for first, second in itertools.pairwise(body):
        if not isinstance(first, ast.Assign | ast.Expr | ast.AugAssign | ast.AnnAssign):
            continue
        match second:
            case ast.AugAssign(target=learner):
                pass
            case ast.Expr(value=ast.Call(func=ast.Attribute(attr=name, value=learner))):
                if name not in _LEARNS:
                    continue
            case _:
                continue
        if not re.search(rf"\b{re.escape(source.text(learner))}", source.text(first)):
            continue  # it reads nothing of what learns
        made = _names(first, ast.Store)
        if _root(learner) in _names(first, ast.Load) and not made & _names(second, ast.Load):
            begin, middle = source.span(first)
            other, end = source.span(second)
            between = source.between(middle, other)
            yield FUTURE, begin, end, f"{source.text(second)}{between}{source.text(first)}"


def _names(node: ast.AST, context: type[ast.expr_context]) -> set[str]:
    found = (each for each in _walk(node) if isinstance(each, ast.Name))
    return {each.id for each in found if isinstance(each.ctx, context)}


def _root(node: ast.AST) -> str:
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def of_default(annotation: ast.expr | None, default: ast.expr, source: Text) -> Iterator[Change]:
    """Yield another default of an argument or a field, which is as plausible."""
    value = default.value if isinstance(default, ast.Constant) else None
    new = None
    if isinstance(value, bool):
        new = repr(not value)
    elif isinstance(value, int):
        new = repr(value + 1)
    elif isinstance(value, float) and value in _QUANTILES:
        new = repr(_QUANTILES[value])
    elif isinstance(value, float):
        new = repr(value / 2 if 0.0 < value < 1.0 else 2 * value if value else 1.0)
    elif isinstance(value, str):
        others = [each for each in _literals(annotation) if each != value]
        new = repr(others[0]) if others else None
    if new is not None:
        yield DEFAULT, *source.span(default), new


def _literals(annotation: ast.expr | None) -> list[str]:
    """Return the words that an annotation allows."""
    nodes = () if annotation is None else _walk(annotation)
    return [
        each.value
        for node in nodes
        if isinstance(node, ast.Subscript) and called(node) == "Literal"
        for each in _walk(node.slice)
        if isinstance(each, ast.Constant) and isinstance(each.value, str)
    ]


def of_ignored(node: ast.FunctionDef | ast.AsyncFunctionDef, source: Text) -> Iterator[Change]:
    """Let each argument that is used be its default, whatever was given."""
    first = next((each for each in node.body if not _is_docstring(each)), None)
    if first is None:
        return
    used = set[str]().union(*(_names(each, ast.Load) for each in node.body))
    begin, _ = source.span(first)
    line = source.between(0, begin).rpartition("\n")[2]
    after = f"\n{line}" if not line.strip() else "; "
    if (after == "; " and not isinstance(first, ast.Return | ast.Expr | ast.Assign)) or (
        getattr(first, "decorator_list", None)
    ):
        return
    for argument, default in with_defaults(node.args):
        if argument.arg in used and not isinstance(default, ast.Call):
            yield OPTION, begin, begin, f"{argument.arg} = {source.text(default)}{after}"


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def with_defaults(arguments: ast.arguments) -> Iterator[tuple[ast.arg, ast.expr]]:
    """Yield the arguments of a function that have a default."""
    by_place = [*arguments.posonlyargs, *arguments.args]
    last = by_place[len(by_place) - len(arguments.defaults) :]
    yield from zip(last, arguments.defaults, strict=True)
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        if default is not None:
            yield argument, default


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a node and all in it but messages, whose parts have no place in the file."""
    if not isinstance(node, ast.JoinedStr | ast.Raise | ast.Assert):
        yield node
        for child in ast.iter_child_nodes(node):
            yield from _walk(child)
