"""Data from files."""

from keyhole.data.ratings import RatingsTable, read_ratings

__all__ = ["RatingsTable", "read_ratings"]
