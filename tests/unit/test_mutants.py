"""The mutants themselves: which there are of a source, and what becomes of them."""

import ast
import json
from textwrap import dedent

import pytest

from bench.mutants.__main__ import main
from bench.mutants.aimed import AIMED
from bench.mutants.operators import Mutant, mutants_of
from bench.mutants.sampling import TURNS, package_of, sample


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
        "zip(a, b, strict=True)",
        "axes.plot(a, lw=1.5, zorder=3)",
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
    assert names == ["", "A.f.<locals>.g", "A.f.<locals>.<lambda>", "h"]


def test_the_difference_is_one_line():
    source = b"x = 1\ny = (\n    a\n    + b\n)\n"
    mutants = mutants_of(source, "fake/one.py")
    assert [m.difference(source) for m in mutants] == ["x = 1  ->  x = 2", "+ b  ->  - b"]
    assert [m.line for m in mutants] == [1, 4]


def texts(kind, text):
    return [new for operator, new in changed(text) if operator == kind]


VARIANCES = {
    "s = math.sqrt(a / n + b * b)": [
        "s = math.sqrt((a / n))",
        "s = math.sqrt((b * b))",
    ],
    "s = np.sqrt(a - b)": ["s = np.sqrt((a))"],
    "variance = a * (b + c)": ["variance = a * ((b))", "variance = a * ((c))"],
    "self.spread += a + b": ["self.spread += (a)", "self.spread += (b)"],
    "half_width: float = a - b": ["half_width: float = (a)"],
    "def variance(a, b):\n    return a + b": [
        "def variance(a, b):\n    return (a)",
        "def variance(a, b):\n    return (b)",
    ],
    "x = sum(a + b for a in c)": ["x = sum((a) for a in c)", "x = sum((b) for a in c)"],
    "x = a + b": [],
    'variance = f"{a + b}"': [],
}
QUANTILES = {
    "x = bound(rows, confidence)": ["x = bound(rows, ((1.0 + confidence) / 2.0))"],
    "x = bound(rows, confidence=asked.confidence)": [
        "x = bound(rows, confidence=((1.0 + asked.confidence) / 2.0))"
    ],
    "x = (1.0 + confidence) / 2.0": ["x = (confidence)"],
    "x = 0.5 * (1.0 + self.confidence)": ["x = (self.confidence)"],
    "x = 1.0 - confidence": ["x = ((1.0 - confidence) / 2.0)"],
    "x = (1.0 - asked.confidence) / 2": [
        "x = (1.0 - asked.confidence)",
        "x = (((1.0 - asked.confidence) / 2.0)) / 2",
    ],
    "x = log(1.0 / delta)": ["x = log(1.0 / (delta / 2.0))"],
    "x = ppf(1 - alpha / 2)": ["x = ppf(1 - (alpha))", "x = ppf(1 - (alpha / 2.0) / 2)"],
    "x = 1.96 * s": ["x = 1.645 * s"],
    "x = quantile(0.975)": ["x = quantile(0.95)"],
    "delta = x": [],
}
OPTIONS = {
    "f(a, b=1)": ["f(a)"],
    "f(b=1, e=d)": ["f(*(), e=d)", "f(b=1)"],
    "f(b=1)": ["f(*())"],
    "f(\n    a,\n    b=c,\n    d=e,\n)": [
        "f(\n    a,\n    d=e,\n)",
        "f(\n    a,\n    b=c,\n)",
    ],
    "f(a, b=(c + d))": [],
    "zip(a, b, strict=True)": [],
    "plot(a, color=b, lw=c)": [],
    "check_integer(k, at_least=a)": [],
    "f(a, **b)": [],
    "def f(a, b=c, *, d=None):\n    return a, b, d": [
        "def f(a, b=c, *, d=None):\n    b = c\n    return a, b, d",
        "def f(a, b=c, *, d=None):\n    d = None\n    return a, b, d",
    ],
    "def f(b=c):\n    'Doc.'\n    if b: return a": [
        "def f(b=c):\n    'Doc.'\n    b = c\n    if b: return a"
    ],
    "def f(b=c): return b": ["def f(b=c): b = c; return b"],
    "def f(b=c):\n    return a": [],
}
FUTURES = {
    "x = rows[:-1]": ["x = rows[:]"],
    "x = rows[1:-1, 0]": ["x = rows[1:, 0]"],
    "x = rows[:t]": ["x = rows[:t + 1]"],
    "x = rows[: self.next_round]": ["x = rows[: self.next_round + 1]"],
    "x = rows[:n]": [],
    "x = event.round < now": ["x = event.round <= now"],
    "x = each.seq >= after": ["x = each.seq > after"],
    "x = a < b": [],
    "guess = model.guess(row)\nmodel.update(row)": ["model.update(row)\nguess = model.guess(row)"],
    "mean = total / n\ntotal += x": ["total += x\nmean = total / n"],
    "row = model.next()\nmodel.update(row)": [],
    "out[i] -= a\nout[j] += a": [],
    "self.kinds.update(events)\nself.numbers.add(len(events))": [],
}
WEIGHTS = {
    "x = weight * y": ["x = (y)"],
    "x = y * self.shares[i]": ["x = (y)"],
    "x = y / log.propensities": ["x = (y)"],
    "x = chance(a) * (b + c)": ["x = (b + c)"],
    "x *= discount": ["pass"],
    "x = weight / y": [],
    "x = weight + y": [],
}
DEFAULTS = {
    "def f(a=2): ...": ["def f(a=3): ..."],
    "def f(a, *, b=True): ...": ["def f(a, *, b=False): ..."],
    "def f(a=0.95): ...": ["def f(a=0.975): ..."],
    "def f(a=0.4): ...": ["def f(a=0.2): ..."],
    "def f(a=3.0, b=0.0): ...": ["def f(a=6.0, b=0.0): ...", "def f(a=3.0, b=1.0): ..."],
    "def f(a: Literal['b', 'c'] = 'b'): ...": ["def f(a: Literal['b', 'c'] = 'c'): ..."],
    "class A:\n    b: Literal['b', 'c'] | None = 'c'": [
        "class A:\n    b: Literal['b', 'c'] | None = 'b'"
    ],
    "class A:\n    b: float = 0.5": ["class A:\n    b: float = 0.25"],
    "def f(a='b', c=None): ...": [],
    "a: float = 0.5": [],
}
AIMED_AT = dict(
    zip(AIMED, (VARIANCES, QUANTILES, OPTIONS, FUTURES, WEIGHTS, DEFAULTS), strict=True)
)


