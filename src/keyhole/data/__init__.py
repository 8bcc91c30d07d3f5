"""Data from files."""

from keyhole.data.letor import iterate_letor, read_letor
from keyhole.data.letor_queries import QuerySet
from keyhole.data.ratings import RatingsTable, read_ratings

__all__ = ["QuerySet", "RatingsTable", "iterate_letor", "read_letor", "read_ratings"]
