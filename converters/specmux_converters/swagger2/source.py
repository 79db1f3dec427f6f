"""The Swagger 2.0 document as the conversion reads it: its shared objects, defaults and local references."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from specmux_converters.document import Document
from specmux_converters.losses import Trace

Profile: TypeAlias = Literal["kubernetes", "oas"]
"""``kubernetes``: what an apiserver publishes and kubectl reads. ``oas``: all of Swagger 2.0."""

ANY_MEDIA_TYPE: Final = "*/*"
"""What a body is when neither the operation nor the document names a media type."""

NO_OBJECT: Final[Mapping[str, Any]] = {}


@dataclass(frozen=True, slots=True)
class Source:
    """One Swagger 2.0 document. ``schema_refs`` remembers the v3 form of each reference to a definition."""

    document: Document
    profile: Profile
    definitions: Mapping[str, Any]
    parameters: Mapping[str, Any]
    responses: Mapping[str, Any]
    consumes: tuple[str, ...]
    produces: tuple[str, ...]
    schema_refs: dict[str, str | None] = field(default_factory=dict)

    def schema_ref(self, ref: str) -> str | None:
        """The v3 reference for a ``#/definitions/…`` reference, None when there is no such definition."""
        try:
            return self.schema_refs[ref]
        except KeyError:
            found = self.schema_refs[ref] = self._schema_ref(ref)
            return found

    def _schema_ref(self, ref: str) -> str | None:
        name = unescape(ref.removeprefix("#/definitions/"))
        return f"#/components/schemas/{escape(name)}" if name in self.definitions else None

    def resolve(self, ref: str) -> Any:
        """What a local reference (``#/a/b``) points at, None when nothing is there."""
        node: Any = self.document
        for token in ref.removeprefix("#").split("/")[1:]:
            key = unescape(token)
            if isinstance(node, dict) and key in node:
                node = node[key]
            elif isinstance(node, list) and key.isascii() and key.isdigit() and int(key) < len(node):
                node = node[int(key)]
            else:
                return None
        return node


def read_source(document: Document, profile: Profile, trace: Trace) -> Source:
    """Raises InvalidDocument when the document is no Swagger 2.0, or a shared part has the wrong type."""
    if document.get("swagger") != "2.0":
        trace.refuse('not a Swagger 2.0 document: "swagger" is not "2.0"')
    return Source(
        document=document,
        profile=profile,
        definitions=object_at(document, "definitions", trace),
        parameters=object_at(document, "parameters", trace),
        responses=object_at(document, "responses", trace),
        consumes=media_types(document.get("consumes"), "consumes", trace) or (),
        produces=media_types(document.get("produces"), "produces", trace) or (),
    )


def object_at(parent: Mapping[str, Any], key: str, trace: Trace) -> Mapping[str, Any]:
    """The object at ``key``; absent and null (Go prints nil maps so) are the empty one."""
    value = parent.get(key)
    if value is None:
        return NO_OBJECT
    if not isinstance(value, dict):
        trace.refuse("an object is required", key)
    return value


def media_types(value: Any, key: str, trace: Trace) -> tuple[str, ...] | None:
    """A ``consumes`` or ``produces`` list, None when the key is absent: ``[]`` is not the same."""
    if value is None:
        return None
    if not isinstance(value, list):
        trace.refuse("an array of media types is required", key)
    for index, item in enumerate(value):
        if not isinstance(item, str):
            trace.refuse("a media type is required", key, index)
    return tuple(dict.fromkeys(value))


def escape(name: str) -> str:
    """A key as a token of a reference (RFC 6901; the key itself stays raw)."""
    return name.replace("~", "~0").replace("/", "~1")


def unescape(token: str) -> str:
    return token.replace("~1", "/").replace("~0", "~") if "~" in token else token
