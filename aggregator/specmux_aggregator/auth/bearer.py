"""The bearer token of a request (RFC 6750 2.1). Pure.

The Authorization field is the only place where one is looked for: a URL ends up in logs and histories.
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
        # Whoever checks one and passes on the other can be fooled.
        return _REPEATED
    scheme, _, rest = fields[0].partition(" ") if fields else ("", "", "")
    token = rest.lstrip(" ")
    return token if scheme.lower() == "bearer" and is_token(token) else _MISSING


def is_token(text: str) -> bool:
    """Whether it is a b64token. Asked about every request: a regular expression takes four times as long."""
    if not text.isascii():
        return False
    characters = text.rstrip("=").encode()
    return bool(characters) and not characters.translate(None, _CHARACTERS)


def digest(key: bytes, token: str) -> bytes:
    """What is kept of a token, and looked up for it: as slow to find for a token that is nearly right as for
    any other. It is shown to nobody, so the key may simply come first: HMAC takes five times as long."""
    return hashlib.sha256(key + token.encode()).digest()
