"""Regret bounds as functions that return numbers."""

from keyhole.bounds import blocks, choices, ftpl

__all__ = ["blocks", "choices", "ftpl"]
