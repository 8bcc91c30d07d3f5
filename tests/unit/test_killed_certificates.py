"""Forged certificates, each wrong in one respect by no more than a hair, are all rejected.

The verifier must not take "as good" for "better", 0 for "positive", or the edge for the inside.
"""

import copy
import json
from fractions import Fraction

import pytest

from keyhole.monitoring.board import InvalidCertificate
from keyhole.monitoring.classification import classify, classify_matrices
from keyhole.monitoring.verify import check_certificate

FORMAT = "keyhole certificate 1"
SEEN = [[0, 1, 2]] * 3
"""Feedback that tells three outcomes apart, whatever the action."""


def hopeless(p, q, constant, *, is_exact=True, feedback=((0, 0), (0, 0)), outcomes=((0,), (1,))):
    """Return a certificate of the game of guessing one of two outcomes that are never shown."""
    return {
        "format": FORMAT,
        "class": "hopeless",
        "game": {"loss": [[0, 1], [1, 0]], "feedback": [list(row) for row in feedback]},
        "proofs": {
            "hopeless": {
                "outcomes": [list(outcome) for outcome in outcomes],
                "p": list(p),
                "q": list(q),
                "constant": str(constant),
                "is_exact": is_exact,
            }
        },
    }


def rejects(certificate, sentence):
    with pytest.raises(InvalidCertificate, match=sentence):
        check_certificate(certificate)


def test_guessing_what_is_never_shown_costs_one_half():
    """Under (1, 0) and (0, 1) both guesses lose 1 in sum, and the best ones 0."""
    assert check_certificate(hopeless("10", "01", "1/2")) == "hopeless"
    third = hopeless(["2/3", "1/3"], ["1/3", "2/3"], "1/6")
    assert check_certificate(third) == "hopeless"


def test_an_action_that_always_loses_forces_no_more():
    certificate = hopeless("10", "01", "1/2")
    certificate["game"] = {"loss": [[0, 1], [1, 0], [1, 1]], "feedback": [[0, 0]] * 3}
    assert check_certificate(certificate) == "hopeless"


def test_a_constant_of_zero_proves_nothing():
    rejects(hopeless(["1/2", "1/2"], ["1/2", "1/2"], 0), "must be positive")


def test_exact_constants_are_exact():
    for error in (Fraction(1, 10**15), Fraction(-1, 10**15)):
        rejects(hopeless("10", "01", Fraction(1, 2) + error), "the computed one")


def test_rounded_constants_are_rounded_down_by_at_most_a_unit_in_the_eleventh_digit():
    unit = Fraction(1, 10**11)
    for share in (0, 1, Fraction(1, 2)):
        rounded = hopeless("10", "01", Fraction(1, 2) - share * unit, is_exact=False)
        assert check_certificate(rounded) == "hopeless"
    for share in (Fraction(-1, 100), Fraction(101, 100)):
        forged = hopeless("10", "01", Fraction(1, 2) - share * unit, is_exact=False)
        rejects(forged, "the computed one")


def test_laws_of_feedback_must_be_equal():
    rejects(hopeless("10", "01", "1/2", feedback=((0, 0), (0, 1))), "one law of feedback")
    rejects(hopeless("10", "01", "1/2", outcomes=((0,), (0,))), "listed once")
    rejects(hopeless("10", "01", "1/2", outcomes=((0,), (2,))), "of the game")
    rejects(hopeless(["1/2", "2/5"], "01", "1/2"), "1")


def test_too_many_orders_are_not_tried():
    certificate = json.loads(json.dumps(classify("RR", 9, 6).certificate()))
    assert len(certificate["proofs"]["hopeless"]["outcomes"][0]) == 8
    del certificate["proofs"]["hopeless"]["best"]
    rejects(certificate, "at most 7 items")


def face_of(points, pair=(0, 1), loss=((1, 0, 0), (0, 1, 0), (0, 0, 1))):
    """Return the certificate of a game in which everything is shown, with other points."""
    rows = [list(row) for row in loss]
    certificate = json.loads(json.dumps(classify_matrices(rows, SEEN).certificate()))
    assert check_certificate(certificate) == "local"
    certificate["proofs"]["local"]["face"] = {"pair": list(pair), "points": points}
    return certificate


def test_points_of_a_face_lie_inside_the_simplex():
    """The fourth outcome is nobody's loss: its chance may be anything but 0."""
    loss = [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]]
    feedback = [[0, 1, 2, 3]] * 3
    certificate = json.loads(json.dumps(classify_matrices(loss, feedback).certificate()))
    inside = [["3/10", "1/5", "2/5", "1/10"], ["1/5", "3/10", "2/5", "1/10"]]
    edge = [["3/10", "1/5", "1/2", "0"], ["1/5", "3/10", "1/2", "0"]]
    certificate["proofs"]["local"]["face"] = {"pair": [0, 1], "points": inside}
    assert check_certificate(certificate) == "local"
    certificate["proofs"]["local"]["face"]["points"] = edge
    rejects(certificate, "inside the simplex")


def test_a_third_action_must_be_worse_on_both_sides_of_a_face():
    good = [["3/10", "1/5", "1/2"], ["1/5", "3/10", "1/2"]]
    assert check_certificate(face_of(good)) == "local"
    tie = ["2/5", "1/5", "2/5"]  # the third loses as much as the first
    rejects(face_of([tie, good[1]]), "no third action")
    tie = ["2/7", "3/7", "2/7"]
    rejects(face_of([good[0], tie]), "no third action")


