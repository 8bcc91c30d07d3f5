"""Data from files."""

from keyhole.data.bandit.files import (
    read_bandit_csv,
    read_bandit_parquet,
    write_bandit_csv,
    write_bandit_parquet,
)
from keyhole.data.bandit.formats import (
    from_open_bandit_pipeline,
    read_bandit,
    read_open_bandit,
    to_open_bandit_pipeline,
    write_open_bandit,
)
from keyhole.data.bandit.log import BanditLog
from keyhole.data.bandit.vowpal_wabbit import read_vowpal_wabbit, write_vowpal_wabbit
from keyhole.data.letor.queries import QuerySet
from keyhole.data.letor.reader import BLOCK_BYTES, iterate_letor, letor_columns, read_letor
from keyhole.data.people import PEOPLE_ORDERS, people_in_order
from keyhole.data.ratings import RatingsTable, read_ratings

__all__ = [
    "BLOCK_BYTES",
    "PEOPLE_ORDERS",
    "BanditLog",
    "QuerySet",
    "RatingsTable",
    "from_open_bandit_pipeline",
    "iterate_letor",
    "letor_columns",
    "people_in_order",
    "read_bandit",
    "read_bandit_csv",
    "read_bandit_parquet",
    "read_letor",
    "read_open_bandit",
    "read_ratings",
    "read_vowpal_wabbit",
    "to_open_bandit_pipeline",
    "write_bandit_csv",
    "write_bandit_parquet",
    "write_open_bandit",
    "write_vowpal_wabbit",
]
