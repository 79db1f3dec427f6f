"""Notices that the configuration file's content changed, and says what it reads as now.

Looks at content, not times or links: a ConfigMap swaps a link, an editor renames, a copy may keep its time.
A file that lost its list of backends, or was cut where it stands, keeps what was read before.
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
"""Seconds between looks."""

SETTLING: Final = 0.2
"""Seconds for which new content must stay the same: not every writer replaces a file in one step."""

SETTLING_LOOKS: Final = 25
"""Looks after which content that never stays the same is taken as it is."""


async def watch_config(
    source: ConfigSource, current: Settings, *, reread: asyncio.Event, interval: float = INTERVAL
) -> AsyncIterator[Settings | InvalidConfig]:
    """Yields Settings that differ from those yielded last (at first from ``current``), and an InvalidConfig
    once for each content that is refused, or for a file that cannot be read.

    What was written over itself and is the beginning of what it was, and nothing else, is refused: a writer
    was stopped, or is slow. A file that was renamed into its place is whole, and may be shorter.

    ``reread``, cleared here, makes it look at once and yield what it reads, news or not. It never ends.
    """
    seen: bytes | str | None = None
    last: Settings | InvalidConfig = current
    accepted = _ConfigInForce(current)
    while True:
        is_asked = reread.is_set()
        reread.clear()
        content = await _content(source) if is_asked else await _settled(source, seen)
        if is_asked or content != seen:
            seen = content
            read = await asyncio.to_thread(_parsed, source, content, accepted)
            if is_asked or isinstance(read, InvalidConfig) or read != last:
                last = read
                yield read
        # Not wait_for: on Python 3.11 it forgets a cancellation that comes with the event, and never ends.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(interval):
                await reread.wait()


class _ConfigInForce:
    """What is in force: as read, as it was written, and in which file."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._content: bytes | None = None
        self._inode = 0

    def is_cut(self, content: bytes, inode: int) -> bool:
        """Whether ``content`` is what was accepted up to some byte, in the same file."""
        before = self._content
        return (
            before is not None
            and inode == self._inode
            and len(content) < len(before)
            and before.startswith(content)
        )

    def replace(self, settings: Settings, content: bytes | None, inode: int) -> None:
        self.settings, self._content, self._inode = settings, content, inode


async def _settled(source: ConfigSource, seen: bytes | str | None) -> bytes | str | None:
    """The content, once two looks in a row agree on it when it is no longer ``seen``."""
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
    """The file's bytes; as a str, why it has none; None without a file."""
    if source.file is None:
        return None
    try:
        return await asyncio.to_thread(read_file, source.file)
    except InvalidConfig as refused:
        return str(refused)


def _parsed(
    source: ConfigSource, content: bytes | str | None, accepted: _ConfigInForce
) -> Settings | InvalidConfig:
    """Accepts what can be: ``accepted`` is that from now on."""
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
