"""How good scorers are on a log, by what they were trained for."""

import numpy as np

from keyhole.data.bandit.log import BanditLog
from keyhole.policies.base import Scorer


def mean_auc(scorer: Scorer, log: BanditLog) -> float:
    """Return the AUC of an ad's scores on those it was shown to, in the mean over the ads.

    Ads whose visitors all did the same have none.
    """
    scores = scorer.scores(log.contexts)
    found = []
    for ad in range(log.n_actions):
        shown = log.actions == ad
        own, clicked = scores[shown, ad], log.rewards[shown] > 0.0
        n_clicks = int(clicked.sum())
        if 0 < n_clicks < len(own):
            order = np.sort(own)
            below = np.searchsorted(order, own[clicked], side="left")
            level = np.searchsorted(order, own[clicked], side="right") - below
            ranks = float((below + 0.5 * (level + 1)).sum())  # of ties: the mean of their ranks
            wins = ranks - 0.5 * n_clicks * (n_clicks + 1)
            found.append(wins / (n_clicks * (len(own) - n_clicks)))
    return float(np.mean(found)) if found else 0.5


def mean_likelihood(
    scorer: Scorer, log: BanditLog, negatives_per_click: float | None = None
) -> float:
    """Return the log-likelihood of clicks by log-odds, in the mean over the ads.

    Where a model was trained on samples, those who did not click weigh as little here.
    """
    scores = scorer.scores(log.contexts)
    found = []
    for ad in range(log.n_actions):
        shown = log.actions == ad
        own, clicked = scores[shown, ad], log.rewards[shown] > 0.0
        n_clicks, n_others = int(clicked.sum()), int((~clicked).sum())
        if n_clicks and n_others and np.isfinite(own).all():
            wanted = n_others if negatives_per_click is None else negatives_per_click * n_clicks
            weight = min(1.0, wanted / n_others)
            likely = -np.logaddexp(0.0, np.where(clicked, -own, own))
            total = likely[clicked].sum() + weight * likely[~clicked].sum()
            found.append(total / (n_clicks + weight * n_others))
    return float(np.mean(found)) if found else 0.0
