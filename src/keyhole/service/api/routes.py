"""All endpoints: what is in this table is served, locked, counted and documented.

Routes are tried in this order: what is asked most comes first.
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
