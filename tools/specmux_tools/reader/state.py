"""The memory of the reader process: parsed documents, evicted least recently used first, and the index.

The kernel bounds its memory (RLIMIT_DATA); a processor-time limit bounds each query.
"""

from __future__ import annotations

import gc
import resource
import signal
from collections.abc import Callable, Mapping
from functools import cache
from traceback import extract_tb
from typing import Any, Final, TypeVar

from specmux_aggregator.reader.requests import WHOLE_SHARE, DocumentShare, JobFault
from specmux_converters.document import Document, parse
from specmux_converters.errors import ConverterError
from specmux_converters.group_versions import GroupVersion
from specmux_converters.memory import ByteBounded
from specmux_tools.processor_time import QueryTooLong, limited_time
from specmux_tools.search_index.index import FieldIndex

R = TypeVar("R")

PARSED_BYTES: Final = 64 * 1024 * 1024
_PARSED_FACTOR: Final = 6
"""Memory of a parsed document relative to its JSON; measured: 5 to 7."""


class ReaderState:
    def __init__(self) -> None:
        self.index = FieldIndex()
        self.version = ""
        """Version of the set of documents that the index follows."""
        self.published: Mapping[GroupVersion, str] = {}
        """Hashes of the documents of ``version``, for jobs that choose their documents themselves."""
        self._derived: dict[str, Any] = {}
        self._parsed: ByteBounded[str, tuple[Document, int]] = ByteBounded(
            PARSED_BYTES, size=lambda parsed: parsed[1], dropped=lambda gone: self._derived.pop(gone, None)
        )

    def document(self, hash: str) -> Document | None:
        found = self._parsed.get(hash)
        return None if found is None else found[0]

    def keep(self, hash: str, body: bytes, share: DocumentShare = WHOLE_SHARE) -> Document:
        """Parse and keep a document. Raises ConverterError if it is not one, or beyond its share."""
        known = self.document(hash)
        if known is not None:
            return known
        document = parse(body, limits=share.within())
        # At least one document is kept, however large: a job needs the one that was loaded for it.
        self._parsed.put(hash, (document, min(_PARSED_FACTOR * len(body), PARSED_BYTES)))
        return document

    def derive(self, hash: str, make: Callable[[Document], R]) -> R | None:
        """A value made of a kept document, cached as long as the document. A process may derive only one kind
        of value."""
        document = self.document(hash)
        if document is None:
            return None
        if hash not in self._derived:
            self._derived[hash] = make(document)
        found: R = self._derived[hash]
        return found


def align(
    state: ReaderState, version: str, documents: Mapping[GroupVersion, str]
) -> tuple[GroupVersion, ...]:
    """Follow this set of documents (hashes by group-version); returns those that are needed for it."""
    for key in state.index.documents.keys() - documents.keys():
        state.index.remove(key)
    if state.index.is_worn:
        state.index = FieldIndex()
    follow(state, version, documents)
    held = state.index.documents
    return tuple(key for key, hash in documents.items() if key not in held or held[key].hash != hash)


def follow(state: ReaderState, version: str, documents: Mapping[GroupVersion, str]) -> None:
    """The same as ``align``, for a process without an index: needs no documents."""
    state.version, state.published = version, documents


def add(
    state: ReaderState, group_version: GroupVersion, hash: str, body: bytes, share: DocumentShare
) -> str | None:
    """Add a document to the index; returns why it cannot be read within its share, else None."""
    try:
        document = state.keep(hash, body, share)
        state.index.put(group_version, document, hash=hash, within=lambda: limited_time(share.cpu_seconds))
    except ConverterError as error:
        return error.reason
    except RecursionError:
        return "nested too deeply"
    except QueryTooLong:
        return f"reading it takes more than {share.cpu_seconds:g} s of processor time"
    return None


def keep(state: ReaderState, hash: str, body: bytes, share: DocumentShare) -> str | None:
    """The same as ``add``, without the index."""
    try:
        state.keep(hash, body, share)
    except ConverterError as error:
        return error.reason
    return None


def perform(
    memory_bytes: int,
    cpu_seconds: float,
    job: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """Run one job in the process; returns a JobFault if it raises. The kernel ends the process if the job
    exceeds its processor time, wherever it hangs."""
    signal.setitimer(signal.ITIMER_PROF, cpu_seconds)
    try:
        return job(_state(memory_bytes), *args, **kwargs)
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001  # of a body or a document, which the next one has no part in
        last = extract_tb(error.__traceback__)[-1]
        return JobFault(type(error).__name__, f"{last.filename.rpartition('/')[2]}:{last.lineno}")
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


@cache
def _state(memory_bytes: int) -> ReaderState:
    """The state of this process; never called in the service's own process."""
    resource.setrlimit(resource.RLIMIT_DATA, (memory_bytes, memory_bytes))
    # The index lives as long as the process; excluding it from garbage collection saves a third of a build.
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
    return ReaderState()
