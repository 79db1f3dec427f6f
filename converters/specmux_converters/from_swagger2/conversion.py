"""Convert a Swagger 2.0 document to the OpenAPI v3 documents of its group-versions, or to a single one.

Each path and component is converted once, into a Part shared by all documents. A document is then a join: of
dicts for ``documents``, of encoded bytes for ``json``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from types import MappingProxyType
from typing import Any, Final

import orjson

from specmux_converters.document import DEFAULT_LIMITS, Document, Limits, canonical
from specmux_converters.errors import LimitExceeded
from specmux_converters.from_swagger2.context import Context
from specmux_converters.from_swagger2.paths.operations import with_unique_ids
from specmux_converters.from_swagger2.paths.path_templates import note_equal_templates, plain_templates
from specmux_converters.from_swagger2.paths.security import convert_requirements, convert_security_schemes
from specmux_converters.from_swagger2.paths.servers import convert_servers
from specmux_converters.from_swagger2.reading.fields import (
    ARRAY,
    NO_OTHERS,
    NUMBER,
    OBJECT,
    TEXT,
    identity,
    is_present,
    keep_fields,
)
from specmux_converters.from_swagger2.reading.source import (
    Profile,
    SwaggerSource,
    check_profile,
    object_at,
    parse_input,
    read_source,
)
from specmux_converters.from_swagger2.reading.trace import OutputBudget, Trace
from specmux_converters.group_versions import GroupVersion, group_version_of
from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.losses import Loss
from specmux_converters.outlines import ENTRY_COST, DocumentPart, Documents, Outline

VERSION: Final = {"kubernetes": "3.0.0", "oas": "3.0.3"}

_MOVED: Final = frozenset(
    {
        "swagger", "info", "host", "basePath", "schemes", "consumes", "produces", "paths", "definitions",
        "parameters", "responses", "securityDefinitions", "security",
    }
)  # fmt: skip
_COPIED: Final = {"tags": ARRAY, "externalDocs": OBJECT}
_TAG: Final = {"name": TEXT, "description": TEXT, "externalDocs": OBJECT}
_INFO: Final = {
    **dict.fromkeys(("title", "version", "description", "termsOfService"), TEXT),
    "contact": OBJECT,
    "license": OBJECT,
}


def convert_frame(source: SwaggerSource, trace: Trace) -> dict[str, Any]:
    """A v3 document without ``paths`` and ``components``."""
    document = source.document
    result = {
        "openapi": VERSION[source.profile],
        "info": _info(document, trace),
        **keep_fields(document, _COPIED, _MOVED, trace),
    }
    if "tags" in result:
        result["tags"] = _tags(result["tags"], trace)
    security = document.get("security")
    if security is not None and is_present("security", security, ARRAY, trace):
        requirements = convert_requirements(security, source, trace)
        if source.profile == "kubernetes":
            trace.note("security", "Kubernetes publishes the schemes, not the requirement", "security")
        else:
            result["security"] = requirements
    result.update(convert_servers(source, trace))
    return result


def _info(document: Document, trace: Trace) -> dict[str, Any]:
    node = object_at(document, "info", trace)
    place = ["info"] if "info" in document else []
    trace.path += place
    version = node.get("version")
    if version.__class__ in NUMBER:
        trace.note("number", "a version is a string, and YAML made a number of it; written as one", "version")
        node = {**node, "version": canonical(version).decode()}
    result = keep_fields(node, _INFO, NO_OTHERS, trace)
    for key in ("title", "version"):
        if key not in result:
            trace.note(f"info without {key}", "OpenAPI 3.0 requires one; an empty one is added")
            result[key] = ""
    del trace.path[len(trace.path) - len(place) :]
    return result


def _tags(nodes: list[Any], trace: Trace) -> list[dict[str, Any]]:
    """The tags, of equal names only the first."""
    result: dict[str, dict[str, Any]] = {}
    for index, node in enumerate(nodes):
        if not isinstance(node, dict) or not isinstance(node.get("name"), str):
            trace.refuse("a tag object with a name is required", "tags", index)
        tag = keep_fields(node, _TAG, NO_OTHERS, trace.at(["tags", index]))
        first = result.setdefault(tag["name"], tag)
        if first is tag:
            continue
        if identity(first) == identity(tag):
            trace.note("repeated value", "is there already, and counts once; left out", "tags", index)
        else:
            trace.lose("tag", "another one has its name; left out", "tags", index)
    return list(result.values())


@dataclass(frozen=True, slots=True)
class Conversion:
    """The documents by group-version.

    They share the dicts of components with each other: treat them as read-only.
    """

    outlines: Mapping[GroupVersion, Outline] = field(repr=False)
    documents: Mapping[GroupVersion, Document] = field(repr=False, compare=False)
    losses: tuple[Loss, ...]

    def json(self, group_version: GroupVersion) -> bytes:
        """``canonical(documents[group_version])``, joined from parts that are encoded once."""
        return self.outlines[group_version].json()


@dataclass(frozen=True, slots=True)
class WholeConversion:
    """A whole Swagger 2.0 document as one OpenAPI v3 document, unsplit and unpruned."""

    document: Document
    losses: tuple[Loss, ...]


def convert(
    document: Document | bytes | str,
    *,
    profile: Profile = "kubernetes",
    owns: Callable[[GroupVersion], bool] | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> Conversion:
    """The documents of all group-versions that ``owns`` accepts, each pruned to what its paths refer to.

    ``document``: Swagger 2.0, parsed or as bytes or text of JSON or YAML (or bytes of Protobuf). Other
    group-versions are not examined, so neither their errors nor their losses are reported. The result shares
    nothing with ``document``. Raises InvalidDocument, LimitExceeded, or InvalidArgument for an unknown
    profile.
    """
    with _bounded_depth():
        draft = _begin(document, profile, limits)
        chosen: dict[GroupVersion, list[str]] = {}
        for path in draft.paths:
            key = group_version_of(path)
            if key is None:
                draft.trace.lose("path", "belongs to no group-version; left out", "paths", path)
            elif owns is None or owns(key):
                chosen.setdefault(key, []).append(path)
        split = {key: draft.make_parts(paths) for key, paths in chosen.items()}
        outlines = {}
        for key, paths in sorted(split.items()):
            needed = draft.context.list_needed(set[str]().union(*(part.refs for part in paths.values())))
            outlines[key] = draft.outline(paths, needed)
        losses = draft.losses(part for paths in split.values() for part in paths.values())
    return Conversion(MappingProxyType(outlines), Documents(outlines), losses)


def convert_whole(
    document: Document | bytes | str, *, profile: Profile = "oas", limits: Limits = DEFAULT_LIMITS
) -> WholeConversion:
    """All of ``document`` as one OpenAPI v3 document. Raises as ``convert`` does."""
    with _bounded_depth():
        draft = _begin(document, profile, limits)
        others = [path for path in draft.paths if not path.startswith("/")]
        paths = draft.make_parts([path for path in draft.paths if path.startswith("/")])
        names = draft.context.shared_names(draft.trace).union(*(part.refs for part in paths.values()))
        whole = draft.outline(paths, draft.context.list_needed(names)).document()
        for key in others:
            if key.startswith("x-"):
                whole["paths"][key] = draft.paths[key]
            else:
                draft.trace.lose("path", "a path begins with a slash; left out", "paths", key)
        losses = draft.losses(paths.values())
    return WholeConversion(whole, losses)


@dataclass(frozen=True, slots=True)
class _Draft:
    """The state that all documents of one conversion share; makes their parts."""

    frame: Document
    paths: Mapping[str, Any]
    templates: Mapping[str, str]
    """The keys of ``paths`` that v3 writes differently."""
    context: Context
    trace: Trace

    def make_parts(self, chosen: Iterable[str]) -> dict[str, DocumentPart]:
        """The parts of one document's paths, by path in v3."""
        nodes: dict[str, tuple[str, Any]] = {}
        for written in chosen:
            path = self.templates.get(written, written)
            if path in nodes:
                reason = "another path differs from it in its expressions only; left out"
                self.trace.lose("path", reason, "paths", written)
            else:
                nodes[path] = written, self.paths[written]
        parts = {path: self.context.path(path, *node) for path, node in nodes.items()}
        return with_unique_ids(parts, nodes, self.trace.budget)

    def outline(self, paths: Mapping[str, DocumentPart], names: Sequence[str]) -> Outline:
        """The document of these paths and components."""
        made = self.context.components
        components: dict[str, dict[str, DocumentPart]] = {}
        size = sum([len(part.json) for part in paths.values()])
        for name in names:
            kind, _, key = name.partition("/")
            part = made[name]
            components.setdefault(kind, {})[key] = part
            size += len(part.json) + ENTRY_COST
        self.trace.spend(size)
        return Outline(self.frame, dict(sorted(paths.items())), components)

    def losses(self, paths: Iterable[DocumentPart]) -> tuple[Loss, ...]:
        """All losses, each once: a shared object is converted at every place where it is expanded."""
        found = dict.fromkeys(self.trace.losses)
        for part in (*paths, *self.context.components.values()):
            if part.losses:
                found.update(dict.fromkeys(part.losses))
        return tuple(sorted(found))  # nearly sorted already, which a set would lose


def _begin(given: Document | bytes | str, profile: Profile, limits: Limits) -> _Draft:
    check_profile(profile)
    document, losses = parse_input(given, limits=limits)
    trace = Trace([], [*losses], set(), [], OutputBudget.of(document, limits))
    source = read_source(document, profile, trace)
    frame = convert_frame(source, trace)
    schemes = convert_security_schemes(source, trace)
    if schemes:
        frame["components"] = {"securitySchemes": schemes}
    paths = object_at(document, "paths", trace)
    templates = plain_templates(paths, source)
    note_equal_templates(paths, trace)
    if templates:  # deterministic for any key order, if several become one path
        paths = dict(sorted(paths.items(), key=lambda item: (item[0] in templates, item[0])))
    return _Draft(
        frame=orjson.loads(canonical(frame)),
        paths=paths,
        templates=templates,
        context=Context(source, trace.budget),
        trace=trace,
    )


@contextmanager
def _bounded_depth() -> Iterator[None]:
    """``parse`` bounds the depth of its result; a document from elsewhere may be deeper."""
    try:
        yield
    except RecursionError:
        raise LimitExceeded("nested too deeply") from None
