"""Cached results of checks in a folder, so that an unchanged document is checked once.

The key is a hash of the bytes, the group-version, and the versions of everything involved. An unreadable or
foreign file is ignored.
"""

from __future__ import annotations

from contextlib import suppress
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import orjson

from specmux_aggregator.version import VERSION
from specmux_cache.replaced_files import replaced_file
from specmux_tools.document_checks.findings import DocumentFinding, DocumentReport, Subject
from specmux_tools.reports import Level

KEPT_MAX: Final = 5000
"""Results in the folder; the oldest are removed."""

_FORMAT: Final = "3"


class Results:
    """Stores results in ``folder``, which is created on the first write. Failures to write are ignored."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        versions = (_FORMAT, VERSION, *map(version, ("openapi-spec-validator", "jsonschema")))
        self._versions = "\n".join(versions).encode()

    def get(self, subject: Subject) -> DocumentReport | None:
        try:
            rows = orjson.loads(self._file(subject).read_bytes())
            findings = tuple(
                DocumentFinding(Level(level), str(rule), str(pointer), str(message), *places)
                for level, rule, pointer, message, *places in rows
            )
        except (OSError, ValueError, TypeError):
            return None
        return DocumentReport(subject.name, findings)

    def put(self, subject: Subject, checked: DocumentReport) -> None:
        file = self._file(subject)
        rows: list[Any] = [[*finding] for finding in checked.findings]
        with suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            with replaced_file(file) as new:
                new.write(orjson.dumps(rows))

    def prune(self) -> None:
        """Keep the newest ``KEPT_MAX``."""
        with suppress(OSError):
            files = list(self._folder.iterdir())
            if len(files) > KEPT_MAX:
                for file in sorted(files, key=lambda each: each.stat().st_mtime)[:-KEPT_MAX]:
                    file.unlink(missing_ok=True)

    def _file(self, subject: Subject) -> Path:
        digest = sha256(self._versions)
        digest.update(f"\n{subject.group_version or ''}\n{subject.release or ''}\n".encode())
        digest.update(subject.data)
        return self._folder / f"{digest.hexdigest()}.json"
