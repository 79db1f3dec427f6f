"""One Swagger 2.0 document to the OpenAPI v3 documents of its group-versions, or to one for all of it.

Each definition and each path is converted once, and its dict is shared by every document that holds it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from specmux_converters.document import Document, canonical
from specmux_converters.errors import LimitExceeded
from specmux_converters.group_versions import GroupVersion, group_version_of
from specmux_converters.losses import Loss, Trace
from specmux_converters.swagger2.components import convert_definition
from specmux_converters.swagger2.document import convert_frame
from specmux_converters.swagger2.operations import convert_path_item
from specmux_converters.swagger2.security import convert_security_schemes
from specmux_converters.swagger2.source import Profile, escape, object_at, read_source


class ConversionMemo:
    """What earlier conversions made, so that an unchanged part is not converted again."""


@dataclass(frozen=True, slots=True)
class Conversion:
    """The documents by group-version. They share component dicts: read them, never write into them."""

    documents: Mapping[GroupVersion, Document]
    losses: tuple[Loss, ...]

    def json(self, group_version: GroupVersion) -> bytes:
        """``canonical(documents[group_version])``, joined from parts that were encoded once."""
        return canonical(self.documents[group_version])


@dataclass(frozen=True, slots=True)
class WholeConversion:
    """The one document that a whole Swagger 2.0 document becomes, unsplit and unpruned."""

    document: Document
    losses: tuple[Loss, ...]


@dataclass(frozen=True, slots=True)
class _Part:
    """One converted definition or path."""

    value: dict[str, Any]
    refs: frozenset[str]
    losses: tuple[Loss, ...]


@dataclass(frozen=True, slots=True)
class _Parts:
    frame: dict[str, Any]
    security_schemes: dict[str, Any]
    paths: Mapping[str, _Part]
    schemas: Mapping[str, _Part]
    losses: tuple[Loss, ...]


def convert(
    document: Document,
    *,
    profile: Profile = "kubernetes",
    owns: Callable[[GroupVersion], bool] | None = None,
    memo: ConversionMemo | None = None,
) -> Conversion:
    """The documents of all group-versions that ``owns`` accepts, each pruned to what its paths refer to.

    Raises InvalidDocument or LimitExceeded, and nothing else, whatever ``document`` holds.
    """
    parts = _convert_parts(document, profile)
    split: dict[GroupVersion, dict[str, _Part]] = {}
    losses = list(parts.losses)
    for path, part in parts.paths.items():
        key = group_version_of(path)
        if key is None:
            losses.append(Loss(f"/paths/{escape(path)}", "path", "belongs to no group-version"))
        elif owns is None or owns(key):
            split.setdefault(key, {})[path] = part
    documents = {
        key: _assemble(parts, paths, _closure(paths.values(), parts.schemas))
        for key, paths in sorted(split.items())
    }
    return Conversion(MappingProxyType(documents), tuple(sorted(losses)))


def convert_whole(document: Document, *, profile: Profile = "oas") -> WholeConversion:
    """All of ``document`` as one OpenAPI v3 document. Raises as ``convert`` does."""
    parts = _convert_parts(document, profile)
    return WholeConversion(_assemble(parts, parts.paths, parts.schemas), tuple(sorted(parts.losses)))


def _convert_parts(document: Document, profile: Profile) -> _Parts:
    trace = Trace()
    try:
        source = read_source(document, profile, trace)
        frame = convert_frame(source, trace)
        schemes = convert_security_schemes(source, trace)
        paths = {}
        for path, item in object_at(document, "paths", trace).items():
            if path.startswith("x-"):
                continue
            at = Trace(["paths", path])
            paths[path] = _part(convert_path_item(item, source, at), at)
        schemas = {}
        for name, node in source.definitions.items():
            at = Trace(["definitions", name])
            schemas[name] = _part(convert_definition(name, node, source, at), at)
    except RecursionError:
        raise LimitExceeded("nested too deeply") from None
    losses = [*trace.losses]
    for part in (*paths.values(), *schemas.values()):
        losses.extend(part.losses)
    return _Parts(frame, schemes, paths, schemas, tuple(losses))


def _part(value: dict[str, Any], trace: Trace) -> _Part:
    return _Part(value, frozenset(trace.refs), tuple(trace.losses))


def _closure(roots: Iterable[_Part], schemas: Mapping[str, _Part]) -> dict[str, _Part]:
    by_ref = {f"#/components/schemas/{escape(name)}": name for name in schemas}
    found: dict[str, _Part] = {}
    waiting = [ref for part in roots for ref in part.refs]
    while waiting:
        name = by_ref[waiting.pop()]
        if name not in found:
            found[name] = schemas[name]
            waiting.extend(schemas[name].refs)
    return found


def _assemble(parts: _Parts, paths: Mapping[str, _Part], schemas: Mapping[str, _Part]) -> Document:
    document = {**parts.frame, "paths": {path: part.value for path, part in paths.items()}}
    components: dict[str, Any] = {}
    if schemas:
        components["schemas"] = {name: part.value for name, part in schemas.items()}
    if parts.security_schemes:
        components["securitySchemes"] = parts.security_schemes
    if components:
        document["components"] = components
    return document
