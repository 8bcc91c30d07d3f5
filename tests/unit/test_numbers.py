"""The table of quoted numbers: every text stands in its page, and a wrong number is noticed."""

import json
import re

import pytest

from bench import numbers
from bench.numbers_quoted import ROOT, agrees, compare, find, names_of
from bench.numbers_tools import of_study
from keyhole.lab.claims import Verdict
from keyhole.lab.run import Reproduction
from keyhole.lab.study import list_studies

TABLE = numbers.read_table()
QUOTED = [quoted for row in TABLE["measured"] for quoted in row.get("quoted", [])]
PAGES = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "papers").glob("*/README.md")]


def test_every_study_and_every_text_is_there():
    assert sorted(row["study"] for row in TABLE["measured"] if "study" in row) == sorted(
        list_studies()
    )
    names = [row["name"] for row in TABLE["measured"]]
    assert len(set(names)) == len(names)
    for quoted in QUOTED:
        places = quoted["text"].count("{")
        assert len(find(quoted)) == places
        assert (places == 0) == ("value" in quoted), quoted
    for row in TABLE["measured"]:
        claims = [c["text"] for c in list_studies()[row["study"]].claims] if "study" in row else []
        assert set(row.get("known_failures", {})) <= set(claims)
    for entry in TABLE["elsewhere"]:
        assert find(entry) == []


def test_every_number_with_an_error_beside_it_is_quoted():
    """A mean and its standard error are always measured: none may stand outside the table."""
    shown = re.compile(r"[\d.]+ ± [\d.]+")
    for page in PAGES:
        if page.name == "numbers.md":
            continue
        prose = re.sub(r"```.*?```", "", page.read_text(), flags=re.S)
        known = sum(
            quoted["text"].count("} ± {") for quoted in QUOTED if ROOT / quoted["file"] == page
        )
        assert len(shown.findall(prose)) == known, page


@pytest.mark.parametrize(
    ("quoted", "measured", "digits", "same"),
    [
        (".257", 0.2574, None, True),
        (".257", 0.2576, None, False),
        ("0.2484", 0.24843, None, True),
        ("1,177", 1177.4, None, True),
        ("1,177", 1177.6, None, False),
        ("2e-6", 2.4e-6, None, True),
        ("2e-6", 2.6e-6, None, False),
        ("-12", -12.1, None, True),
        ("20,000", 17_300.0, 1, True),
        ("20,000", 13_000.0, 1, False),
        (".5", float("nan"), None, False),
    ],
)
def test_numbers_agree_to_the_last_digit_that_is_written(quoted, measured, digits, same):
    assert agrees(quoted, measured, digits) is same


def test_a_wrong_number_or_word_is_noticed(tmp_path):
    (tmp_path / "page.md").write_text("It ends at\n.257 ± .001,\nhalf of what it was; twice twice")
    ends = {"file": "page.md", "text": "ends at {end} ± {error}"}
    assert names_of(ends) == ["end", "error"]
    values = {"end": 0.2571, "error": 0.00104, "share": 0.52}
    assert [each.agrees for each in compare(ends, values, tmp_path)] == [True, True]
    wrong = compare(ends, {**values, "end": 0.26}, tmp_path)
    assert [each.agrees for each in wrong] == [False, True]
    assert [each.agrees for each in compare(ends, None, tmp_path)] == [None, None]
    half = {"file": "page.md", "text": "half of", "value": "share", "low": 0.4, "high": 0.6}
    assert [each.agrees for each in compare(half, values, tmp_path)] == [True]
    assert [each.agrees for each in compare(half, {"share": 0.7}, tmp_path)] == [False]
    for text in ("ends at {end} or", "twice"):
        with pytest.raises(ValueError, match=r"must stand in page\.md once"):
            find({"file": "page.md", "text": text}, tmp_path)


KNOWN = {"it rises": "it is flat"}
HELD = {"claim: it falls": 1.0, "claim: it rises": 0.0}


