"""Check many documents in a pool of processes; results are cached, so an unchanged one is checked once.

The key is a hash of the bytes, the group-version, and the versions of everything involved. They lie in the
store as entries of their own, so they are bounded, verified and removed as documents are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager, suppress
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, Self

import orjson

from specmux_aggregator.interruptible_pool import InterruptiblePool
from specmux_aggregator.version import VERSION
from specmux_cache.errors import StoreError
from specmux_cache.store.disk_store import DiskStore
from specmux_cache.store.keys import Key
from specmux_tools.document_checks.document import check
from specmux_tools.document_checks.findings import DocumentFinding, DocumentReport, Subject
from specmux_tools.reports import Level

MEDIA_TYPE: Final = "application/vnd.specmux.check+json"

_OWNER: Final = "checks"
"""In place of a server and its partition."""
_FORMAT: Final = "4"


class Results:
    """Results by what was checked. Failures to read and to write are ignored: the document is checked."""

    def __init__(self, store: DiskStore | None) -> None:
        """``store``: None keeps nothing. Use ``open``."""
        self._store = store
        versions = (_FORMAT, VERSION, *map(version, ("openapi-spec-validator", "jsonschema")))
        self._versions = "\n".join(versions).encode()

    @classmethod
    @contextmanager
    def open(cls, directory: Path | None, *, warn: Callable[[str], None]) -> Iterator[Self]:
        """In the disk cache, which is made where it is missing; with None nothing is kept. ``warn`` gets why
        it cannot be used."""
        with ExitStack() as stack:
            store = None
            try:
                if directory is not None:
                    store = stack.enter_context(DiskStore.open(directory, warn=warn))
            except StoreError as error:
                warn(f"{error}; results of checks are not kept")
            yield cls(store)

    def get(self, subject: Subject) -> DocumentReport | None:
        if self._store is None:
            return None
        try:
            found = self._store.get(self._key(subject))
            findings = tuple(
                DocumentFinding(Level(level), str(rule), str(pointer), str(message), *places)
                for level, rule, pointer, message, *places in (orjson.loads(found.body) if found else ())
            )
        except (StoreError, ValueError, TypeError):
            return None
        return DocumentReport(subject.name, findings) if found else None

    def put(self, subject: Subject, checked: DocumentReport) -> None:
        if self._store is not None:
            rows: list[Any] = [[*finding] for finding in checked.findings]
            with suppress(StoreError):
                self._store.put(self._key(subject), orjson.dumps(rows), metadata={})

    def _key(self, subject: Subject) -> Key:
        digest = sha256(self._versions)
        digest.update(f"\n{subject.group_version or ''}\n{subject.release or ''}\n".encode())
        digest.update(subject.data)
        return Key(_OWNER, _OWNER, f"/{digest.hexdigest()}", "", MEDIA_TYPE)


def check_all(subjects: Sequence[Subject], *, jobs: int) -> Iterator[tuple[Subject, DocumentReport]]:
    """In order of completion; the largest starts first. A single document needs no process."""
    if len(subjects) < 2:
        for subject in subjects:
            yield (
                subject,
                DocumentReport(subject.name, check(subject.data, subject.group_version, subject.release)),
            )
        return
    ordered = sorted(subjects, key=lambda subject: len(subject.data), reverse=True)
    with InterruptiblePool(min(jobs, len(ordered))) as pool:
        asked = {pool.submit(check, each.data, each.group_version, each.release): each for each in ordered}
        for done in as_completed(asked):
            subject = asked[done]
            try:
                findings = done.result()
            except BrokenProcessPool:
                reason = "the process that checked it ended, by a signal or because memory is short"
                findings = (DocumentFinding(Level.WARNING, "schema", "", reason),)
            yield subject, DocumentReport(subject.name, findings)
