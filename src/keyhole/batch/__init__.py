"""Learning from all lists at once, and from one pass over them: batch rankers (A14)."""

from keyhole.batch.averaging import Averaged, average_weights
from keyhole.batch.ranker import BatchRanker
from keyhole.batch.risk import Risk
from keyhole.batch.solvers import Ball, Minimum, minimise

__all__ = ["Averaged", "Ball", "BatchRanker", "Minimum", "Risk", "average_weights", "minimise"]
