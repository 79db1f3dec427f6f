"""A Directory with the bytes of all its answers, each made when first needed. Pure.

Small answers are made on request. Others are made in a thread (``watch``); those requested from the previous
index are made before this one is used.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice
from typing import Any, Final

import orjson

from specmux_aggregator.api_discovery import accept, render
from specmux_aggregator.api_discovery.accept import DiscoveryForm
from specmux_aggregator.api_discovery.directory import Directory, Group, ListedVersion
from specmux_aggregator.http.content_codings import encode_body
from specmux_aggregator.http.messages import Coding, ETag
from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.media_types import CBOR, JSON

CORE_PATH: Final = "/api"
GROUPS_PATH: Final = "/apis"
VERSION_PATH: Final = "/version"

Asked = tuple[str, DiscoveryForm, Coding]
"""Path, form and content coding of an answer."""

Subject = Group | ListedVersion | str
"""The subject of a path; the path itself if it refers to a list of all."""


SMALL: Final = 100
"""Groups, versions and resources of an answer that is made on request, in about a millisecond."""

SMALL_BYTES: Final = 32 * 1024
"""Bytes that are compressed on request."""


@dataclass(frozen=True, slots=True)
class Rendering:
    """A representation: its bytes before content coding, and its validator."""

    json_digest: str
    body: bytes

    def etag(self, form: DiscoveryForm, coding: Coding) -> ETag:
        """Strong, so one per representation: forms of one version share the hash of their content."""
        suffix = "-cbor" if form.media_type == CBOR else ""
        coded = "" if coding is Coding.IDENTITY else f"-{coding.value}"
        return ETag(f'"{self.json_digest}{suffix}{coded}"')


LINE_END: Final = b"\n"
"""Ends every list of an apiserver (Go's json.Encoder); kept so that lists are byte-identical."""


class DiscoveryIndex:
    """All answers at one moment. Bytes are added and never changed, so threads may share it."""

    def __init__(self, directory: Directory, *, is_complete: bool = True, is_blind: bool = False) -> None:
        """``is_complete``: every backend was asked once; before that, absence means nothing. ``is_blind``:
        they were, but none reported anything, although there may be something."""
        self.directory = directory
        self.is_complete = is_complete
        self.is_blind = is_blind
        self._groups = {group.name: group for group in directory.groups}
        self._versions = {f"/{item.group_version}": item for item in directory.versions()}
        self._renderings: dict[tuple[str, DiscoveryForm], Rendering] = {}
        self._coded: dict[Asked, bytes] = {}

    def list_asked(self) -> tuple[Asked, ...]:
        """The lists of all that were made so far."""
        # A thread may add one meanwhile: of the dictionary itself, a list is taken at once.
        return tuple(key for key in list(self._coded) if key[0] in (CORE_PATH, GROUPS_PATH))

    def list_wanted(self, asked: Iterable[Asked]) -> Iterator[Asked]:
        """The answers that every kubectl requests, and those requested of the previous index."""
        if self.is_complete:
            common = [(path, DiscoveryForm(JSON, "v2"), Coding.GZIP) for path in (CORE_PATH, GROUPS_PATH)]
            yield from dict.fromkeys((*common, *asked))

    def find(self, path: str) -> Subject | None:
        """The subject at a discovery path."""
        if path in (CORE_PATH, GROUPS_PATH):
            return path
        if path == VERSION_PATH:
            return None if self.directory.version is None else path
        return self._versions.get(path) or self._groups.get(path.removeprefix(GROUPS_PATH + "/"))

    def rendering(self, path: str, subject: Subject, form: DiscoveryForm) -> Rendering | None:
        """None if it has to be made first and is not small."""
        rendering = self._renderings.get((path, form))
        if rendering is None and not any(islice(_members(self.directory, subject), SMALL, None)):
            rendering = self._render(path, subject, form)
        return rendering

    def find_coded(
        self, path: str, form: DiscoveryForm, coding: Coding, rendering: Rendering
    ) -> bytes | None:
        """The rendering in a content coding; None if it has to be made first."""
        body = self._coded.get((path, form, coding))
        if body is None and (coding is Coding.IDENTITY or len(rendering.body) <= SMALL_BYTES):
            body = self._coded[path, form, coding] = encode_body(rendering.body, coding)
        return body

    def make(self, asked: Asked) -> None:
        """Make an answer and keep it. Thread-safe; of thousands of resources it takes a tenth of a second."""
        path, form, coding = asked
        subject = self.find(path)
        if subject is not None and asked not in self._coded:
            self._coded[asked] = encode_body(self._render(path, subject, form).body, coding)

    def _render(self, path: str, subject: Subject, form: DiscoveryForm) -> Rendering:
        key = (path, form)
        if key not in self._renderings:
            if form.media_type == JSON:
                if subject == VERSION_PATH and self.directory.version is not None:
                    body = self.directory.version
                else:
                    body = orjson.dumps(self._tree(subject, form)) + LINE_END
                digest = hashlib.sha256(body).hexdigest().upper()
            else:
                from specmux_converters.codecs import cbor  # most clients ask for JSON

                # Forms of one version share the hash of their content.
                digest = self._render(path, subject, replace(form, media_type=JSON)).json_digest
                body = cbor.encode(self._tree(subject, form))
            self._renderings[key] = Rendering(digest, body)
        return self._renderings[key]

    def _tree(self, subject: Subject, form: DiscoveryForm) -> Any:
        directory = self.directory
        match subject:
            case ListedVersion():
                return render.resource_list(subject)
            case Group():
                return render.group_tree(subject)
            case _ if subject == VERSION_PATH:
                return orjson.loads(directory.version or b"{}")
            case _ if form.version is not None:
                core = () if directory.core is None else (directory.core,)
                groups = core if subject == CORE_PATH else directory.groups
                if form.is_of_one:
                    groups = tuple(own for group in groups if (own := group.without_peers) is not None)
                return render.aggregated_list(groups, version=form.version)
            case _ if subject == CORE_PATH:
                return render.core_versions(directory)
            case _:
                return render.group_list(directory)


@dataclass(frozen=True, slots=True)
class PendingAnswer:
    """An answer whose bytes have to be made first."""

    index: DiscoveryIndex
    asked: Asked


def _members(directory: Directory, subject: Subject) -> Iterator[object]:
    """The members of an answer about ``subject``, one by one."""
    match subject:
        case ListedVersion():
            for resource in subject.resources:
                yield resource
                yield from resource.subresources
        case Group():
            yield from subject.versions
        case _ if subject != VERSION_PATH:
            for version in directory.versions():
                yield version
                yield from _members(directory, version)


def forms_of(path: str) -> tuple[DiscoveryForm, ...]:
    """The forms of a path, apart from content codings."""
    return accept.ALL if path in (CORE_PATH, GROUPS_PATH) else accept.LEGACY


def discovery_path(path: str) -> str | None:
    """The path without a trailing slash if it belongs to discovery; None otherwise."""
    if not path.startswith((CORE_PATH, VERSION_PATH)):
        return None
    plain = path.removesuffix("/")
    _, root, *rest = plain.split("/")
    depth = {"api": 1, "apis": 2, "version": 0}.get(root, -1)
    return plain if len(rest) <= depth and all(rest) else None
