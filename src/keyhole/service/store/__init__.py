"""Stores of the log: one file and one row each."""
