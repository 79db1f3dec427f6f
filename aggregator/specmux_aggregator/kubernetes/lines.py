"""Split chunks into lines of bounded length. Pure."""

from __future__ import annotations


class LineTooLong(Exception):
    """A line exceeded the bound; the start of the next one is unknown."""

    def __init__(self, max_bytes: int) -> None:
        super().__init__(f"an event is larger than the {max_bytes} bytes allowed")


class Lines:
    """Keeps the incomplete line."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._begun: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """The non-empty lines that end in the chunk. Raises LineTooLong."""
        first, *rest = chunk.split(b"\n")
        self._size += len(first)
        self._check(self._size)
        self._begun.append(first)
        if not rest:
            return []
        whole = [b"".join(self._begun), *rest[:-1]]
        self._begun, self._size = [rest[-1]], len(rest[-1])
        self._check(max(map(len, (*whole, rest[-1]))))
        return [line for line in whole if line.strip()]

    @property
    def is_between(self) -> bool:
        """Whether there is no incomplete line."""
        return not any(part.strip() for part in self._begun)

    def _check(self, size: int) -> None:
        if size > self._max_bytes:
            raise LineTooLong(self._max_bytes)