@pytest.mark.parametrize(
    ("kind", "text"), [(kind, text) for kind, of in AIMED_AT.items() for text in of]
)
def test_what_puts_a_wrong_number_before_a_person(kind, text):
    assert sorted(texts(kind, text)) == sorted(AIMED_AT[kind][text])


def test_a_change_is_made_once():
    for text in ("variance = math.sqrt(a + b)", "x = t < n", "def f(a=1): return a"):
        made = [new for _, new in changed(text)]
        assert len(made) == len(set(made))


def test_people_are_hurt_by_some_packages_more_than_by_others():
    of = {name: [Mutant(name, "", n, "", 0, 0, "") for n in range(90)] for name in ("a", *TURNS)}
    drawn = sample(of, 2 * (1 + sum(TURNS.values())), seed=1)
    counts = {name: sum(package == name for package, _ in drawn) for name in of}
    assert counts == {name: 2 * TURNS.get(name, 1) for name in of}
    assert min(TURNS[name] for name in ("service", "lab", "cli", "offline", "figures")) == 3


def test_every_other_mutant_is_aimed_and_of_each_kind_are_as_many():
    kinds = ["constant"] * 900 + [AIMED[0]] * 300 + [AIMED[1]] * 20 + [AIMED[2]] * 2
    of = {"a": [Mutant("a", "", n, kind, 0, 0, "") for n, kind in enumerate(kinds)]}
    drawn = [mutant.operator for _, mutant in sample(of, 20, seed=1)]
    assert drawn.count("constant") == 10
    assert [drawn.count(kind) for kind in AIMED[:3]] == [4, 4, 2]
    everything = sample(of, 5000, seed=1)
    assert len({mutant.line for _, mutant in everything}) == len(everything) == len(kinds)


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
    assert package_of("keyhole/base/errors.py") == "base"
    assert package_of("keyhole/__init__.py") == "base"
    assert package_of("keyhole/lab/figures/panels.py") == "figures"
    assert package_of("keyhole/lab/advice.py") == "lab"


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
    (root / "src/conftest.py").write_text("LIMIT = 1\n")  # of tests, which nobody mutates
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
    assert found == {
        "result += value  ->  result -= value": "killed",
        "result += value  ->  pass": "killed",
        "return a if a > b else b # the same with >= "
        " ->  return a if a >= b else b # the same with >=": "survived",
    }
    assert n_lines == 3
    told = capsys.readouterr().out
    assert "fake/one.py:9 [comparison, 3 tests] return a if a > b else b" in told
    rows = {line.split("│")[1].strip(): line.split("│")[2:-1] for line in told.splitlines()
            if line.startswith("│")}  # fmt: skip
    cells = {name: [cell.strip() for cell in row] for name, row in rows.items()}
    assert cells["base"] == cells["all"] == ["3", "2", "0", "1", "66.7%"]
    assert cells["comparison"] == ["1", "0", "0", "1", "0.0%"]
    assert cells["deleted"] == ["1", "1", "0", "0", "100.0%"]
    assert before == {path: path.read_bytes() for path in before}
    (project / "tests/unit/test_more.py").write_text(
        "from fake.one import larger, total\n\n"
        "def test_both():\n    assert larger(total([1]), 0) == 1\n"
    )
    _, again = outcomes(project, "--only", "src/fake/one.py:5", "--only", "fake/one.py:9")
    assert again == n_lines + 1  # kills are found again, and the survivor meets the new test
    _, again = outcomes(project, "--only", "src/fake/one.py:5", "--only", "fake/one.py:9")
    assert again == n_lines + 1  # all verdicts are found again
    capsys.readouterr()


