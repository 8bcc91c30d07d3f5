"""Logs of bandit feedback: what they are, their files, and where they come from."""
