"""A Directory with the bytes of everything that can be asked of it, each made when it is first wanted. Pure.

What is small is made when it is asked for. The rest is made in steps, between which others have their turn
(``rendering.render``); what was asked of the index before, before anybody asks this one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Final

import orjson

from specmux_aggregator.discovery import accept, render
from specmux_aggregator.discovery.accept import DiscoveryForm
from specmux_aggregator.discovery.directory import Directory, Group, ListedVersion
from specmux_aggregator.discovery.pieces import (
    CBOR_WRITER,
    JSON_WRITER,
    Steps,
    done,
    is_longer,
    self_described,
    written,
)
from specmux_aggregator.http.content_codings import encoded
from specmux_aggregator.http.messages import Coding, ETag
from specmux_converters.deferred_dataclasses import dataclass
from specmux_converters.media_types import CBOR, JSON

CORE_PATH: Final = "/api"
GROUPS_PATH: Final = "/apis"
VERSION_PATH: Final = "/version"

Asked = tuple[str, DiscoveryForm, Coding]
"""Path, form and content coding of an answer."""

Subject = Group | ListedVersion | str
"""What a path leads to; a path itself where it leads to a list of all."""


SMALL: Final = 100
"""Groups, versions and resources of an answer that is made when it is asked for, in about a millisecond."""

SMALL_BYTES: Final = 32 * 1024
"""Bytes that are compressed where they are asked for."""


@dataclass(frozen=True, slots=True)
class Rendering:
    """One representation: its bytes before any content coding, and what validates it."""

    json_digest: str
    body: bytes

    def etag(self, form: DiscoveryForm, coding: Coding) -> ETag:
        """Strong, so one for each representation: forms of one version share their content's hash."""
        suffix = "-cbor" if form.media_type == CBOR else ""
        coded = "" if coding is Coding.IDENTITY else f"-{coding.value}"
        return ETag(f'"{self.json_digest}{suffix}{coded}"')


LINE_END: Final = b"\n"
"""Behind every list of an apiserver (Go's json.Encoder), so that a list is the same bytes here and there."""


class DiscoveryIndex:
    """All answers at one moment. Bytes are added, never changed, so threads may share it."""

    def __init__(self, directory: Directory, *, is_complete: bool = True, is_blind: bool = False) -> None:
        """``is_complete``: every backend was asked once; before that, an absence means nothing. ``is_blind``:
        they were, but nothing is known, and not because there is nothing."""
        self.directory = directory
        self.is_complete = is_complete
        self.is_blind = is_blind
        self._groups = {group.name: group for group in directory.groups}
        self._versions = {f"/{item.group_version}": item for item in directory.versions()}
        self._renderings: dict[tuple[str, DiscoveryForm], Rendering] = {}
        self._coded: dict[Asked, bytes] = {}

    def asked(self) -> tuple[Asked, ...]:
        """What was made so far of the lists of all."""
        return tuple(key for key in self._coded if key[0] in (CORE_PATH, GROUPS_PATH))

    def wanted(self, asked: Iterable[Asked]) -> Iterator[Asked]:
        """What every kubectl asks for, and what was asked of the index before."""
        if self.is_complete:
            common = [(path, DiscoveryForm(JSON, "v2"), Coding.GZIP) for path in (CORE_PATH, GROUPS_PATH)]
            yield from dict.fromkeys((*common, *asked))

    def find(self, path: str) -> Subject | None:
        """What there is at a path of discovery."""
        if path in (CORE_PATH, GROUPS_PATH):
            return path
        if path == VERSION_PATH:
            return None if self.directory.version is None else path
        return self._versions.get(path) or self._groups.get(path.removeprefix(GROUPS_PATH + "/"))

    def rendering(self, path: str, subject: Subject, form: DiscoveryForm) -> Rendering | None:
        """None where it has to be made first, and is not small."""
        rendering = self._renderings.get((path, form))
        if rendering is None and not is_longer(_members(self.directory, subject), SMALL):
            rendering = done(self.steps(path, subject, form))
        return rendering

    def coded(self, path: str, form: DiscoveryForm, coding: Coding, rendering: Rendering) -> bytes | None:
        """The rendering's bytes in a content coding; None where they have to be made first."""
        body = self._coded.get((path, form, coding))
        if body is None and (coding is Coding.IDENTITY or len(rendering.body) <= SMALL_BYTES):
            body = self.encode(path, form, coding, rendering)
        return body

    def steps(self, path: str, subject: Subject, form: DiscoveryForm) -> Steps[Rendering]:
        """Makes a rendering, and keeps it."""
        key = (path, form)
        if key not in self._renderings:
            if form.media_type == JSON:
                if subject == VERSION_PATH and self.directory.version is not None:
                    body = self.directory.version
                else:
                    body = (yield from written(self._tree(subject, form), JSON_WRITER)) + LINE_END
                digest = hashlib.sha256(body).hexdigest().upper()
            else:
                # Forms of one version share their content's hash.
                plain = yield from self.steps(path, subject, replace(form, media_type=JSON))
                digest = plain.json_digest
                body = self_described((yield from written(self._tree(subject, form), CBOR_WRITER)))
            self._renderings[key] = Rendering(digest, body)
        return self._renderings[key]

    def encode(self, path: str, form: DiscoveryForm, coding: Coding, rendering: Rendering) -> bytes:
        """Its bytes in a content coding, kept. May be called in a thread."""
        body = self._coded[path, form, coding] = encoded(rendering.body, coding)
        return body

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
    """An answer whose bytes are not at hand."""

    index: DiscoveryIndex
    asked: Asked


def _members(directory: Directory, subject: Subject) -> Iterator[object]:
    """What an answer about ``subject`` is made of, one by one."""
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
    """What there is of a path, besides content codings."""
    return accept.ALL if path in (CORE_PATH, GROUPS_PATH) else accept.LEGACY


def discovery_path(path: str) -> str | None:
    """The path without a trailing slash if discovery is what answers there; None for every other."""
    if not path.startswith((CORE_PATH, VERSION_PATH)):
        return None
    plain = path.removesuffix("/")
    _, root, *rest = plain.split("/")
    depth = {"api": 1, "apis": 2, "version": 0}.get(root, -1)
    return plain if len(rest) <= depth and all(rest) else None