@pytest.mark.parametrize(
    ("known", "held", "expected"),
    [
        (KNOWN, HELD, [("1", 1.0, True), ("fails", 0.0, True)]),
        ({}, {**HELD, "claim: it rises": 1.0}, [("0", 0.0, True)]),
        ({}, HELD, [("0", 1.0, False), ("holds", 0.0, False)]),
        (KNOWN, {**HELD, "claim: it rises": 1.0}, [("1", 0.0, False), ("fails", 1.0, False)]),
        (
            KNOWN,  # one fails, as is known, but it is another one
            {"claim: it falls": 0.0, "claim: it rises": 1.0},
            [("1", 1.0, False), ("holds", 0.0, False), ("fails", 1.0, False)],
        ),
        (KNOWN, {"claim: it falls": 1.0}, [("1", 0.0, True), ("fails", None, None)]),
        (KNOWN, None, [("1", None, None)]),
    ],
    ids=["as known", "all hold", "unknown", "holds after all", "another", "not judged", "failed"],
)
def test_claims_fail_as_is_known_and_no_others(known, held, expected):
    row = {"name": "x", "study": "x", "known_failures": known}
    found = numbers.claims_of(row, held)
    assert [(each.quoted, each.measured, each.agrees) for each in found] == expected
    reasons = [each.text for each in found[1:] if each.quoted == "fails"]
    assert reasons == ["it rises: it is flat" for _ in reasons]
    wrong = numbers.judged(row, {"values": held, "seconds": 0.0, "error": ""})
    assert wrong.agrees is (held is not None and all(agrees for *_, agrees in expected))


def test_a_study_says_which_of_its_claims_hold():
    verdicts = tuple(Verdict(name, held, "") for name, held in
                     {"a": True, "b": False, "c": None, "d": True}.items())  # fmt: skip
    found = of_study(Reproduction(list_studies()["rates"], {}, {}, verdicts, 0))
    assert found == {
        "claim: a": 1.0, "claim: b": 0.0, "claim: d": 1.0,
        "claims that hold": 2, "claims that fail": 1, "claims not judged": 1,
    }  # fmt: skip


def test_the_failure_that_the_record_of_results_has_is_known():
    """Of all studies: docs/results has one, and no other is excused."""
    for row in TABLE["measured"]:
        if "study" in row:
            kept = json.loads((ROOT / f"docs/results/{row['study']}.json").read_text())
            failed = {each["claim"] for each in kept["verdicts"] if each["holds"] is False}
            assert failed == set(row.get("known_failures", {})), row["study"]


@pytest.mark.parametrize(("chance", "code"), [("0.25", 0), ("0.75", 1)])
def test_the_command_measures_keeps_and_fails(chance, code, tmp_path, monkeypatch, capsys):
    page = f"# Numbers\n\nHalf of a half is {chance}.\n"
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "page.md").write_text(page)
    ran = tmp_path / "ran"
    row = {
        "name": "chance",
        "code": f"values['chance'] = 0.5 * 0.5\nopen({str(ran)!r}, 'a').write('once ')",
        "quoted": [{"file": "docs/page.md", "text": "a half is {chance}."}],
    }
    other = {**row, "name": "other", "code": "values['chance'] = 1 / 0"}
    table = {"measured": [row, other], "elsewhere": []}
    monkeypatch.setattr(numbers, "read_table", lambda: table)
    monkeypatch.setattr(numbers, "OUT", tmp_path / "out")
    monkeypatch.setattr(numbers, "PAGE", tmp_path / "docs" / "numbers.md")
    monkeypatch.setattr(numbers, "PAGES", tmp_path)
    assert numbers.main(["--only", "chance"]) == code
    assert not (tmp_path / "docs" / "numbers.md").exists()  # not everything was measured
    record = json.loads((tmp_path / "out" / "numbers.json").read_text())
    assert [each["agrees"] for each in record["rows"][0]["compared"]] == [code == 0]
    assert numbers.main(["--only", "chance"]) == code
    assert ran.read_text() == "once "  # what was measured is kept
    assert ("disagree" in capsys.readouterr().out) == (code == 1)
