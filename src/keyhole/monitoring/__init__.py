"""The learnability oracle: whether some feedback can teach a measure at all.

Partial monitoring (Bartok et al. 2014) applied to rankings: :func:`classify` gives the rate at
which the regret of the best algorithm grows, with a reason, advice and a proof that
:func:`check_certificate` verifies.
"""

from keyhole.monitoring.board import InvalidCertificate, UnreadableCertificate
from keyhole.monitoring.cells import Cells
from keyhole.monitoring.classification import (
    RATES,
    Classification,
    classify,
    classify_matrices,
)
from keyhole.monitoring.games import Game
from keyhole.monitoring.observability import solve_game
from keyhole.monitoring.rules import rule_for
from keyhole.monitoring.verify import check_certificate

__all__ = [
    "RATES",
    "Cells",
    "Classification",
    "Game",
    "InvalidCertificate",
    "UnreadableCertificate",
    "check_certificate",
    "classify",
    "classify_matrices",
    "rule_for",
    "solve_game",
]
