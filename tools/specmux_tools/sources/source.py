"""The interface of every source of documents, wherever they are from."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from typing import Protocol

import orjson

from specmux_aggregator.errors import SourceError
from specmux_converters.document import Document
from specmux_converters.errors import cut
from specmux_converters.group_versions import GroupVersion
from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.resources import Resources
from specmux_tools.kinds import DocumentSet


class FileRefused(SourceError):
    """A file or an answer that cannot be read, converted or written. ``where`` names it, unless
    the reason does."""

    def __init__(self, where: object, reason: object) -> None:
        place = f"{cut(str(where))}: " if str(where) else ""
        super().__init__(f"{place}{reason}" if reason else str(where))
        self.reason = str(reason)


@dataclass(frozen=True, slots=True)
class UnreadSource:
    """A file, a manifest or a document that could not be used."""

    where: str
    """Its name for a user: a path, the name of a CustomResourceDefinition, a group-version of a server."""
    reason: str

    def __str__(self) -> str:
        return f"{self.where}: {self.reason}"


@dataclass(frozen=True, slots=True)
class LoadedDocuments:
    """Parsed documents, and what kept others from being among them."""

    documents: DocumentSet
    unread: tuple[UnreadSource, ...] = ()
    definitions: tuple[Document, ...] = ()
    """Manifests that documents were built of."""


class Source(Protocol):
    """Blocks. Raises SpecmuxError where nothing at all can be had, with the next step in its message."""

    @property
    def where(self) -> str:
        """The source's name, for messages."""

    @property
    def kept_as(self) -> tuple[str, str] | None:
        """Server and partition in the disk cache for results made of its documents; None: not cached."""

    def state(self) -> str:
        """A token that changes whenever a document does; "" if unknown without reading them."""

    def refresh(self) -> Source:
        """The source as it is now: itself, or another where something changed. Raises SpecmuxError."""

    def hashes(self) -> Mapping[GroupVersion, str]:
        """A hash of each document that changes with it; "" if it has none."""

    def group_versions(self) -> tuple[GroupVersion, ...]:
        """The available group-versions, sorted."""

    def load(
        self, group_versions: Collection[GroupVersion] | None = None, *, schemas_only: bool = False
    ) -> LoadedDocuments:
        """The documents of these group-versions, all by default. One that is not there is left out.

        ``schemas_only``: they may lack their paths, where that is less to fetch. Not to judge objects: paths
        say what has a status subresource and what needs a name.
        """

    def resources(self) -> Mapping[GroupVersion, Resources]:
        """The resources of each group-version: plurals, short names, kinds."""


def digest_of(document: Document) -> str:
    """The hash of a document whose source has none."""
    return hashlib.sha256(orjson.dumps(document)).hexdigest()
