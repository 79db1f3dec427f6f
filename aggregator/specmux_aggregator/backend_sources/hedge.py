"""Ask several servers one question: the next is asked when one refuses or stays silent for a moment."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

from specmux_aggregator.model.failure import Cause, Failure
from specmux_aggregator.upstream.client import MovedDocument, NotModified
from specmux_aggregator.upstream.responses import Payload

DocumentAnswer = Payload | MovedDocument | NotModified | Failure

HEDGE: Final = 0.5
"""Seconds after which a second server is asked beside a silent one."""


def contradicts(answer: DocumentAnswer) -> bool:
    """Whether the answer contradicts the root that listed the document."""
    return isinstance(answer, MovedDocument) or (
        isinstance(answer, Failure) and answer.cause is Cause.NOT_FOUND
    )


def plain(answer: DocumentAnswer) -> Payload | MovedDocument | Failure:
    """The answer to a request without conditions."""
    if isinstance(answer, NotModified):
        return Failure(Cause.UNEXPECTED_STATUS, "304 to a plain request")
    return answer


async def first_document(
    asks: Iterable[Callable[[], Awaitable[DocumentAnswer]]], *, failures_max: int
) -> Payload | MovedDocument | Failure | None:
    """The first document that arrives; else a failure if there was one, or the last contradiction; None
    without servers. ``failures_max``: failures after which no further server is asked."""
    untried = iter(asks)
    asking: set[asyncio.Task[DocumentAnswer]] = set()
    refusal: MovedDocument | Failure | None = None
    failures = 0
    try:
        while True:
            following = next(untried, None) if failures < failures_max else None
            if following is not None:
                asking.add(asyncio.ensure_future(_await_answer(following)))
            if not asking:
                return refusal
            wait = None if following is None else HEDGE
            done, asking = await asyncio.wait(asking, timeout=wait, return_when=asyncio.FIRST_COMPLETED)
            for answer in (plain(task.result()) for task in done):
                if isinstance(answer, Payload):
                    return answer
                is_failure = not contradicts(answer)
                failures += is_failure
                if is_failure or refusal is None or contradicts(refusal):
                    refusal = answer
    finally:
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)


async def _await_answer(ask: Callable[[], Awaitable[DocumentAnswer]]) -> DocumentAnswer:
    return await ask()
