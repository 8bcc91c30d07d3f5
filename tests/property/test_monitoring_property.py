"""Random games of small size: answers are proofs, and do not depend on how things are numbered."""

import json

import numpy as np
from hypothesis import given, settings, strategies as st

from keyhole.monitoring.classification import classify_matrices
from keyhole.monitoring.elimination import Span
from keyhole.monitoring.verify import check_certificate


@st.composite
def games(draw):
    n_actions, n_outcomes = draw(st.integers(1, 4)), draw(st.integers(1, 4))

    def matrix(entries):
        row = st.lists(entries, min_size=n_outcomes, max_size=n_outcomes)
        return draw(st.lists(row, min_size=n_actions, max_size=n_actions))

    return matrix(st.integers(-2, 3)), matrix(st.sampled_from("abc"))


@settings(max_examples=60, deadline=None)
@given(games(), st.randoms(use_true_random=False))
def test_classes_are_proved_and_do_not_depend_on_numbering(game, random):
    loss, feedback = game
    answer = classify_matrices(loss, feedback)
    assert answer.exact
    assert check_certificate(json.loads(json.dumps(answer.certificate()))) == answer.class_
    rows, columns = list(range(len(loss))), list(range(len(loss[0])))
    random.shuffle(rows)
    random.shuffle(columns)
    moved = [[[m[i][j] for j in columns] for i in rows] for m in (loss, feedback)]
    assert classify_matrices(*moved).class_ == answer.class_


@settings(max_examples=60, deadline=None)
@given(games(), st.integers(0, 3))
def test_seeing_everything_is_never_worse(game, action):
    loss, feedback = game
    before = classify_matrices(loss, feedback).class_
    feedback[action % len(feedback)] = [str(j) for j in range(len(feedback[0]))]
    order = ["trivial", "local", "global", "hopeless"]
    assert order.index(classify_matrices(loss, feedback).class_) <= order.index(before)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.lists(st.integers(-3, 3), min_size=4, max_size=4), min_size=1, max_size=5),
    st.lists(st.integers(-3, 3), min_size=4, max_size=4),
)
def test_a_vector_is_in_a_span_or_is_refuted(rows, target):
    span, matrix = Span(rows), np.array(rows)
    shares, normal = span.coefficients(target), span.refutation(target)
    assert (shares is None) != (normal is None)
    if shares is not None:
        assert (np.array(shares) @ matrix == np.array(target)).all()
    if normal is not None:
        assert not (matrix @ np.array(normal)).any()
        assert np.dot(np.array(normal), np.array(target)) != 0
    assert len(span.normals(4)) == 4 - np.linalg.matrix_rank(matrix)
