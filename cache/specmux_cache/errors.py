"""Everything this package raises.

CacheError
├── RequestError             the server was asked and gave nothing to use, nor was there a stored answer
│   ├── ServerUnreachable    no connection, or no whole answer in time
│   ├── BadAnswer            truncated, too large, of another type than asked for, not what it says it is
│   ├── RedirectRefused      a second redirect, or one that leaves the server
│   └── UnexpectedStatus     anything but 200, 304 and a redirect
│       └── MediaTypeRefused 406 or 415 for every media type that the caller takes
├── GroupVersionNotFound     not in the discovery root
├── KindNotFound             not in the document of its group-version
├── AccessError              how a server is reached cannot be made out
│   ├── KubeconfigError      a kubeconfig from which no server can be had
│   └── UnusableCredentials  a file or a program that gives no credentials
├── NotCached                offline, and not stored
├── BundleError              not a bundle, or not as it was written
├── MergeRefused             a document that cannot be merged with others, or none at all
└── StoreError               the disk store
    ├── StoreUnavailable     the directory cannot be used at all; a client falls back to memory
    ├── StoreFull            this body was not stored: no room below the bound
    │   └── DiskFull         no room on the disk, or below a quota
    ├── StoreReadOnly        the directory can be read, and not written to
    ├── StoreBusy            other writers held the index for longer than ``StoreLimits.busy_timeout``
    └── StoreDamaged         the index was unreadable; it has been set aside and the next call starts empty
"""

from __future__ import annotations

import re
from typing import Final

from specmux_converters.errors import cut

_HASH: Final = re.compile(r"(\bhash=\w{12})\w{8,}")
_CUT: Final = r"\1…"


class CacheError(Exception):
    """Root of the errors of this package."""


class RequestError(CacheError):
    """The server returned nothing usable. ``url``: the requested one; the message cuts its hash."""

    def __init__(self, reason: str, *, url: str) -> None:
        super().__init__(f"{_HASH.sub(_CUT, cut(url))}: {reason}")
        self.reason = reason
        self.url = url


class ServerUnreachable(RequestError):
    """There was no connection, or no complete answer in time."""


class BadAnswer(RequestError):
    """An answer that is malformed, truncated or of another type. None of it was used or stored."""


class RedirectRefused(RequestError):
    """One redirect is followed, within the server. ``target``: where one leads that leaves it, cut, without
    its query."""

    def __init__(self, reason: str, *, url: str, target: str = "") -> None:
        super().__init__(reason, url=url)
        self.target = cut(target.partition("?")[0].partition("#")[0])


class UnexpectedStatus(RequestError):
    """``status`` is the server's, ``sentence`` what it said about it, cut; "" for nothing."""

    def __init__(self, status: int, *, url: str, sentence: str = "") -> None:
        said = f": {cut(sentence)}" if sentence else ""
        super().__init__(f"the server answered {status}{said}", url=url)
        self.status = status
        self.sentence = sentence


class MediaTypeRefused(UnexpectedStatus):
    """The server has the document in other media types only."""


class GroupVersionNotFound(CacheError):
    """The server does not publish it. ``group_version`` as it was asked for; ``waited``: seconds for which
    the server was asked."""

    def __init__(self, group_version: str, *, server: str, waited: float | None = None) -> None:
        still = "has no" if waited is None else f"was asked for {waited:g} s and has no"
        super().__init__(f"{cut(server)} {still} {cut(group_version)}")
        self.group_version = group_version
        self.server = server
        self.waited = waited


class KindNotFound(CacheError):
    """The document of ``group_version`` has no ``kind``; both as they were asked for."""

    def __init__(self, kind: str, *, group_version: str) -> None:
        super().__init__(f"{cut(group_version)} has no {cut(kind)}; kinds are written as in manifests")
        self.kind = kind
        self.group_version = group_version


class AccessError(CacheError):
    """Settings or files do not determine how to reach a server. ``where`` names the file or variable, never
    a value."""

    def __init__(self, reason: str, *, where: str = "") -> None:
        super().__init__(f"{where}: {reason}" if where else reason)
        self.reason = reason
        self.where = where


class KubeconfigError(AccessError):
    """A kubeconfig that describes no server. The message names the file and what is missing."""


class UnusableCredentials(AccessError):
    """``cause`` is "unreadable" for a file, "bad_tls" for certificates, "credentials" for a program."""

    def __init__(self, reason: str, *, cause: str) -> None:
        super().__init__(reason)
        self.cause = cause


class NotCached(CacheError):
    """``name`` is not stored, and the client is offline."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{cut(name)} is not in the cache, and the cache is offline")
        self.name = name


class BundleError(CacheError):
    """A file that is no bundle, or a damaged one. ``path``: of the file."""

    def __init__(self, reason: str, *, path: str) -> None:
        super().__init__(f"bundle {cut(path)}: {reason}")
        self.reason = reason
        self.path = path


class MergeRefused(CacheError):
    """The documents are not changed; the message names the place in the one that is at fault."""


class StoreError(CacheError):
    """The disk store could not do what it was asked. ``directory`` is the store's."""

    def __init__(self, reason: str, *, directory: str) -> None:
        super().__init__(f"cache directory {cut(directory)}: {reason}")
        self.reason = reason
        self.directory = directory


class StoreUnavailable(StoreError):
    """Read-only, a symlink, someone else's, not a cache, or of a newer version. Nothing in it was changed."""


class StoreReadOnly(StoreError):
    """Nothing was stored or removed; what is there can be read."""


class StoreFull(StoreError):
    """The body was not stored; what was stored before is intact."""


class DiskFull(StoreFull):
    """The file system did not take what was written."""


class StoreBusy(StoreError):
    """The index stayed locked; nothing was changed."""


class StoreDamaged(StoreError):
    """The index was not readable as one."""


class BadValue(ValueError):
    """A text is no value of its setting, option or member; the message says what is wanted. Ends in the
    reader of that file or option."""
