"""Regret bounds as functions that return numbers."""
