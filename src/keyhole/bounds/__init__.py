"""Regret bounds as functions that return numbers."""

from keyhole.bounds import (
    blocks,
    choices,
    ftpl,
    gradients,
    iw_onlinerank,
    keystone,
    perceptrons,
    precision,
)

__all__ = [
    "blocks",
    "choices",
    "ftpl",
    "gradients",
    "iw_onlinerank",
    "keystone",
    "perceptrons",
    "precision",
]
