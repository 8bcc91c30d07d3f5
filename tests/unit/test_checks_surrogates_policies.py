"""The checks of surrogates and policies pass what keeps the contract, and name what breaks it."""

import numpy as np
import pytest

from keyhole.checks import policies as of_policies, surrogates as of_surrogates
from keyhole.policies.base import EpsilonGreedy, Policy
from keyhole.policies.linear import LinearScorer
from keyhole.surrogates.base import PairKernel, PartKernel, Surrogate, SurrogateKernel

LISTS = 40


def value(params, scores, relevance, work):
    return float(((scores - relevance) ** 2).sum())


def gradient(params, scores, relevance, out, work):
    out[:] = 2.0 * (scores - relevance)


def known(params, scores, out):
    out[:] = 2.0 * scores


def part(params, scores, item, grade, out):
    out[item] -= 2.0 * grade


class Squares(Surrogate):
    """The squared loss in plain Python, scores at most 2 and grades at most 3 apart."""

    name = "squares"
    kernel = SurrogateKernel(value, gradient)
    parts = PartKernel(known, part)

    def _lipschitz(self, n_items, max_grade, max_score):
        return 2.0 * n_items * (max_score + max_grade)

    def _l2_lipschitz(self, n_items, max_grade, max_score):
        return 2.0 * np.sqrt(n_items) * (max_score + max_grade)

    def _smoothness(self, n_items, *_limits):
        return 2.0 * n_items

    def _l2_smoothness(self, *_limits):
        return 2.0

    def _loss_range(self, n_items, max_grade, max_score):
        return n_items * (max_score + max_grade) ** 2


def squares(**changed):
    return type("Changed", (Squares,), changed)()


def with_kernels(**kernels):
    return squares(kernel=Squares.kernel._replace(**kernels))


def broken(check, sentence, surrogate):
    with pytest.raises(AssertionError, match=sentence):
        check(surrogate, LISTS)


@pytest.mark.parametrize("check", of_surrogates.SURROGATE_CHECKS)
def test_a_good_surrogate_passes(check):
    check(Squares(), LISTS)


def test_finite_and_not_negative():
    check = of_surrogates.check_values_are_finite

    def overflowing(params, scores, relevance, work):
        with np.errstate(over="ignore"):
            return float(np.exp(scores).sum())

    def undefined(params, scores, relevance, out, work):
        out[:] = np.where(np.abs(scores) > 100, np.nan, 2.0 * (scores - relevance))

    broken(check, "must be finite", with_kernels(value=overflowing))
    broken(check, "must be finite", with_kernels(gradient=undefined))
    below = with_kernels(value=lambda *given: value(*given) - 0.5)
    broken(check, "says it is never negative", below)
    check(type("Below", (type(below),), {"is_nonnegative": False})(), LISTS)


def test_gradients():
    check = of_surrogates.check_gradient_is_the_derivative

    def off(params, scores, relevance, out, work):
        gradient(params, scores, relevance, out, work)
        out[-1] *= 1.0 + 1e-5

    broken(check, "must be the derivative", with_kernels(gradient=off))


def test_terms():
    check = of_surrogates.check_terms_add_up

    def double(params, scores, item, grade, out):
        out[item] -= 2.0 * grade + 1e-6

    def added(params, scores, out):
        out[:] += 2.0 * scores

    def pair(params, scores, i, j, grade_i, grade_j, out):
        out[i] += 2.0 * (scores[i] - grade_i)

    broken(check, "must add up", squares(parts=PartKernel(known, double)))
    broken(check, "must add up", squares(parts=PartKernel(added, part)))
    broken(check, "must add up", squares(parts=None, pairs=PairKernel(pair)))
    check(squares(parts=None), LISTS)


def test_arguments_and_scratch():
    check = of_surrogates.check_lists_are_untouched

    def clips(params, scores, relevance, out, work):
        gradient(params, scores, relevance, out, work)
        np.clip(scores, -1.0, 1.0, out=scores)

    def remembers(params, scores, relevance, work):
        work.gains[0] = 1.0 if work.gains[0] == 2.0 else 2.0
        return value(params, scores, relevance, work) + work.gains[0]

    def by_memory(params, scores, relevance, work):
        return value(params, scores, relevance, work) / params.max_items

    broken(check, "must leave scores and relevance", with_kernels(gradient=clips))
    broken(check, "memory that is longer", with_kernels(value=remembers))
    broken(check, "memory that is longer", with_kernels(value=by_memory))


