"""The Swagger 2.0 document as input of the conversion, parsed or as bytes or text: its shared objects,
defaults and local references."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import field, replace
from hashlib import sha256
from re import sub
from typing import Any, Final, Literal, NamedTuple, TypeAlias, get_args
from urllib.parse import unquote

from orjson import Fragment

from specmux_converters.document import SWAGGER_VERSIONS, Document, Limits, canonical
from specmux_converters.errors import InvalidArgument, InvalidDocument, cut
from specmux_converters.from_swagger2.reading.component_names import ComponentNames, choose_names
from specmux_converters.from_swagger2.reading.fields import texts
from specmux_converters.from_swagger2.reading.trace import Trace
from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.losses import Loss, tokens_of, unescape
from specmux_converters.recognise import DocumentKind, recognise

Profile: TypeAlias = Literal["kubernetes", "oas"]
"""``kubernetes``: as an apiserver publishes and kubectl reads. ``oas``: all of Swagger 2.0."""

ANY_MEDIA_TYPE: Final = "*/*"
"""The media type of a body if neither the operation nor the document names one."""

FEW_MEDIA_TYPES: Final = 16
"""Copies of a schema that are not counted."""

_SHARED: Final = ("definitions", "parameters", "responses", "securityDefinitions")
_NOTHING: Final[Mapping[str, Any]] = {}


class SchemaRef(NamedTuple):
    """A reference to a component schema: its name, and the object to write for it (shared and read-only)."""

    component: str
    node: dict[str, Any]
    is_hoisted: bool = False


@dataclass(frozen=True, slots=True)
class SwaggerSource:
    """One Swagger 2.0 document. ``schemes``: the type of each security definition by name.

    The others are caches. ``schema_refs``: the v3 form of each reference. ``sizes``: the cost of expanding
    its target. ``fit_empty``: whether the target allows an empty object. ``written_out``: expanded parameters
    (JSON, name, location), what was recorded for them, and their cost. ``media_types``: lists that were
    checked. ``repeats``: results of equal texts. ``hoisted``: schemas referenced outside components
    (``#/paths/…``), which become components with a new name.
    """

    document: Document
    profile: Profile
    definitions: Mapping[str, Any]
    parameters: Mapping[str, Any]
    responses: Mapping[str, Any]
    schemes: Mapping[str, str] = field(default_factory=dict)
    names: ComponentNames = field(default_factory=ComponentNames)
    consumes: tuple[str, ...] = ()
    produces: tuple[str, ...] = ()
    schema_refs: dict[str, SchemaRef | None] = field(default_factory=dict)
    hoisted: dict[str, tuple[list[str], Any]] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    fit_empty: dict[str, bool] = field(default_factory=dict)
    written_out: dict[str, tuple[tuple[Fragment, str, str], Trace, int]] = field(default_factory=dict)
    media_types: dict[tuple[Any, ...], tuple[str, ...]] = field(default_factory=dict)
    repeats: dict[Hashable, tuple[Any, frozenset[str], int]] = field(default_factory=dict)

    def schema_ref(self, ref: str) -> SchemaRef | None:
        """None if ``ref`` points at nothing in this document."""
        try:
            return self.schema_refs[ref]
        except KeyError:
            found = self.schema_refs[ref] = self._find_schema(ref)
            return found

    def _find_schema(self, ref: str) -> SchemaRef | None:
        head, _, tail = ref.rpartition("/")
        if head == "#/definitions":
            name = unescape(tail)
            if name not in self.definitions:
                name = unescape(unquote(tail))
            if name in self.definitions:
                new = self.names.definitions.get(name)
                if new is not None:
                    name = tail = new
                return SchemaRef(f"schemas/{name}", {"$ref": f"#/components/schemas/{tail}"})
        tokens = tokens_of(ref)
        target = self.resolve(tokens)
        if not isinstance(target, dict) or not tokens:
            return None
        name = self._name_for(tokens)
        self.hoisted[name] = tokens, target
        return SchemaRef(f"schemas/{name}", {"$ref": f"#/components/schemas/{name}"}, is_hoisted=True)

    def _name_for(self, tokens: list[str]) -> str:
        kept = tokens[1:] if tokens[0] == "definitions" else tokens
        name = sub(r"[^A-Za-z0-9._-]+", "_", ".".join(kept)).strip("_")
        taken = self.hoisted.get(name)
        is_definition = name in self.definitions or name in self.names.definitions.values()
        if is_definition or (taken is not None and taken[0] != tokens):
            # The hash, not a counter: the name must not depend on the order of references.
            return f"{name}.{sha256('/'.join(tokens).encode()).hexdigest()[:12]}"
        return name

    def size_of(self, ref: str, target: Any) -> int:
        """The cost of expanding the target of ``ref``, in bytes of JSON."""
        size = self.sizes.get(ref)
        if size is None:
            size = self.sizes[ref] = len(canonical(target, *tokens_of(ref)))
        return size

    def content(self, offered: Sequence[str], media: dict[str, Any], trace: Trace) -> dict[str, Any]:
        """``media`` under each media type; under any if there is none."""
        if len(offered) > FEW_MEDIA_TYPES:
            trace.spend(len(offered) * len(canonical(media, *trace.path)))
        return dict.fromkeys(offered or (ANY_MEDIA_TYPE,), media)

    def media_types_at(self, node: Mapping[str, Any], key: str, trace: Trace) -> tuple[str, ...] | None:
        """A ``consumes`` or ``produces`` list; None if the key is absent, which differs from ``[]``."""
        value = node.get(key)
        if value is None:
            return None
        if not isinstance(value, list):
            trace.refuse("an array of media types is required", key)
        try:
            return self.media_types[tuple(value)]
        except (KeyError, TypeError):
            texts(node, key, trace)
            checked = self.media_types[tuple(value)] = tuple(dict.fromkeys(value))
            return checked

    def resolve(self, tokens: list[str]) -> Any:
        """The value at a path of the document; None if there is none."""
        node: Any = self.document
        for key in tokens:
            if isinstance(node, dict) and key in node:
                node = node[key]
            elif isinstance(node, list) and key.isascii() and key.isdigit() and int(key[:9]) < len(node):
                node = node[int(key)]
            else:
                return None
        return node


def read_source(document: Document, profile: Profile, trace: Trace) -> SwaggerSource:
    """Raises InvalidDocument if it is not Swagger 2.0, or a shared part has the wrong type."""
    if document.get("swagger") not in SWAGGER_VERSIONS:
        trace.refuse('not a Swagger 2.0 document: "swagger" is not "2.0"')
    definitions, parameters, responses, schemes = (object_at(document, key, trace) for key in _SHARED)
    source = SwaggerSource(
        document,
        profile,
        definitions,
        parameters,
        responses,
        {name: str(node.get("type")) if isinstance(node, dict) else "" for name, node in schemes.items()},
        choose_names(definitions, parameters, responses, schemes) if profile == "oas" else ComponentNames(),
    )
    consumes, produces = (
        source.media_types_at(document, key, trace) or () for key in ("consumes", "produces")
    )
    return replace(source, consumes=consumes, produces=produces)


def object_at(parent: Mapping[str, Any], key: str, trace: Trace) -> Mapping[str, Any]:
    """The object at ``key``; absent and null (Go prints a nil map as null) mean an empty one."""
    value = parent.get(key)
    if value is None:
        return _NOTHING
    if not isinstance(value, dict):
        trace.refuse("an object is required", key)
    return value


def parse_input(given: Any, *, limits: Limits) -> tuple[Document, tuple[Loss, ...]]:
    """The document, and the losses of parsing it. Raises InvalidArgument, InvalidDocument, LimitExceeded."""
    if isinstance(given, dict):
        return given, ()
    if isinstance(given, str):
        given = given.encode("utf-8", "surrogatepass")
    if not isinstance(given, bytes):
        kind = type(given).__name__
        raise InvalidArgument(f"a document is wanted, as a dict, bytes or text, not as {kind}")
    found = recognise(given, limits=limits)
    if found.kind is not DocumentKind.SWAGGER_2:
        raise InvalidDocument(f"{found.kind.value}, where Swagger 2.0 is wanted")
    return found.documents[0], found.losses


def check_profile(profile: Any) -> None:
    """Raises InvalidArgument for an unknown profile."""
    known = get_args(Profile)
    if profile not in known:
        raise InvalidArgument(f"profile {cut(repr(profile))} is not one of {', '.join(map(repr, known))}")
