"""The table of all operations, which are routed, authorised, counted and documented by it.

Routes are matched in this order, most frequent first.
"""

from keyhole.service.api import access_keys, impressions, log, rankers, system
from keyhole.service.api.operations import Operation

OPERATIONS: tuple[Operation, ...] = (
    *impressions.OPERATIONS,
    *rankers.OPERATIONS,
    *log.OPERATIONS,
    *access_keys.OPERATIONS,
    *system.OPERATIONS,
)
