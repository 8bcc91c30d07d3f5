"""All endpoints: what is in this table is served, locked, counted and documented."""

from keyhole.service.http import access_keys, impressions, log, rankers, system
from keyhole.service.http.operations import Operation

OPERATIONS: tuple[Operation, ...] = (
    *rankers.OPERATIONS,
    *impressions.OPERATIONS,
    *log.OPERATIONS,
    *access_keys.OPERATIONS,
    *system.OPERATIONS,
)
