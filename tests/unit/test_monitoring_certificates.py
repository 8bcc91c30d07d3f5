"""Every certificate of the table is checked; corrupted ones are rejected."""

import copy
import json
import random
from fractions import Fraction
from typing import Any

import pytest

from keyhole.base.errors import InvalidInput
from keyhole.monitoring.board import InvalidCertificate
from keyhole.monitoring.classification import classify, classify_matrices
from keyhole.monitoring.verify import check_certificate
from tests.unit.test_monitoring_classes import OWN

TABLE = [
    *(("SumLoss", "PairwiseLoss", "InversionLoss", "DCG", "NDCG", "AP", "AUC", "ERR", "RR")),
    *("DCG@2", "NDCG@2", "Precision@1", "Precision@2", "Recall@1", "Recall@2", "AP@2", "RR@2"),
]
NUMBERS = ("p", "q", "points", "value", "weight", "weights", "normal", "constant", "slope", "slack")


def travelled(certificate: Any) -> Any:
    """Return a certificate as it comes out of a file."""
    return json.loads(json.dumps(certificate))


def places(tree: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return where the coefficients, probabilities and constants of a certificate are."""
    if isinstance(tree, dict):
        return [place for key, value in tree.items() for place in places(value, (*path, key))]
    if isinstance(tree, list):
        return [place for i, value in enumerate(tree) for place in places(value, (*path, i))]
    numeric = isinstance(tree, str) and any(key in NUMBERS for key in path)
    return [path] if numeric else []


def corrupted(certificate: Any, path: tuple[Any, ...], by: Fraction) -> Any:
    """Return a copy in which one number is changed."""
    changed = copy.deepcopy(certificate)
    tree = changed
    for key in path[:-1]:
        tree = tree[key]
    tree[path[-1]] = str(Fraction(tree[path[-1]]) + by)
    return changed


def check_corruptions(certificate: Any, most: int) -> int:
    """Change numbers one at a time, at most so many, and see each change rejected."""
    everywhere = places(certificate["proofs"], ("proofs",))
    chosen = random.Random(0).sample(everywhere, min(most, len(everywhere)))
    for path in chosen:
        for by in (Fraction(1, 7), Fraction(-1, 10**9)):
            with pytest.raises(InvalidCertificate):
                check_certificate(corrupted(certificate, path, by))
    return len(chosen)


@pytest.mark.parametrize(("n_items", "grades"), [(2, 2), (3, 2), (4, 2), (2, 3), (3, 3)])
def test_every_certificate_of_the_table_verifies_and_corrupted_ones_do_not(n_items, grades):
    for name in TABLE:
        for k in range(1, n_items + 1):
            answer = classify(name, n_items, k, grades, method="enumeration")
            certificate = travelled(answer.certificate())
            assert check_certificate(certificate) == answer.class_
            if answer.class_ != "trivial":
                assert check_corruptions(certificate, most=1) == 1


@pytest.mark.parametrize(
    ("name", "k", "grades"),
    [
        ("SumLoss", 1, 2),
        ("SumLoss", 2, 2),
        ("NDCG", 1, 2),
        ("NDCG", 2, 2),
        ("NDCG", 3, 2),
        ("AP", 1, 2),
        ("AP", 2, 2),
        ("AP", 3, 2),
        ("ERR", 2, 2),
        ("PairwiseLoss", 1, 3),
        ("PairwiseLoss", 2, 3),
        ("Recall@1", 2, 2),
    ],
)
def test_no_number_of_a_certificate_can_be_changed(name, k, grades):
    certificate = travelled(classify(name, 3, k, grades, method="enumeration").certificate())
    everywhere = places(certificate["proofs"])
    assert check_corruptions(certificate, most=len(everywhere)) == len(everywhere) > 3


@pytest.mark.parametrize(("loss", "feedback", "class_"), [row[1:] for row in OWN])
def test_certificates_of_ones_own_games(loss, feedback, class_):
    certificate = travelled(classify_matrices(loss, feedback).certificate())
    assert check_certificate(certificate) == class_
    check_corruptions(certificate, most=40)


@pytest.mark.parametrize(
    ("name", "n_items", "k", "constant"),
    [
        ("NDCG", 1000, 1, 0.044092),  # as much as three items force
        ("NDCG@10", 50, 2, 0.015603),
        ("AP", 20, 1, 1 / 16),
        ("AUC", 20, 1, 17 / 2736),
        ("Recall@5", 20, 1, 1 / 160),
        ("RR", 9, 6, None),
        ("AUC", 9, 6, None),
    ],
)
def test_hopeless_certificates_of_any_size(name, n_items, k, constant):
    answer = classify(name, n_items, k, method="rule")
    certificate = travelled(answer.certificate())
    assert check_certificate(certificate) == answer.class_ == "hopeless"
    stated = float(Fraction(certificate["proofs"]["hopeless"]["constant"]))
    assert stated > 0
    if constant is not None:
        assert stated == pytest.approx(constant, abs=1e-6)
    check_corruptions(certificate, most=4)


def test_a_claim_for_more_feedback_than_was_proved_is_rejected():
    certificate = travelled(classify("NDCG", 3, 1).certificate())
    for key, value in (("k", 2), ("measure", "AUC"), ("n_items", 2), ("grades", 1)):
        changed = copy.deepcopy(certificate)
        changed["game"][key] = value
        with pytest.raises(InvalidCertificate):
            check_certificate(changed)


def test_proofs_cannot_be_left_out():
    local = travelled(classify("AP", 3, 3).certificate())
    changed = copy.deepcopy(local)
    changed["proofs"]["local"]["pairs"].pop()
    with pytest.raises(InvalidCertificate, match="every pair"):
        check_certificate(changed)
    rates = travelled(classify("SumLoss", 3, 1).certificate())
    rates["proofs"]["global"]["pairs"].pop()
    with pytest.raises(InvalidCertificate, match="every swap"):
        check_certificate(rates)
    with pytest.raises(InvalidCertificate, match="not complete"):
        check_certificate({"format": "keyhole certificate 1", "class": "local"})
    with pytest.raises(InvalidCertificate, match="the format must be"):
        check_certificate({"format": "another"})
    with pytest.raises(InvalidCertificate, match="cannot be rebuilt"):
        check_certificate({**local, "game": {**local["game"], "measure": "AP@0"}})


def test_a_false_claim_of_local_observability_is_rejected():
    """Parts that only other rankings show do not count."""
    certificate = travelled(classify("SumLoss", 3, 1).certificate())
    pairs = certificate["proofs"]["global"]["pairs"]
    face = {key: certificate["proofs"]["not local"][key] for key in ("pair", "points")}
    certificate["class"] = "local"
    certificate["proofs"] = {"local": {"pairs": pairs, "apart": [], "face": face}}
    with pytest.raises(InvalidCertificate, match="neighbourhood"):
        check_certificate(certificate)


def test_games_without_a_certificate_say_so():
    with pytest.raises(InvalidInput, match="no certificate is known"):
        classify("NDCG", 20, 18).certificate()
    with pytest.raises(InvalidInput, match="too large to enumerate"):
        classify("SumLoss", 20, 1).certificate()
