"""Keyhole in other packages' terms: one file each, which imports its package when it is used.

scikit-learn needs none: :class:`keyhole.BatchRanker` is an estimator. Logs of the Open Bandit
Pipeline and of Vowpal Wabbit are read and written by :mod:`keyhole.data`. docs/ecosystems.md shows
all six packages.
"""
