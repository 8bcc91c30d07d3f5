"""Server-sent events for live pages, at most two per second."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

SHORTEST_GAP = 0.5
RETRY_MS = 2_000


async def messages(happenings: AsyncIterator[dict[str, Any]], beat: float) -> AsyncIterator[str]:
    """Yield the newest progress as server-sent events, with heartbeats in between.

    Changes that are too fast for a page are merged: only the newest is sent.
    """
    yield f"retry: {RETRY_MS}\n\n"
    newest: dict[str, Any] | None = None
    has_news = asyncio.Event()

    async def listen() -> None:
        nonlocal newest
        async for happening in happenings:
            newest = happening
            has_news.set()

    listener = asyncio.create_task(listen())
    has_news_or_end = asyncio.create_task(has_news.wait())
    try:
        while True:
            done, _ = await asyncio.wait(
                {listener, has_news_or_end}, timeout=beat, return_when=asyncio.FIRST_COMPLETED
            )
            if not done:
                yield "event: beat\ndata: {}\n\n"
                continue
            if has_news_or_end not in done:
                return  # The desk has closed.
            has_news.clear()
            has_news_or_end = asyncio.create_task(has_news.wait())
            yield _message(newest or {})
            await asyncio.sleep(SHORTEST_GAP)
    finally:
        for task in (listener, has_news_or_end):
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


def _message(happening: dict[str, Any]) -> str:
    return f"data: {json.dumps(happening)}\n\n"
