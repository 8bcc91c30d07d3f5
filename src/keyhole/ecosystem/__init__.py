"""Keyhole in other packages' terms: one file each, which imports its package when it is used.

Whoever has scikit-learn, the Open Bandit Pipeline or Vowpal Wabbit needs nothing from here:
:class:`keyhole.batch.BatchRanker` is an estimator, and :mod:`keyhole.data` reads and writes their
data. docs/ecosystems.md shows all six.
"""
