"""Canonical JSON of a part of a document."""

from __future__ import annotations

from typing import Any

import orjson

from specmux_converters.errors import InvalidDocument, LimitExceeded
from specmux_converters.losses import pointer_to


def encode(value: Any, *path: str | int) -> bytes:
    """Keys sorted; ``path``: the place of the value.

    Raises InvalidDocument or LimitExceeded for a value that no parsed document contains.
    """
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except orjson.JSONEncodeError as error:
        kind = LimitExceeded if "Recursion" in str(error) else InvalidDocument
        raise kind(f"not JSON: {error}", pointer=pointer_to(*path)) from error
