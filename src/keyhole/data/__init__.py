"""Data from files."""

from keyhole.data.letor import BLOCK_BYTES, iterate_letor, letor_columns, read_letor
from keyhole.data.letor_queries import QuerySet
from keyhole.data.ratings import RatingsTable, read_ratings

__all__ = [
    "BLOCK_BYTES",
    "QuerySet",
    "RatingsTable",
    "iterate_letor",
    "letor_columns",
    "read_letor",
    "read_ratings",
]
