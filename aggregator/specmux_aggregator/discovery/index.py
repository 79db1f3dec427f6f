"""A Directory with the bytes of everything that can be asked of it, each made when it is first wanted. Pure.

What was asked of the DiscoveryIndex before is made beforehand (``prepare``), outside the event loop.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import orjson

from specmux_aggregator.discovery import accept, render
from specmux_aggregator.discovery.accept import Form
from specmux_aggregator.discovery.directory import Directory, Group, Version
from specmux_aggregator.http.content_codings import encoded
from specmux_aggregator.http.messages import Coding, ETag
from specmux_converters import codecs
from specmux_converters.media_types import CBOR, JSON

CORE_PATH: Final = "/api"
GROUPS_PATH: Final = "/apis"
VERSION_PATH: Final = "/version"

Asked = tuple[str, Form, Coding]
"""Path, form and content coding of an answer."""

Subject = Group | Version | str
"""What a path leads to; a path itself where it leads to a list of all."""


@dataclass(frozen=True, slots=True)
class Rendering:
    """One representation: its bytes before any content coding, and what validates it."""

    json_digest: str
    body: bytes

    def etag(self, form: Form, coding: Coding) -> ETag:
        """Strong, so one for each representation: forms of one version share their content's hash."""
        suffix = "-cbor" if form.media_type == CBOR else ""
        coded = "" if coding is Coding.IDENTITY else f"-{coding.value}"
        return ETag(f'"{self.json_digest}{suffix}{coded}"')


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
        self._renderings: dict[tuple[str, Form], Rendering] = {}
        self._coded: dict[Asked, bytes] = {}

    def asked(self) -> tuple[Asked, ...]:
        """What was made so far of the lists of all."""
        return tuple(key for key in self._coded if key[0] in (CORE_PATH, GROUPS_PATH))

    def prepare(self, asked: Iterable[Asked]) -> None:
        """Make what every kubectl asks for, and what was asked of the index before. Costs milliseconds per
        hundred kilobytes, in CBOR five times that."""
        if self.is_complete:
            common = [(path, Form(JSON, "v2"), Coding.GZIP) for path in (CORE_PATH, GROUPS_PATH)]
            for path, form, coding in (*common, *asked):
                self.coded(path, path, form, coding)

    def find(self, path: str) -> Subject | None:
        """What there is at a path of discovery."""
        if path in (CORE_PATH, GROUPS_PATH):
            return path
        if path == VERSION_PATH:
            return None if self.directory.version is None else path
        return self._versions.get(path) or self._groups.get(path.removeprefix(GROUPS_PATH + "/"))

    def rendering(self, path: str, subject: Subject, form: Form) -> Rendering:
        key = (path, form)
        rendering = self._renderings.get(key)
        if rendering is None:
            rendering = self._renderings[key] = self._made(path, subject, form)
        return rendering

    def coded(self, path: str, subject: Subject, form: Form, coding: Coding) -> bytes:
        """The rendering's bytes in a content coding."""
        key = (path, form, coding)
        if key not in self._coded:
            self._coded[key] = encoded(self.rendering(path, subject, form).body, coding)
        return self._coded[key]

    def _made(self, path: str, subject: Subject, form: Form) -> Rendering:
        if form.media_type == JSON:
            body = self._json(subject, form)
            return Rendering(hashlib.sha256(body).hexdigest().upper(), body)
        plain = self.rendering(path, subject, Form(JSON, form.version))
        return Rendering(plain.json_digest, codecs.encode(orjson.loads(plain.body), form.media_type))

    def _json(self, subject: Subject, form: Form) -> bytes:
        directory = self.directory
        match subject:
            case Version():
                return orjson.dumps(render.resource_list(subject))
            case Group():
                return orjson.dumps(render.group_tree(subject))
            case _ if subject == VERSION_PATH:
                return directory.version or b"{}"
            case _ if form.version is not None:
                core = () if directory.core is None else (directory.core,)
                groups = core if subject == CORE_PATH else directory.groups
                return orjson.dumps(render.aggregated_list(groups, version=form.version))
            case _ if subject == CORE_PATH:
                return orjson.dumps(render.core_versions(directory))
            case _:
                return orjson.dumps(render.group_list(directory))


def forms_of(path: str) -> tuple[Form, ...]:
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
