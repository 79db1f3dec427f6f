"""The bearer token of a request (RFC 6750 2.1). Pure.

The Authorization field is the only place where one is looked for: a URL ends up in logs and histories.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Sequence
from typing import Final

from specmux_aggregator.auth.authority import Reason, Refused

TOKEN: Final = re.compile(r"[A-Za-z0-9\-._~+/]+=*")
"""b64token."""

_FIELD: Final = re.compile(rf"(?i:bearer) +({TOKEN.pattern})")

_MISSING: Final = Refused(Reason.NO_CREDENTIALS, "a bearer token is wanted")
_REPEATED: Final = Refused(Reason.MALFORMED, "the Authorization field is given more than once")


def bearer_token(fields: Sequence[str]) -> str | Refused:
    """The token in the values of all Authorization fields."""
    if len(fields) > 1:
        # Whoever checks one and passes on the other can be fooled.
        return _REPEATED
    found = _FIELD.fullmatch(fields[0]) if fields else None
    return _MISSING if found is None else found[1]


def digest(key: bytes, token: str) -> bytes:
    """What is kept of a token, and looked up for it: useless to whoever reads this process's memory later,
    and as slow to find for a token that is nearly right as for any other."""
    return hmac.digest(key, token.encode(), "sha256")
