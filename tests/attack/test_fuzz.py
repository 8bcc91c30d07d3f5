"""The fuzzer: a tenth of it, interpreted, and whether it can fail."""

import json
import signal
import sys
from random import Random

import pytest

from bench.fuzz.__main__ import classes_of, main
from bench.fuzz.cases import AREAS, area_of, judge
from bench.fuzz.scene import Scene
from bench.fuzz.workers import Workers
from tests.attack import planted

SEED = 12


def reports_of(judge_of_cases, numbers=(1,), **options):
    workers = Workers(judge_of_cases, planted.nothing, jobs=1, **options)
    return sorted(workers.run(SEED, numbers), key=lambda report: report.number)


def check_cases_hold(n_cases, areas, folder, capsys):
    options = ["--cases", str(n_cases), "--seed", str(SEED), "--only", ",".join(areas)]
    code = main([*options, "--jobs", "1", "--out", str(folder)])
    assert code == 0, capsys.readouterr().out


def test_a_hundred_cases_of_compiled_code_hold(tmp_path, capsys):
    """Readers of files alone: of rankers the fuzzer would compile every one. `make fuzz` does."""
    check_cases_hold(100, ["files"], tmp_path, capsys)


@pytest.mark.interpreted
def test_a_thousand_cases_hold(tmp_path, capsys):
    """Interpreted, what reaches beyond an array is an IndexError."""
    check_cases_hold(1000, AREAS, tmp_path, capsys)


PLANTED = {
    planted.constructor_raises: "TypeError at ",
    planted.update_writes_nan: "state of ftpl is not finite: planted",
    planted.refusal_changes_the_state: "a refused call changed the state of ftpl: planted",
    planted.refusal_is_no_sentence: "a refusal is not one sentence: planted",
    planted.bad_state_is_taken: "bad input was taken: planted",
    planted.command_takes_bad_input: "bad input was taken: play",
    planted.command_has_a_fault: "exit code 4: play",
    planted.command_prints_a_traceback: "a traceback is printed: play",
    planted.command_prints_no_json: "what is printed is no JSON: list",
    planted.command_refuses_without_a_word: "a refusal is not one sentence: play",
    planted.file_is_half_written: "a file is half-written: .npz",
    planted.temporary_file_is_left: "a temporary file is left",
}


@pytest.mark.parametrize("defect", PLANTED, ids=lambda defect: defect.__name__)
def test_a_defect_in_the_library_is_seen(defect):
    failures = defect(SEED, 1).failures
    assert len(failures) == 1
    assert failures[0].kind.startswith(PLANTED[defect])


def test_what_is_sound_holds():
    report = planted.sound(SEED, 1)
    assert report.failures == []
    assert (report.n_worked, report.n_refused) == (2, 2)


@pytest.mark.parametrize(
    ("defect", "limit", "kind"),
    [
        (planted.hangs, 1.0, "hangs for more than 1 s"),
        (planted.starts_what_never_ends, 1.0, "hangs for more than 1 s"),
        (planted.crashes, 20.0, "dies of SIGSEGV at "),
        (planted.exits, 20.0, "dies of exit code 7 at "),
        (planted.attack_is_wrong, 20.0, "the attack itself fails"),
    ],
)
def test_a_worker_that_ends_is_named_and_replaced(defect, limit, kind):
    reports = reports_of(defect, (0, 1, 2), limit=limit)
    assert [report.number for report in reports] == [0, 1, 2]
    assert [failure.kind[: len(kind)] for failure in reports[1].failures] == [kind]
    if defect is not planted.attack_is_wrong:
        assert not reports[0].failures
        assert not reports[2].failures


def test_a_worker_that_is_given_little_is_waited_for():
    (report,) = reports_of(planted.is_given_little, limit=1.5)
    assert report.failures == []
    assert report.seconds > 2.0


def test_failures_are_kept_with_what_replays_them(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("bench.fuzz.__main__.judge", planted.file_is_half_written)
    monkeypatch.setattr("bench.fuzz.__main__.warm", planted.no_areas)
    options = ["--cases", "2", "--seed", "3", "--jobs", "1", "--out", str(tmp_path)]
    assert main(options) == 1
    told = capsys.readouterr().out
    kept = [json.loads(line) for line in (tmp_path / "failures-3.jsonl").read_text().splitlines()]
    assert [case["number"] for case in kept] == [0, 1]
    assert "a file is half-written: .npz (--seed 3 --case 0)" in told


@pytest.mark.interpreted
@pytest.mark.parametrize("area", AREAS)
def test_what_is_tried_follows_from_seed_and_number(area):
    number = next(n for n in range(3000) if area_of(SEED, n) == area)
    first, again = (AREAS[area].draw(Random(f"case {SEED} {number}")) for _ in range(2))
    assert first.what == again.what
    if area != "environments":  # a process each
        assert judge(SEED, number).told == judge(SEED, number).told


def test_classes_are_counted_and_have_their_first_case():
    reports = [planted.file_is_half_written(SEED, number) for number in (4, 3)]
    assert classes_of(reports) == [("rounds", "a file is half-written: .npz", 2, 3)]


def test_a_command_leaves_interrupts_as_they_were(tmp_path):
    """It ends deaf to them: what was started after it in this process would never hear any."""
    heard, hook = signal.getsignal(signal.SIGINT), sys.unraisablehook
    Scene(tmp_path).command(["--version"])
    assert signal.getsignal(signal.SIGINT) is heard
    assert sys.unraisablehook is hook
