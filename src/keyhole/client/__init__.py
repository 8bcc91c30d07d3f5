"""The client of the service: request lists and send feedback.

``Client`` is synchronous, ``AsyncClient`` asynchronous; docs/service.md has examples. The client
imports neither Numba nor the service.
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
        EvaluationResult,
        FeedbackResult,
        LineResult,
        PolicyInfo,
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
    "EvaluationResult",
    "FeedbackResult",
    "LineResult",
    "NotAllowed",
    "NotFound",
    "PolicyInfo",
    "RankItem",
    "RankerInfo",
    "Ranking",
    "RequestRefused",
    "ServiceAway",
    "ServiceError",
    "State",
]
