"""Tokens in a file, read again when its content changes; and mode token-file, in which they admit.

A line of that mode is ``token,name``; Kubernetes' static token files (``token,user,uid,"groups"``) are read
as well, of which only the token matters.
"""

from __future__ import annotations

import asyncio
import csv
import logging
import secrets
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final

from aiohttp.hdrs import AUTHORIZATION

from specmux_aggregator.auth.authenticator import AuthRefusal, AuthRequest, RefusalReason
from specmux_aggregator.auth.bearer import bearer_token, digest, is_token
from specmux_aggregator.errors import InvalidConfig
from specmux_aggregator.metrics.instruments import Metrics
from specmux_aggregator.server.protocols import ClientConnection, Permission
from specmux_cache.whole_files import UnreadableFile, read_small
from specmux_converters.counted_nouns import counted

logger = logging.getLogger(__name__)

INTERVAL: Final = 1.0
"""Seconds between checks. New content applies when two checks in a row agree on it."""

_BAD_TOKEN: Final = AuthRefusal(RefusalReason.BAD_CREDENTIALS, "the bearer token is not accepted")


class BadTokens(ValueError):
    """The content is not a token file; the message names the line and never repeats it."""


class Tokens:
    """The tokens of one reading of a file: permission while that reading is in force."""

    __slots__ = ("_digests", "_key", "is_in_force")

    def __init__(self, key: bytes, tokens: Iterable[str]) -> None:
        self._key = key
        self._digests = frozenset(digest(key, token) for token in tokens)
        self.is_in_force = True

    def __contains__(self, token: str) -> bool:
        return digest(self._key, token) in self._digests

    def __len__(self) -> int:
        return len(self._digests)

    def lasts(self, connection: ClientConnection, now: float) -> bool:
        return self.is_in_force


class FollowedTokenFile:
    """The tokens of a file, read again when its content changes. ``parse`` raises ValueError, which repeats
    no token; content that is incomplete or invalid changes nothing."""

    def __init__(
        self, path: Path, parse: Callable[[bytes], Iterable[str]], *, setting: str, label: str = ""
    ) -> None:
        """``label``: what log lines begin with, if not ``setting``. Raises InvalidConfig if the file is
        unusable at the start. Blocks on the file."""
        self._path = path
        self._parse = parse
        self._label = label or setting
        self._key = secrets.token_bytes(32)
        try:
            self._content = read_small(path)
            self.current = Tokens(self._key, parse(self._content))
        except (UnreadableFile, ValueError) as error:
            raise InvalidConfig(str(error), where=f"{setting}: {path}") from error

    async def run(self, complain: Callable[[str | None], None] = lambda _: None) -> None:
        """Read the file again whenever it changes; forever. ``complain`` gets the fault of each reading."""
        before, complaint = self._content, None
        while True:
            await asyncio.sleep(INTERVAL)
            said = complaint
            try:
                content = await asyncio.to_thread(read_small, self._path)
                if content == before and content != self._content:
                    tokens = Tokens(self._key, self._parse(content))
                    self.current.is_in_force = False
                    self.current, self._content = tokens, content
                    logger.info("%s: %s read", self._label, counted(len(tokens), "token"))
                before = content
                said = None if content == self._content else said
            except (UnreadableFile, ValueError) as error:
                said = str(error)
            if said is not None and said != complaint:
                logger.warning(
                    "%s: %s: %s; the tokens read before stay in use", self._label, self._path, said
                )
            complaint = said
            complain(said)


class TokenFileAuthenticator:
    """Permission by the tokens of one file."""

    def __init__(self, path: Path, metrics: Metrics) -> None:
        """Raises InvalidConfig if the file is unusable at the start. Blocks on the file."""
        self._file = FollowedTokenFile(path, parse_tokens, setting="auth.token_file", label="authentication")
        self._metrics = metrics
        self._metrics.auth.is_up.set(1)

    def permits(self, asked: AuthRequest) -> Permission | None:
        return self._file.current if self._refuse_request(asked) is None else None

    async def refuse(self, asked: AuthRequest) -> AuthRefusal | None:
        return self._refuse_request(asked)

    def complaint(self) -> str | None:
        return None

    async def run(self) -> None:
        await self._file.run(lambda fault: self._metrics.auth.is_up.set(0 if fault else 1))

    async def close(self) -> None:
        """Nothing to release."""

    def _refuse_request(self, asked: AuthRequest) -> AuthRefusal | None:
        token = bearer_token(asked.message.headers.getall(AUTHORIZATION, []))
        if isinstance(token, AuthRefusal):
            return token
        return None if token in self._file.current else _BAD_TOKEN


def parse_tokens(content: bytes) -> frozenset[str]:
    """The tokens of a file. Raises BadTokens, also for a file without any."""
    try:
        lines = content.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise BadTokens("not UTF-8") from None
    tokens: set[str] = set()
    for number, token in _rows(lines):
        if not is_token(token):
            raise BadTokens(f"line {number}: no token that could be sent as a bearer token")
        if token in tokens:
            raise BadTokens(f"line {number}: the token of an earlier line")
        tokens.add(token)
    if not tokens:
        raise BadTokens("holds no token")
    return frozenset(tokens)


def _rows(lines: list[str]) -> Iterator[tuple[int, str]]:
    reader = csv.reader(lines, strict=True, skipinitialspace=True)
    try:
        for row in reader:
            if not row:
                continue
            if len(row) < 2 or not row[1].strip():
                raise BadTokens(
                    f"line {reader.line_num}: wants token,name; a token alone is for a client's --token-file"
                )
            yield reader.line_num, row[0].strip()
    except csv.Error:
        raise BadTokens(f"line {reader.line_num}: its quotes do not match") from None
