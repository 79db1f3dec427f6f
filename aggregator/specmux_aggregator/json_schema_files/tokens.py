"""Tokens in paths, for programs such as editors that cannot send credentials.

The file is read again when it changes. Incomplete or invalid content changes nothing.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from pathlib import Path
from typing import Final

from specmux_aggregator.auth.bearer import digest
from specmux_aggregator.errors import InvalidConfig
from specmux_cache.whole_files import UnreadableFile, read_small

logger = logging.getLogger(__name__)

SHORTEST: Final = 16
INTERVAL: Final = 1.0
"""Seconds between checks. New content applies when two checks in a row agree on it."""


class PathTokens:
    """The tokens of a file with one per line. What is kept of them cannot be used for access."""

    def __init__(self, path: Path) -> None:
        """Raises InvalidConfig; blocks on the file."""
        self._key = secrets.token_bytes(32)
        self._path = path
        try:
            self._content = read_small(path)
            self._digests = self._read(self._content)
        except (UnreadableFile, ValueError) as error:
            raise InvalidConfig(str(error), where=f"schemas.token_file: {path}") from error

    def knows(self, token: str) -> bool:
        return digest(self._key, token) in self._digests

    async def run(self) -> None:
        """Read the file again whenever it changes; forever."""
        before, complaint = self._content, ""
        while True:
            await asyncio.sleep(INTERVAL)
            try:
                content = await asyncio.to_thread(read_small, self._path)
                if content == before and content != self._content:
                    self._digests, self._content = self._read(content), content
                    logger.info("schemas.token_file: %d tokens read", len(self._digests))
                before, said = content, ""
            except (UnreadableFile, ValueError) as error:
                said = str(error)
            if said and said != complaint:
                logger.warning(
                    "schemas.token_file: %s: %s; the tokens read before stay in use", self._path, said
                )
            complaint = said

    def _read(self, content: bytes) -> frozenset[bytes]:
        """Raises ValueError, which repeats no token."""
        try:
            text = content.decode()
        except UnicodeDecodeError:
            raise ValueError("not UTF-8") from None
        tokens = [line.strip() for line in text.splitlines() if line.strip()]
        if not tokens:
            raise ValueError("has no token")
        for number, token in enumerate(tokens, 1):
            if len(token) < SHORTEST or not token.isascii() or not token.isalnum():
                raise ValueError(f"token {number}: want {SHORTEST} letters or digits or more")
        return frozenset(digest(self._key, token) for token in tokens)