def test_a_mutant_that_cannot_be_imported_is_killed(project):
    (project / "src/fake/two.py").write_text(
        "LARGEST = [1, 2][1]\n\ndef largest(): return LARGEST\n"
    )
    (project / "tests/unit/test_two.py").write_text(
        "from fake.two import largest\n\ndef test_largest():\n    assert largest() == 2\n"
    )
    found, _ = outcomes(project, "--only", "fake/two.py:1")
    assert found == {
        "LARGEST = [1, 2][1]  ->  LARGEST = [2, 2][1]": "survived",
        "LARGEST = [1, 2][1]  ->  LARGEST = [1, 3][1]": "killed",
        "LARGEST = [1, 2][1]  ->  LARGEST = [1, 2][2]": "killed",
    }


def test_tests_that_cannot_begin_end_it_all(project):
    """Else no test would reach anything, and every mutant survive."""
    (project / "conftest.py").write_text("def pytest_of_a_plugin_that_is_not_there():\n    pass\n")
    with pytest.raises(RuntimeError, match=r"pytest could not begin:[\s\S]*unknown hook"):
        outcomes(project, "--only", "fake/one.py:5")


def test_what_never_ends_is_timed_out(project, monkeypatch):
    monkeypatch.setattr("bench.mutants.trial._SECONDS", 1.0)
    found, _ = outcomes(project, "--only", "fake/one.py:13")
    assert found["n = n - 1  ->  n = n + 1"] == "timed out"