def test_the_points_of_a_face_lie_on_different_sides():
    good = [["3/10", "1/5", "1/2"], ["1/5", "3/10", "1/2"]]
    between = ["1/4", "1/4", "1/2"]
    for points in (good[::-1], [good[0], good[0]], [between, good[1]], [good[0], between]):
        rejects(face_of(points), "on either side")


def test_the_best_action_of_a_trivial_game_never_loses_more():
    certificate = {
        "format": FORMAT,
        "class": "trivial",
        "game": {"loss": [[0, 1, 2], [0, 1, 2], [0, 1, 3]], "feedback": SEEN},
        "proofs": {"trivial": {"best": 0}},
    }
    for best in (0, 1):
        certificate["proofs"] = {"trivial": {"best": best}}
        assert check_certificate(certificate) == "trivial"
    certificate["proofs"] = {"trivial": {"best": 2}}
    rejects(certificate, "never lose more")


def test_a_normal_at_right_angles_to_everything_proves_nothing():
    certificate = json.loads(json.dumps(classify("SumLoss", 3, 1).certificate()))
    certificate["proofs"]["not local"]["normal"] = {"0": "0"}
    certificate["proofs"]["not local"]["value"] = {}
    rejects(certificate, "must not be at right angles to the difference")


def test_an_inferior_action_loses_as_much_as_a_mixture_or_more():
    """Half of either of the first two loses 2, as the third does in the first outcome."""
    loss = [[0, 4, 4], [4, 0, 4], [2, 3, 4]]
    certificate = json.loads(json.dumps(classify_matrices(loss, SEEN).certificate()))
    assert check_certificate(certificate) == "local"
    (proof,) = certificate["proofs"]["local"]["inferior"]
    assert proof["action"] == 2
    proof["weights"] = {"0": "1/2", "1": "1/2"}
    assert check_certificate(certificate) == "local"
    forged = copy.deepcopy(certificate)
    forged["game"]["loss"][2][0] = "1999/1000"
    rejects(forged, "never lose less than the mixture")
    forged = copy.deepcopy(certificate)
    forged["proofs"]["local"]["inferior"][0]["weights"] = {"2": "1"}
    rejects(forged, "duplicates prove nothing")


@pytest.mark.parametrize("chances", [["1/2", "1/3"], ["3/2", "-1/2"], ["1/2", "1/2", "1/2"]])
def test_chances_are_a_distribution(chances):
    with pytest.raises(InvalidCertificate):
        check_certificate(hopeless(chances, chances[::-1], "1/2"))


def test_feedback_depths_and_grades_must_make_sense():
    certificate = json.loads(json.dumps(classify("AP", 3, 3).certificate()))
    for key, value in (("k", 0), ("k", 4), ("grades", 1)):
        forged = copy.deepcopy(certificate)
        forged["game"][key] = value
        rejects(forged, "cannot be rebuilt")


def certified(loss, feedback):
    return json.loads(json.dumps(classify_matrices(loss, feedback).certificate()))


def test_an_action_on_the_segment_between_two_shows_what_tells_them_apart():
    """Only the third action shows the outcome; it is as good wherever both others are best."""
    certificate = certified([[0, 2], [2, 0], [1, 1]], [[0, 0], [0, 0], [0, 1]])
    assert check_certificate(certificate) == "local"
    aside = copy.deepcopy(certificate)  # no longer on the segment
    aside["game"]["loss"][2] = [1, 2]
    rejects(aside, "neighbourhood")


def test_a_third_action_keeps_two_apart():
    """(1, 1) is best between (0, 4) and (4, 0): 1 + s_0 + 4 slope = 0 = s_1 - 3 - 4 slope."""
    certificate = certified([[0, 4], [1, 1], [4, 0]], [[0, 1]] * 3)
    (proof,) = certificate["proofs"]["local"]["apart"]
    assert proof["pair"] == [0, 2]
    proof["third"] = [{"action": 1, "weight": "1"}]
    for slope, slack in (
        ("-1/2", {"0": "1", "1": "1"}), ("-1/4", {"1": "2"}), ("-3/4", {"0": "2", "1": "0"}),
    ):  # fmt: skip
        proof["slope"], proof["slack"] = slope, slack
        assert check_certificate(certificate) == "local"
    proof["slope"], proof["slack"] = "0", {"0": "-1", "1": "3"}
    rejects(certificate, "slack must not be negative")
    proof["slope"], proof["slack"] = "1/2", {"0": "1", "1": "1"}
    rejects(certificate, "as good as the pair")


def test_exchanges_are_of_neighbours_that_the_other_ranking_turns_round():
    certificate = json.loads(json.dumps(classify("SumLoss", 3, 3).certificate()))
    apart = certificate["proofs"]["local"]["apart"]
    assert check_certificate(certificate) == "local"
    rankings = [[0, 1, 2], [2, 1, 0]]
    for exchange, good in (([0, 1], True), ([1, 2], True), ([0, 2], False), ([1, 0], False)):
        forged = copy.deepcopy(certificate)
        forged["proofs"]["local"]["apart"] = [
            *apart, {"pair": rankings, "exchange": exchange}
        ]  # fmt: skip
        if good:
            assert check_certificate(forged) == "local"
        else:
            rejects(forged, "must disagree")


def test_an_exchange_that_the_other_ranking_counts_alike_proves_nothing():
    """Precision@2: 0 and 2 are both on top of the second ranking."""
    certificate = json.loads(json.dumps(classify("Precision@2", 3, 1).certificate()))
    assert check_certificate(certificate) == "local"
    forged = {"pair": [[0, 1, 2], [0, 2, 1]], "exchange": [0, 2]}
    certificate["proofs"]["local"]["apart"].append(forged)
    rejects(certificate, "must disagree")
