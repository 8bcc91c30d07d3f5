"""The client of the service: ask for lists, tell what was seen of them.

``Client`` waits and ``AsyncClient`` awaits; docs/service.md shows how. Neither a compiler nor any
part of the service is imported.
"""

from keyhole.base.errors import LibraryMissing

try:
    from keyhole.client.clients import AsyncClient, Client
    from keyhole.client.errors import (
        Conflict,
        NotAllowed,
        NotFound,
        RequestRefused,
        ServiceAway,
        ServiceError,
    )
    from keyhole.client.replies import (
        Code,
        Evaluation,
        FeedbackResult,
        LineResult,
        Policy,
        RankerInfo,
        Ranking,
        RankItem,
        State,
    )
except ModuleNotFoundError as error:
    if error.name is None or error.name.startswith("keyhole"):
        raise
    raise LibraryMissing(f"The client needs {error.name}", "client") from None

__all__ = [
    "AsyncClient",
    "Client",
    "Code",
    "Conflict",
    "Evaluation",
    "FeedbackResult",
    "LineResult",
    "NotAllowed",
    "NotFound",
    "Policy",
    "RankItem",
    "RankerInfo",
    "Ranking",
    "RequestRefused",
    "ServiceAway",
    "ServiceError",
    "State",
]
