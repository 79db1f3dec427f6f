"""Watch the configuration file for changes of its content.

Compares content, not times or links: a ConfigMap swaps a link, an editor renames, a copy may preserve times.
If a file has lost its list of backends, or was truncated in place, the previous configuration is kept.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Final

from specmux_aggregator.config.settings import Settings
from specmux_aggregator.config.source import ConfigSource, read_file
from specmux_aggregator.errors import InvalidConfig

INTERVAL: Final = 1.0
"""Seconds between checks."""

SETTLING: Final = 0.2
"""Seconds for which new content must be stable: not every writer replaces a file atomically."""

SETTLING_LOOKS: Final = 25
"""Checks after which content that never becomes stable is used as it is."""


async def watch_config(
    source: ConfigSource, current: Settings, *, reread: asyncio.Event, interval: float = INTERVAL
) -> AsyncIterator[Settings | InvalidConfig]:
    """Yields Settings that differ from the last ones (at first from ``current``), and an InvalidConfig once
    per invalid content or unreadable file.

    Refuses a file overwritten in place with a prefix of its earlier content: its writer was interrupted, or
    is slow. A file renamed into place is complete and may be shorter.

    ``reread``, cleared here, triggers a check at once, which yields its result even if nothing changed. Never
    ends.
    """
    seen: bytes | str | None = None
    last: Settings | InvalidConfig = current
    accepted = _ConfigInForce(current)
    while True:
        is_asked = reread.is_set()
        reread.clear()
        content = await _content(source) if is_asked else await _read_settled(source, seen)
        if is_asked or content != seen:
            seen = content
            read = await asyncio.to_thread(_parse_content, source, content, accepted)
            if is_asked or isinstance(read, InvalidConfig) or read != last:
                last = read
                yield read
        # Not wait_for: on Python 3.11 it loses a cancellation that arrives with the event, and never ends.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(interval):
                await reread.wait()


class _ConfigInForce:
    """The configuration in force: parsed, as written, and its file."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._content: bytes | None = None
        self._inode = 0

    def is_cut(self, content: bytes, inode: int) -> bool:
        """Whether ``content`` is a prefix of the accepted content, in the same file."""
        before = self._content
        return (
            before is not None
            and inode == self._inode
            and len(content) < len(before)
            and before.startswith(content)
        )

    def replace(self, settings: Settings, content: bytes | None, inode: int) -> None:
        self.settings, self._content, self._inode = settings, content, inode


async def _read_settled(source: ConfigSource, seen: bytes | str | None) -> bytes | str | None:
    """The content, once two checks in a row agree if it differs from ``seen``."""
    content = await _content(source)
    for _ in range(SETTLING_LOOKS):
        if content == seen:
            break
        await asyncio.sleep(SETTLING)
        before, content = content, await _content(source)
        if content == before:
            break
    return content


async def _content(source: ConfigSource) -> bytes | str | None:
    """The file's bytes; a str that says why it is unreadable; None without a file."""
    if source.file is None:
        return None
    try:
        return await asyncio.to_thread(read_file, source.file)
    except InvalidConfig as refused:
        return str(refused)


def _parse_content(
    source: ConfigSource, content: bytes | str | None, accepted: _ConfigInForce
) -> Settings | InvalidConfig:
    """Parse the content; on success it becomes ``accepted``."""
    if isinstance(content, str):
        return InvalidConfig(content)
    inode = 0
    if source.file is not None and content is not None:
        with contextlib.suppress(OSError):
            inode = source.file.stat().st_ino
        if accepted.is_cut(content, inode):
            return InvalidConfig(
                "ends within what it said before: it was cut, or is not written to its end. Where less is"
                " meant, rename a new file into its place",
                where=str(source.file),
            )
    try:
        settings = source.parse(content, before=accepted.settings)
    except InvalidConfig as refused:
        return refused
    accepted.replace(settings, content, inode)
    return settings