def test_labels():
    check = of_surrogates.check_items_are_exchangeable

    def by_index(params, scores, relevance, work):
        return float((scores * np.arange(len(scores))).sum())

    def first(params, scores, relevance, out, work):
        out[:] = 0.0
        out[0] = 1.0

    broken(check, "Relabelling items", with_kernels(value=by_index))
    broken(check, "Relabelling items", with_kernels(gradient=first))


def test_claims_of_shifts_and_convexity():
    broken(of_surrogates.check_shifts, "shifts change nothing", squares(is_shift_invariant=True))

    def centred(params, scores, relevance, out, work):
        gaps = scores - relevance
        out[:] = 2.0 * (gaps - gaps.mean())

    broken(of_surrogates.check_shifts, "shifts change it", with_kernels(gradient=centred))

    def waves(params, scores, relevance, work):
        return float((1.0 + np.sin(scores)).sum())

    broken(of_surrogates.check_convexity, "says it is convex", with_kernels(value=waves))
    of_surrogates.check_convexity(
        type("Waves", (type(with_kernels(value=waves)),), {"is_convex": False})(), LISTS
    )


@pytest.mark.parametrize(
    ("constant", "sentence"),
    [
        ("_lipschitz", r"exceeds its Lipschitz constant \S+ \(linf\)"),
        ("_l2_lipschitz", r"exceeds its Lipschitz constant \S+ \(l2\)"),
        ("_smoothness", r"exceeds its smoothness \S+ \(linf\)"),
        ("_l2_smoothness", r"exceeds its smoothness \S+ \(l2\)"),
        ("_loss_range", "more than its range"),
    ],
)
def test_constants(constant, sentence):
    own = getattr(Squares, constant)
    smaller = squares(**{constant: lambda *given: 0.7 * own(*given)})
    with pytest.raises(AssertionError, match=sentence):
        of_surrogates.check_constants_hold(smaller, 200)


# ------------------------------------------------------------------ policies

SCORER = LinearScorer([[1.0, 0.0], [0.0, 1.0], [0.3, 0.3]], [0.0, 0.1, 0.2])
VISITORS = np.random.default_rng(0).normal(size=(20, 2))


class Changed(EpsilonGreedy):
    """Epsilon-greedy with probabilities changed by a function of them and of the contexts."""

    def __init__(self, change):
        super().__init__(SCORER, 0.3)
        self.change = change

    def probabilities(self, contexts):
        return self.change(super().probabilities(contexts), contexts)


def test_a_good_policy_passes():
    of_policies.check_policy(EpsilonGreedy(SCORER, 0.3), n_features=2)


def changes_contexts(given, contexts):
    contexts[0] = 0.0
    return given


CALLS = iter(range(100))
PROBABILITIES = of_policies.check_probabilities
VISITORS_ALONE = of_policies.check_visitors_are_independent


@pytest.mark.parametrize(
    ("check", "sentence", "change"),
    [
        (PROBABILITIES, "visitors by ads", lambda p, _: p[:, :2]),
        (PROBABILITIES, "finite and not negative", lambda p, _: np.nan * p),
        (PROBABILITIES, "finite and not negative", lambda p, _: p - 0.2),
        (PROBABILITIES, "must sum to 1", lambda p, _: p * (1 + 1e-9)),
        (VISITORS_ALONE, "leave contexts", changes_contexts),
        (VISITORS_ALONE, "asked again", lambda p, _: p + next(CALLS)),
        (VISITORS_ALONE, "other visitors", lambda p, _: p * len(p)),
        (VISITORS_ALONE, "other visitors",
         lambda p, _: p + 1e-6 * np.arange(len(p))[:, None] * (len(p) > 1)),
    ],
)  # fmt: skip
def test_broken_policies(check, sentence, change):
    with pytest.raises(AssertionError, match=sentence):
        check(Changed(change), VISITORS.copy())


def test_files(monkeypatch):
    policy = EpsilonGreedy(SCORER, 0.3)
    policy.settings["epsilon"] = 0.1
    with pytest.raises(AssertionError, match="after it is saved and loaded"):
        of_policies.check_file_round_trip(policy, VISITORS)


def test_a_policy_of_ones_own_needs_no_file():
    class Own(Policy):
        n_actions = 2

        def probabilities(self, contexts):
            return np.full((len(contexts), 2), 0.5)

    of_policies.check_policy(Own())
