"""The bearer token of a request (RFC 6750 2.1). Pure.

Only the Authorization field is read: a token in a URL would end up in logs and histories.
"""

from __future__ import annotations

import hashlib
import string
from collections.abc import Sequence
from typing import Final

from specmux_aggregator.auth.authenticator import AuthRefusal, RefusalReason

_CHARACTERS: Final = f"{string.ascii_letters}{string.digits}-._~+/".encode()

_MISSING: Final = AuthRefusal(RefusalReason.NO_CREDENTIALS, "a bearer token is wanted")
_REPEATED: Final = AuthRefusal(RefusalReason.MALFORMED, "the Authorization field is given more than once")


def bearer_token(fields: Sequence[str]) -> str | AuthRefusal:
    """The token in the values of all Authorization fields."""
    if len(fields) > 1:
        # Checking one field and passing on another would be a vulnerability.
        return _REPEATED
    scheme, _, rest = fields[0].partition(" ") if fields else ("", "", "")
    token = rest.lstrip(" ")
    return token if scheme.lower() == "bearer" and is_token(token) else _MISSING


def is_token(text: str) -> bool:
    """Whether it is a b64token. Called for every request: a regular expression takes four times as long."""
    if not text.isascii():
        return False
    characters = text.rstrip("=").encode()
    return bool(characters) and not characters.translate(None, _CHARACTERS)


def digest(key: bytes, token: str) -> bytes:
    """The stored and looked-up form of a token, so that a nearly right token is found no faster than any
    other. The digest never leaves the process, so a key prefix is sufficient: HMAC takes five times as
    long."""
    return hashlib.sha256(key + token.encode()).digest()
