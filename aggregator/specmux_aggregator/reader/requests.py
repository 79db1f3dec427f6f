"""Requests to the reader process, its answers, and the share of a document in it: values that cross
processes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from specmux_aggregator.http.messages import Coding
from specmux_aggregator.model.snapshot import SnapshotEntry
from specmux_converters.document import DEFAULT_LIMITS, Limits
from specmux_converters.group_versions import GroupVersion

Output = Literal["json", "text", "plaintext", "skeleton"]

DEPTH_MAX: Final = 64
ROWS_MAX: Final = 200
OFFSET_MAX: Final = 1000
WORDS_MAX: Final = 200
"""Bounds of explain and search over HTTP; a test compares them with those of the tools."""

ENTRIES_MAX: Final = 20
"""Most entries of one group-version on a page, newest first; ``/openapi/changes`` has more."""

BODY_MAX: Final = 3 * 1024 * 1024
"""Bytes: an apiserver's own limit (apiserver, pkg/server/config.go, MaxRequestBodyBytes)."""
BODY_TYPES: Final = ("application/json", "application/yaml", "application/cbor")
"""Media types of objects that are validated."""


@dataclass(frozen=True, slots=True)
class ReaderAnswer:
    body: bytes
    """In the requested coding."""


@dataclass(frozen=True, slots=True)
class QuestionRefusal:
    code: int
    message: str
    similar: tuple[str, ...] = ()
    """Similar names, for "did you mean"."""


@dataclass(frozen=True, slots=True)
class Wants:
    """The job needs these documents to continue; None: it needs the list of documents."""

    group_versions: tuple[GroupVersion, ...] | None


@dataclass(frozen=True, slots=True)
class JobFault:
    """An exception raised by a job; the process continues."""

    exception: str
    place: str
    """Module and line. Not the message of the exception, which may quote an object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainRequest:
    group_version: GroupVersion
    hash: str
    kind: str
    """A kind, or any other name of one."""
    path: str = ""
    is_recursive: bool = False
    depth: int | None = None
    output: Output = "json"


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRequest:
    query: str
    limit: int = 20
    offset: int = 0
    group: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteParts:
    """Optional parts of a service that pages link to."""

    is_logged: bool = False
    """Whether a change log is kept."""
    can_validate: bool = False
    has_schemas: bool = False
    """Whether JSON Schemas of its kinds are served."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentOrigin:
    """A published document, and where it comes from."""

    group_version: GroupVersion
    hash: str
    owner: str
    provenance: str
    release: str | None = None
    """The release of Kubernetes whose built-in documents the backend serves."""


def origin_from(entry: SnapshotEntry, *, release: str | None) -> DocumentOrigin:
    return DocumentOrigin(
        group_version=entry.group_version,
        hash=str(entry.key.hash),
        owner=entry.owner,
        provenance=entry.offer.provenance.value,
        release=release,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentRequest:
    """``page``: which page of the document; ``below``: its path below the home page. ``name``: a kind, or a
    component; "" where the page is about the whole. ``other``: the document of a second version."""

    page: str
    below: str
    origin: DocumentOrigin
    name: str = ""
    other: DocumentOrigin | None = None
    entries: tuple[bytes, ...] | None = None
    """Entries of the group-version in the change log, the newest first; None where no log is kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangesRequest:
    """``entries``: bodies of the log, newest first. Without ``group_version``, the last entry of each.
    ``complete_since``: when the log began, as wall clock in seconds; None before."""

    entries: tuple[bytes, ...]
    complete_since: float | None
    group_version: GroupVersion | None = None
    is_published: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorRequest:
    """``similar``: names and pages of what may have been meant. ``group_version``: one that is not published,
    instead of them: the page names published ones like it."""

    root: str
    code: int
    message: str
    similar: tuple[tuple[str, str], ...] = ()
    group_version: GroupVersion | None = None
    published: tuple[GroupVersion, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidationRequest:
    """``directive``: the query parameter ``fieldValidation`` (KEP-2885), as it was sent."""

    body: bytes
    media_type: str
    directive: str = ""
    coding: Coding = Coding.IDENTITY
    wants_report: bool = False
    release: str | None = None
    """The release whose rules apply; None: the newest."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """The answer to an object: a Status, optionally with the whole report."""

    code: int
    body: bytes
    is_valid: bool
    warnings: tuple[str, ...] = ()
    """Values of Warning fields; characters beyond Latin-1 are UTF-8, one character per byte."""


Found = ReaderAnswer | QuestionRefusal
State = Any
"""The reader's memory, which only its process knows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentShare:
    """The share of one document in a process that reads those of all backends. A document beyond it is
    refused alone, and published all the same: only questions about it, and files made of it, are not
    answered."""

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
