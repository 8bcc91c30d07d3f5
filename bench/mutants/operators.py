"""Small wrong changes of a source file, each of one place.

What a machine does not read is left alone: annotations, f-strings (messages and formats), the
arguments of ``raise`` and ``print``, decorators and ``__repr__``. Strings are never changed but
where a default is another of the words that its annotation allows. ``aimed.py`` has the changes
that put a wrong number before a person.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from bench.mutants import aimed
from bench.mutants.aimed import FUTURE, Change

_COMPARISONS = {"<": "<=", ">": ">=", "==": "!=", "is": "is not", "in": "not in"}
_COMPARISONS |= {new: old for old, new in _COMPARISONS.items()}
_ARITHMETIC = {"+": "-", "-": "+", "*": "/", "/": "*", "//": "*", "%": "//", "**": "*"}
_ARITHMETIC |= {">>": "<<", "<<": ">>", "&": "|", "^": "&"}
_EXTREMES = {"min": "max", "minimum": "maximum", "argmin": "argmax"}
_EXTREMES |= {most: least for least, most in _EXTREMES.items()}
_SYMBOLS = {
    type(ast.parse(f"a {symbol} b", mode="eval").body.ops[0]): symbol  # type: ignore[attr-defined]
    for symbol in _COMPARISONS
} | {
    type(ast.parse(f"a {symbol} b", mode="eval").body.op): symbol  # type: ignore[attr-defined]
    for symbol in _ARITHMETIC
}
_SURE_ALONE = {"strict"}  # it stops what never happens
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


@dataclass(frozen=True)
class Mutant:
    """One wrong change: bytes ``begin`` to ``end`` of a file become ``new``."""

    path: str  # below src
    function: str  # the qualified name of the function around it; empty outside of functions
    line: int
    operator: str
    begin: int
    end: int
    new: str

    def apply(self, source: bytes) -> bytes:
        """Return the changed source."""
        return source[: self.begin] + self.new.encode() + source[self.end :]

    def difference(self, source: bytes) -> str:
        """Return the changed line, before and after."""
        begin = source.rfind(b"\n", 0, self.begin) + 1
        end = source.find(b"\n", self.end)
        old = source[begin:end]
        new = old[: self.begin - begin] + self.new.encode() + old[self.end - begin :]
        return f"{_one_line(old)}  ->  {_one_line(new)}"


def _one_line(text: bytes) -> str:
    return " ".join(text.decode().split())


def mutants_of(source: bytes, path: str) -> list[Mutant]:
    """Return every mutant of a file, in the order of its text."""
    found = _Finder(source, path)
    found.visit(ast.parse(source))
    return sorted(found.mutants, key=lambda mutant: (mutant.begin, mutant.operator))


class _Finder(ast.NodeVisitor):
    def __init__(self, source: bytes, path: str) -> None:
        self._source, self._path = source, path
        self._starts = [0]
        for line in source.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))
        self._scope: list[ast.AST] = []
        self._seen: set[tuple[int, int, str]] = set()
        self.mutants: list[Mutant] = []

    def visit(self, node: ast.AST) -> None:
        self._take(aimed.of_expression(node, self))
        self._take(aimed.of_statement(node, self))
        self._take(self._of_expression(node))
        self._take(self._of_statement(node))
        if isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
            self._visit_scope(node)
            return
        if isinstance(node, ast.AnnAssign) and node.value is not None and self._is_field():
            self._visit_default(node.annotation, node.value)
            return
        for child in _changeable(node):
            self.visit(child)

    def _take(self, changes: Iterator[Change]) -> None:
        """Note the changes that nobody has made yet, and that leave a program."""
        for operator, begin, end, new in changes:
            if (begin, end, new) not in self._seen:
                self._seen.add((begin, end, new))
                line = self._source.count(b"\n", 0, begin) + 1
                self.mutants.append(
                    Mutant(self._path, self._name(), line, operator, begin, end, new)
                )

    def _visit_default(self, annotation: ast.expr | None, default: ast.expr) -> None:
        other = list(aimed.of_default(annotation, default, self))
        if other:
            self._take(iter(other))
        else:
            self.visit(default)

    def _visit_scope(self, node: ast.AST) -> None:
        if isinstance(node, ast.FunctionDef) and node.name == "__repr__":
            return
        self._scope.append(node)
        if isinstance(node, _FUNCTIONS):  # who calls the function can tell what its defaults are
            for argument, default in aimed.with_defaults(node.args):
                self._visit_default(argument.annotation, default)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            self._take(aimed.of_ignored(node, self))
        body = node.body if isinstance(node.body, list) else [node.body]  # type: ignore[attr-defined]
        for child in body:
            self.visit(child)
        self._scope.pop()

    def _is_field(self) -> bool:
        return bool(self._scope) and isinstance(self._scope[-1], ast.ClassDef)

    def _name(self) -> str:
        """Return the name that a code object has: only calls of functions count as reached."""
        if not any(isinstance(scope, _FUNCTIONS) for scope in self._scope):
            return ""
        names = []
        for scope in self._scope:
            names.append(getattr(scope, "name", "<lambda>"))
            names += ["<locals>"] if isinstance(scope, _FUNCTIONS) else []
        return ".".join(names[:-1])

    def _of_expression(self, node: ast.AST) -> Iterator[Change]:
        match node:
            case ast.Compare():
                sides = [node.left, *node.comparators]
                for left, symbol, right in zip(sides, node.ops, sides[1:], strict=False):
                    of_time = isinstance(symbol, ast.Lt | ast.GtE) and aimed.is_of_rounds(
                        left, right
                    )
                    name = FUTURE if of_time else "comparison"
                    yield from self._swap(name, left, symbol, right, _COMPARISONS)
            case ast.BinOp():
                yield from self._swap("arithmetic", node.left, node.op, node.right, _ARITHMETIC)
            case ast.BoolOp():
                old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
                for left, right in zip(node.values, node.values[1:], strict=False):
                    yield from self._between("boolean", left, right, old, new)
            case ast.UnaryOp(op=ast.USub() | ast.Not()):
                yield "sign", *self.span(node), f"({self.text(node.operand)})"
            case ast.Constant(value=bool(value)):
                yield "constant", *self.span(node), str(not value)
            case ast.Constant(value=int(value) | float(value)):
                larger = value + 1 if isinstance(value, int) or value == 0 else 2 * value
                yield "constant", *self.span(node), repr(larger)
            case ast.Subscript() if self._name():
                yield from self._indices(node.slice)
            case ast.Name(id=name) if name in _EXTREMES:
                yield "extreme", *self.span(node), _EXTREMES[name]
            case ast.Attribute(attr=name) if name in _EXTREMES:
                end = self.span(node)[1]
                yield "extreme", end - len(name), end, _EXTREMES[name]

    def _of_statement(self, node: ast.AST) -> Iterator[Change]:
        match node:
            case ast.AugAssign():
                yield "deleted", *self.span(node), "pass"
                yield from self._swap("arithmetic", node.target, node.op, node.value, _ARITHMETIC)
            case ast.Break():
                yield "jump", *self.span(node), "continue"
            case ast.Continue():
                yield "jump", *self.span(node), "break"
            case ast.Return(value=ast.expr() as value):
                returns = getattr(self._scope[-1], "returns", None)
                negate = {"bool": "not", "float": "-", "int": "-"}.get(getattr(returns, "id", ""))
                if negate is not None:
                    yield "returned", *self.span(value), f"{negate} ({self.text(value)})"

    def _indices(self, index: ast.expr) -> Iterator[Change]:
        """Every name that is an index, or a limit of a slice, is one too small."""
        for part in index.elts if isinstance(index, ast.Tuple) else [index]:
            places = [part.lower, part.upper] if isinstance(part, ast.Slice) else [part]
            for place in places:
                if isinstance(place, ast.Name):
                    yield "index", *self.span(place), f"{place.id} - 1"

    def _swap(
        self, name: str, left: ast.expr, symbol: ast.AST, right: ast.expr, swaps: dict[str, str]
    ) -> Iterator[Change]:
        old = _SYMBOLS.get(type(symbol))
        if old is not None:
            yield from self._between(name, left, right, old, swaps[old])

    def _between(
        self, name: str, left: ast.expr, right: ast.expr, old: str, new: str
    ) -> Iterator[Change]:
        """Change the symbol between two expressions, next to parentheses and line breaks."""
        begin, end = self.span(left)[1], self.span(right)[0]
        place = self._source.find(old.encode(), begin, end)
        if place >= 0 and b"#" not in self._source[begin:end]:
            yield name, place, place + len(old), new

    def between(self, begin: int, end: int) -> str:
        """Return the text between two places."""
        return self._source[begin:end].decode()

    def span(self, node: ast.stmt | ast.expr) -> tuple[int, int]:
        assert node.end_lineno is not None  # noqa: S101 - parsed from text
        assert node.end_col_offset is not None  # noqa: S101
        begin = self._starts[node.lineno - 1] + node.col_offset
        return begin, self._starts[node.end_lineno - 1] + node.end_col_offset

    def text(self, node: ast.stmt | ast.expr) -> str:
        begin, end = self.span(node)
        return self._source[begin:end].decode()


def _changeable(node: ast.AST) -> list[ast.AST]:
    """Return the parts of a node that a machine reads."""
    match node:
        case (
            ast.JoinedStr()
            | ast.Raise()
            | ast.Assert()
            | ast.Call(func=ast.Name(id="print" | "TypeVar") | ast.Attribute(attr="print"))
            | ast.If(test=ast.Name(id="TYPE_CHECKING"))
            | ast.If(test=ast.Compare(left=ast.Name(id="__name__")))
        ):
            return []
        case ast.Call(func=ast.Name(id="cast")):
            return [*node.args[1:]]
        case ast.Call():
            shown = [each for each in node.keywords if each.arg not in aimed.LOOKS | _SURE_ALONE]
            return [node.func, *node.args, *shown]
        case ast.AnnAssign():
            return [] if node.value is None else [node.value]
    return list(ast.iter_child_nodes(node))
