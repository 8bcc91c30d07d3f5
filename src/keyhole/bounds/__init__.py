"""Regret bounds as functions that return numbers."""

from keyhole.bounds import blocks, choices, ftpl, gradients, keystone, perceptrons

__all__ = ["blocks", "choices", "ftpl", "gradients", "keystone", "perceptrons"]
