"""Rankers of one list for everybody."""
