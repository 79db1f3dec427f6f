"""The share of one document in a process that reads the documents of all backends."""

from __future__ import annotations

from dataclasses import dataclass, replace

from specmux_converters.document import DEFAULT_LIMITS, Limits


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentShare:
    """A document beyond it is refused alone. It is published all the same: only questions about it, and files
    made of it, are not answered."""

    max_bytes: int = 16 * 1024 * 1024
    max_values: int = 400_000
    """Objects, arrays and scalars: they bound schemas, paths, operations and members of an enum as well.
    Kubernetes' largest document has 35,000; 16 MiB of a real one 280,000."""
    cpu_seconds: float = 2.0

    def within(self, limits: Limits = DEFAULT_LIMITS) -> Limits:
        """The stricter of each limit."""
        return replace(
            limits,
            max_bytes=min(self.max_bytes, limits.max_bytes),
            max_values=min(self.max_values, limits.max_values),
        )


WHOLE_SHARE = DocumentShare()
