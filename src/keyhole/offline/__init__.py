"""Logged data: what a policy would have earned, how sure that is, and whether to promote it."""
