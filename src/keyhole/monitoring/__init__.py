"""The learnability oracle: whether some feedback can teach a measure at all.

Partial monitoring (Bartok et al. 2014) applied to rankings: :func:`classify` gives the rate at
which the regret of the best algorithm grows, with a reason, advice and a proof that
:func:`check_certificate` verifies.
"""
