"""B5: the adversary that no deterministic ranker of lists can withstand (Theorem 9 of [T16])."""

import math
from dataclasses import dataclass

import numpy as np

from keyhole.base.errors import FloatArray, InvalidInput, check_integer, check_number
from keyhole.bounds.perceptrons import defeated_rounds
from keyhole.contracts.lists import Feedback, Query
from keyhole.contracts.measures import Measure
from keyhole.contracts.rankers import Ranker
from keyhole.measures import measure as named_measure


@dataclass(frozen=True)
class Defeat:
    """What a ranker lost by round, and the unit weights that order all the lists with a margin."""

    losses: FloatArray
    separator: FloatArray
    margin: float
    """The least difference in score that the separator leaves between the two documents."""

    @property
    def loss(self) -> float:
        """Total induced loss."""
        return float(self.losses.sum())


def defeat(
    ranker: Ranker,
    rounds_limit: int | None = None,
    *,
    row_norm: float = 1.0,
    margin: float | None = None,
    measure: str | Measure = "NDCG",
) -> Defeat:
    """Play lists of two documents, and make the one relevant that the ranker puts last.

    Parameters
    ----------
    ranker
        Any ranker of lists with features; its settings are used, it starts from a fresh state.
    rounds_limit
        Rounds to play. Default: R^2 / gamma^2, or all features if no margin is given. As many
        as 4 R^2 / gamma^2 leave the margin intact (R35).
    row_norm, margin
        R, the norm of every document, and gamma, the margin that some unit weights keep.
    measure
        NDCG, NDCG@n or AP.

    Notes
    -----
    Theorem 9 of [T16]. In round i the documents are R e_i and -R e_i: nothing that was seen
    before says anything about them, and the ranker needs a feature per round. The source asks for
    rankers that are deterministic; this adversary looks at the list that is shown, so it
    defeats others too, which could plead that it knows their random numbers.

    Examples
    --------
    >>> from keyhole import MaxViolationPerceptron
    >>> outcome = defeat(MaxViolationPerceptron(16, 2, measure="AP"), margin=0.25, measure="AP")
    >>> len(outcome.losses), outcome.loss
    (16, 8.0)
    """
    row_norm = check_number(row_norm, "`row_norm`", above=0.0)
    n_features = check_integer(ranker.n_features, "`n_features` of the ranker", at_least=1)
    if margin is None:
        most = rounds = n_features
    else:
        rounds = defeated_rounds(row_norm, margin)
        most = min(n_features, defeated_rounds(row_norm, margin, tight=True))
    rounds = check_integer(
        rounds if rounds_limit is None else rounds_limit, "`rounds_limit`", at_least=1
    )
    if rounds > most:
        raise InvalidInput(
            f"`rounds_limit` must be at most {most}, the features of the ranker or 4 R^2 / gamma^2 "
            f"of the margin, got {rounds}."
        )
    judge, learner = named_measure(measure), ranker.fresh()
    losses, signs = np.empty(rounds), np.zeros(n_features)
    for t in range(rounds):
        features = np.zeros((2, n_features))
        features[:, t] = row_norm, -row_norm
        impression = learner.rank(Query(2, features), round=t)
        relevance = np.zeros(2)
        relevance[impression.ranking[1]] = 1.0
        signs[t] = 1.0 if impression.ranking[1] == 0 else -1.0
        losses[t] = 1.0 - judge(relevance, impression.ranking)
        learner.update(impression, Feedback(relevance[impression.ranking]))
    separator = signs / math.sqrt(rounds)
    return Defeat(losses, separator, 2.0 * row_norm / math.sqrt(rounds))
