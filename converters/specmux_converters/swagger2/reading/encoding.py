"""Canonical JSON of a part of a document."""

from __future__ import annotations

from typing import Any

import orjson

from specmux_converters.errors import InvalidDocument, LimitExceeded
from specmux_converters.losses import pointer_to


def encode(value: Any, *path: str | int) -> bytes:
    """Keys sorted; ``path`` is where the value stands.

    Raises InvalidDocument or LimitExceeded for what no parsed document holds.
    """
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except orjson.JSONEncodeError as error:
        kind = LimitExceeded if "Recursion" in str(error) else InvalidDocument
        raise kind(f"not JSON: {error}", pointer=pointer_to(*path)) from error
