"""Read a backend's answer within limits: a payload, not modified, or a failure."""

from __future__ import annotations

import asyncio
import io
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import orjson

from specmux_aggregator.http.messages import Coding, ETag
from specmux_aggregator.http.response_fields import (
    UnaskedCoding,
    coding,
    entity_tag,
    retry_after,
    status_failure,
)
from specmux_aggregator.model.failure import Cause, Failure
from specmux_aggregator.upstream.body_budget import SMALL, Share
from specmux_aggregator.upstream.connections.direct import UnreadAnswer
from specmux_aggregator.upstream.connections.whole_body import whole_body
from specmux_converters.json_text import may_have_more_values
from specmux_converters.media_types import essence

UNFRAMED_VALUES: Final = 200_000
"""Most JSON values of a body that ends with its connection, which is parsed here to check that it is
complete: 10 MB of a real document, and 20 ms."""

INLINE_MAX: Final = 64 * 1024
"""Bytes that are parsed on the event loop; larger or compressed bodies go to a thread."""


@dataclass(frozen=True, slots=True)
class Payload:
    """The body of a 200, complete as far as HTTP's framing shows."""

    body: bytes
    """The bytes as transferred: still in ``coding``."""
    coding: Coding
    """Identity or gzip: others are not requested."""
    media_type: str
    """Type and subtype in lower case, without parameters; "" if absent."""
    etag: ETag | None
    share: Share | None = field(default=None, repr=False, compare=False)
    """The body's share of the budget, released with this value."""


@dataclass(frozen=True, slots=True)
class NotModified:
    """The representation with the given entity tag is still current."""


@dataclass(frozen=True, slots=True)
class Redirect:
    status: int
    location: str


Room: TypeAlias = Callable[[int], Awaitable[Share]]
"""Waits until there is room for a body of that many bytes."""

Answer: TypeAlias = Payload | NotModified | Redirect | Failure


async def read_answer(
    response: UnreadAnswer, *, max_bytes: int, is_conditional: bool, room: Room | None = None
) -> Answer:
    """``room`` is called before more than SMALL bytes are read; None: unlimited."""
    status = response.status
    if status == 304 and is_conditional:
        return NotModified()
    if status in (301, 302, 307, 308):
        return Redirect(status, response.headers.get("Location", ""))
    if status != 200 and (status != 201 or response.method != "POST"):
        return status_failure(status, retry_after(response.headers.get("Retry-After"), now=time.time()))
    headers, length = response.headers, response.content_length
    is_coded = "Transfer-Encoding" in headers
    try:
        applied = coding(", ".join(headers.getall("Content-Encoding", ())))
    except UnaskedCoding as unasked:
        return Failure(Cause.BAD_BODY, str(unasked))
    if length is not None and length > max_bytes:
        return too_large(max_bytes)
    if length is not None and not is_coded:
        share = await room(length) if room is not None and length > SMALL else None
        body = await whole_body(response.connection, response.content, length)
    else:
        read = await _body(response, length, max_bytes, room)
        if isinstance(read, Failure):
            return read
        body, share = read
    # Without either the connection's end marks that of the body, even of a truncated one (RFC 9112 6.3).
    if applied is Coding.IDENTITY and length is None and not is_coded:
        if may_have_more_values(body, UNFRAMED_VALUES):
            return Failure(
                Cause.TOO_LARGE, f"the body tells no length, and has more than {UNFRAMED_VALUES} values"
            )
        if not await _is_json(body):
            return Failure(Cause.TRUNCATED, "the body ends with the connection, and is not whole")
    return Payload(
        body,
        applied,
        essence(headers.get("Content-Type", "")),
        entity_tag(headers.get("ETag")),
        share,
    )


async def _body(
    response: UnreadAnswer, length: int | None, max_bytes: int, room: Room | None
) -> tuple[bytes, Share | None] | Failure:
    """A body that its length does not delimit."""
    share = None
    # getvalue() does not copy, and a body that arrives byte by byte needs no object for each
    body = io.BytesIO()
    async for chunk in response.content.iter_any():
        if body.tell() + len(chunk) > max_bytes:
            return too_large(max_bytes)
        body.write(chunk)
        if share is None and room is not None and max(length or 0, body.tell()) > SMALL:
            share = await room(length or max_bytes)
    return body.getvalue(), share


async def _is_json(body: bytes) -> bool:
    try:
        if len(body) <= INLINE_MAX:
            orjson.loads(body)
        else:
            await asyncio.to_thread(orjson.loads, body)
    except orjson.JSONDecodeError:
        return False
    return True


def too_large(max_bytes: int) -> Failure:
    return Failure(Cause.TOO_LARGE, f"the body is larger than the {max_bytes} bytes allowed")