def test_what_waits_for_ever_is_timed_out(project):
    """It uses no processor time, so that no limit of that would end it."""
    plugin = project / "bench/mutants/plugin.py"
    patient = plugin.read_text()
    assert patient.count("IDLE = 90.0") == 1
    plugin.write_text(patient.replace("IDLE = 90.0", "IDLE = 2.0"))
    (project / "src/fake/one.py").write_text(
        "def leave(gate, n_left):\n    if not n_left:\n        gate.set()\n    gate.wait()\n"
    )
    (project / "tests/unit/test_one.py").write_text(
        "import threading\nfrom fake.one import leave\n\n"
        "def test_leave():\n    leave(threading.Event(), 0)\n"
    )
    found, _ = outcomes(project, "--only", "fake/one.py:2")
    assert found == {"if not n_left:  ->  if (n_left):": "timed out"}
    verdict = json.loads((project / ".cache/mutants/verdicts.jsonl").read_text())
    assert verdict["by"] == "tests/unit/test_one.py::test_leave"


def test_a_pause_kills_nothing(project):
    """Whoever stops all processes for a while makes tests fail that look at a clock."""
    plugin = project / "bench/mutants/plugin.py"
    patient = plugin.read_text()
    assert patient.count("GAP = 15.0") == patient.count("IDLE = 90.0") == 1
    hasty = patient.replace("GAP = 15.0", "GAP = 2.0").replace("IDLE = 90.0", "IDLE = 3.0")
    plugin.write_text(hasty)
    (project / "tests/unit/test_one.py").write_text(
        dedent("""
            import os, subprocess, time
            from pathlib import Path
            from fake.one import larger, total

            def test_larger():
                began = time.monotonic()
                assert larger(2, 2) == 2
                if "MUTANTS_TESTS" in os.environ and not Path("was_paused").exists():
                    Path("was_paused").touch()
                    pid = os.getpid()
                    subprocess.Popen(["sh", "-c", f"sleep 4; kill -CONT {pid}"])
                    os.kill(pid, 19)
                    time.sleep(0.1)
                assert time.monotonic() - began < 3.0
        """)
    )
    found, _ = outcomes(project, "--only", "fake/one.py:9")
    assert set(found.values()) == {"survived"}
    assert (project / ".cache/mutants/tree0/was_paused").exists()


def test_what_hears_no_signal_is_timed_out_by_processor_time(project, monkeypatch):
    monkeypatch.setattr("bench.mutants.trial._START", 2.0)
    monkeypatch.setattr("bench.mutants.trial._SECONDS", 0.1)
    (project / "tests/unit/test_one.py").write_text(
        dedent("""
            import signal
            from fake.one import count_down

            def test_count_down():
                signal.signal(signal.SIGPROF, signal.SIG_IGN)
                count_down(3)
        """)
    )
    found, _ = outcomes(project, "--only", "fake/one.py:13")
    assert found["n = n - 1  ->  n = n + 1"] == "timed out"
    lines = (project / ".cache/mutants/verdicts.jsonl").read_text().splitlines()
    late = [json.loads(line) for line in lines if '"timed out"' in line]
    assert {verdict["by"] for verdict in late} == {"the whole turn"}


def test_a_test_that_fails_without_the_mutant_tells_nothing(project):
    """It passed when it was collected, and never again."""
    (project / "tests/unit/test_one.py").write_text(
        dedent("""
            from pathlib import Path
            from fake.one import total

            def test_once():
                total([1])
                Path("was_here").touch(exist_ok=False)

            def test_total():
                assert total([]) == 0
        """)
    )
    found, _ = outcomes(project, "--only", "fake/one.py:5")
    assert found["result += value  ->  result -= value"] == "survived"
    (project / "tests/unit/test_two.py").write_text(
        "from fake.one import total\n\ndef test_total():\n    assert total([1]) == 1\n"
    )
    found, _ = outcomes(project, "--only", "fake/one.py:5")
    assert found["result += value  ->  result -= value"] == "killed"


def test_an_exit_code_without_a_failed_test_tells_nothing(project):
    (project / "conftest.py").write_text(
        "import pytest\n\n@pytest.hookimpl(trylast=True)\n"
        "def pytest_sessionfinish(session):\n    session.exitstatus = 1\n"
    )
    found, _ = outcomes(project, "--only", "fake/one.py:9")
    assert set(found.values()) == {"survived"}
