"""The mutants themselves: which there are of a source, and what becomes of them."""

import ast
import json
from textwrap import dedent

import pytest

from bench.mutants.__main__ import main, package_of, sample
from bench.mutants.operators import Mutant, mutants_of


def changed(text):
    """Return every mutant of a text as (operator, its text)."""
    source = dedent(text).encode()
    mutants = mutants_of(source, "fake/one.py")
    for mutant in mutants:
        ast.parse(mutant.apply(source))
    return [(mutant.operator, mutant.apply(source).decode()) for mutant in mutants]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a < b", ["a <= b"]),
        ("a <= b", ["a < b"]),
        ("a > b >= c", ["a >= b >= c", "a > b > c"]),
        ("a == b", ["a != b"]),
        ("a is not None", ["a is None"]),
        ("a in b", ["a not in b"]),
        ("a + b", ["a - b"]),
        ("(a) * (b)", ["(a) / (b)"]),
        ("a ** b", ["a * b"]),
        ("a // b", ["a * b"]),
        ("a >> b", ["a << b"]),
        ("-a", ["(a)"]),
        ("not a", ["(a)"]),
        ("a and b and c", ["a or b and c", "a and b or c"]),
        ("x = 0", ["x = 1"]),
        ("x = 7", ["x = 8"]),
        ("x = 0.5", ["x = 1.0"]),
        ("x = 0.0", ["x = 1.0"]),
        ("x = True", ["x = False"]),
        ("min(a, b)", ["max(a, b)"]),
        ("a.argmax()", ["a.argmin()"]),
        ("x += a", ["pass", "x -= a"]),
        ("def f(x=2): ...", ["def f(x=3): ..."]),
        ("while a:\n    break", ["while a:\n    continue"]),
        ("def f() -> float:\n    return a", ["def f() -> float:\n    return - (a)"]),
        ("def f() -> bool:\n    return a", ["def f() -> bool:\n    return not (a)"]),
        ("def f():\n    a[i]", ["def f():\n    a[i - 1]"]),
        ("def f():\n    a[i:, :j]", ["def f():\n    a[i - 1:, :j]", "def f():\n    a[i:, :j - 1]"]),
        ("é = 'é', a < b", ["é = 'é', a <= b"]),
    ],
)
def test_the_mutants_of_a_line(text, expected):
    assert [new for _, new in changed(text)] == expected


@pytest.mark.parametrize(
    "text",
    [
        '"""Doc 1 + 1."""',
        "x: Array[1] = y",
        "def f(x: Literal[1]) -> Tuple[2]: ...",
        "raise ValueError(1 + 1)",
        "print(1 + 1)",
        "OUT.print(1 + 1)",
        'f"{x:.3f} {1 + 1}"',
        "def __repr__(self):\n    return 1 + 1",
        "@dataclass(frozen=True)\nclass A: ...",
        'if __name__ == "__main__":\n    main()',
        "Pairs = dict[key, value]",
        "cast(list[1], x)",
    ],
)
def test_what_no_machine_reads_has_no_mutants(text):
    assert changed(text) == []


def test_a_mutant_has_the_name_of_the_code_around_it():
    text = """
        class A:
            x = 1
            def f(self):
                def g(): return 2
                return lambda: 3
        def h(y=4): ...
    """
    names = [mutant.function for mutant in mutants_of(dedent(text).encode(), "fake/one.py")]
    assert names == ["", "A.f.<locals>.g", "A.f.<locals>.<lambda>", ""]


def test_the_difference_is_one_line():
    source = b"x = 1\ny = (\n    a\n    + b\n)\n"
    mutants = mutants_of(source, "fake/one.py")
    assert [m.difference(source) for m in mutants] == ["x = 1  ->  x = 2", "+ b  ->  - b"]
    assert [m.line for m in mutants] == [1, 4]


def test_every_package_gives_as_many():
    of = {name: [Mutant(name, "", n, "", 0, 0, "") for n in range(9)] for name in ("a", "b", "c")}
    of["few"] = of["a"][:1]
    drawn = sample(of, 13, seed=3)
    counts = {name: sum(package == name for package, _ in drawn) for name in of}
    assert counts == {"a": 4, "b": 4, "c": 4, "few": 1}
    assert drawn == sample(of, 13, seed=3)
    assert drawn != sample(of, 13, seed=4)
    assert drawn[:5] == sample(of, 5, seed=3)


def test_files_are_sampled_by_package():
    assert package_of("keyhole/measures/err.py") == "measures"
    assert package_of("keyhole/rankers/__init__.py") == "rankers/fixed"
    assert package_of("keyhole/rankers/lists/base.py") == "rankers/lists"
    assert package_of("keyhole/game/play.py") == "game"
    assert package_of("keyhole/__main__.py") == "cli"
    assert package_of("keyhole/errors.py") == "core"


@pytest.fixture
def project(tmp_path):
    """Make a project with one package, in which one mutant is told, one hangs and one is not."""
    root = tmp_path / "project"
    plugin = "bench/mutants"
    for folder in ("src/fake", "tests/unit", plugin):
        (root / folder).mkdir(parents=True)
    here = main.__globals__["ROOT"] / plugin
    for file in here.glob("*.py"):
        (root / plugin / file.name).write_text(file.read_text())
    (root / "bench/__init__.py").touch()
    (root / "pyproject.toml").write_text("[tool.pytest.ini_options]\naddopts = '--doctest-modules'")
    (root / "src/fake/__init__.py").touch()
    (root / "src/fake/one.py").write_text(
        dedent("""
            def total(values):
                result = 0
                for value in values:
                    result += value
                return result

            def larger(a, b):
                return a if a > b else b  # the same with >=

            def count_down(n):
                while n > 0:
                    n = n - 1
        """)
    )
    (root / "tests/unit/test_one.py").write_text(
        dedent("""
            from fake.one import count_down, larger, total

            def test_total():
                assert total([1, 2]) == 3

            def test_larger():
                assert larger(1, 2) == larger(2, 1) == larger(2, 2) == 2

            def test_count_down():
                count_down(3)
        """)
    )
    return root


def outcomes(root, *options):
    assert main([*options], root) == 0
    lines = (root / ".cache/mutants/verdicts.jsonl").read_text().splitlines()
    verdicts = [json.loads(line) for line in lines]
    return {verdict["difference"]: verdict["outcome"] for verdict in verdicts}, len(lines)


def test_a_wrong_sum_is_killed_and_what_is_equal_survives(project, capsys):
    before = {path: path.read_bytes() for path in project.rglob("src/**/*.py")}
    found, n_lines = outcomes(project, "--only", "src/fake/one.py:5", "--only", "fake/one.py:9")
    assert (
        found
        == {
            "result += value  ->  result -= value": "killed",
            "result += value  ->  pass": "killed",
            "return a if a > b else b # the same with >= "
            " ->  return a if a >= b else b # the same with >=": "survived",
        }
        or found
    )
    assert n_lines == 3
    assert "fake/one.py:9 [comparison, 3 tests] return a if a > b else b" in capsys.readouterr().out
    assert before == {path: path.read_bytes() for path in before}
    _, again = outcomes(project, "--only", "src/fake/one.py:5", "--only", "fake/one.py:9")
    assert again == n_lines  # verdicts are found again
    capsys.readouterr()


def test_what_never_ends_is_timed_out(project):
    found, _ = outcomes(project, "--only", "fake/one.py:13")
    assert found["n = n - 1  ->  n = n + 1"] == "timed out"
