"""Tokens in paths, for programs that can send no credentials: editors ask as they are told, and no more."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Final

from specmux_aggregator.auth.bearer import digest
from specmux_aggregator.errors import InvalidConfig

SHORTEST: Final = 16
_FILE_MAX: Final = 1024 * 1024


class PathTokens:
    """Of a file with one in each line. What is kept of them lets nobody in."""

    def __init__(self, path: Path) -> None:
        """Raises InvalidConfig; blocks on the file."""
        self._key = secrets.token_bytes(32)
        where = f"schemas.token_file: {path}"
        try:
            with path.open("rb") as file:
                text = file.read(_FILE_MAX).decode()
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidConfig("cannot be read", where=where) from error
        tokens = [line.strip() for line in text.splitlines() if line.strip()]
        if not tokens:
            raise InvalidConfig("has no token", where=where)
        for number, token in enumerate(tokens, 1):
            if len(token) < SHORTEST or not token.isascii() or not token.isalnum():
                raise InvalidConfig(f"token {number}: want {SHORTEST} letters or digits or more", where=where)
        self._digests = frozenset(digest(self._key, token) for token in tokens)

    def knows(self, token: str) -> bool:
        return digest(self._key, token) in self._digests
