"""The tests that a change since the last commit can break: ``make quick``."""
