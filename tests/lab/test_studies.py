"""Studies as they are found: at their full horizon unless asked otherwise."""

from keyhole.lab.study import find_study, list_studies


def rounds_of(study):
    return {getattr(curve.spec, "game", curve.spec).rounds for curve in study.curves}


def test_studies_are_found_at_their_full_horizon():
    assert rounds_of(find_study("thesis-fig3.4")) == {200_000, 100_000}
    assert rounds_of(find_study("thesis-fig3.4", quick=True)) == {20_000}
    assert rounds_of(list_studies()["thesis-fig3.4"]) == {200_000, 100_000}
