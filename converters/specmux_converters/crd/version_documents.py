"""An Edition is one served version of a CRD, built: its schemas and paths, each as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Set
from hashlib import sha256
from typing import Any, Final

import orjson

from specmux_converters.crd.bundled import CONVENTIONS, reference
from specmux_converters.crd.manifest import CRD, Version
from specmux_converters.crd.paths import component_name, paths_of
from specmux_converters.crd.problems import Problem
from specmux_converters.crd.structural import publish_schema
from specmux_converters.crd.templates import BUNDLED, Templates
from specmux_converters.document import Document
from specmux_converters.errors import InvalidDocument, LimitExceeded
from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.losses import pointer_to
from specmux_converters.outlines import ENTRY_COST, DocumentPart

SCHEMA_MAX_BYTES: Final = 4 * 1024 * 1024
"""JSON of one version's schema. An apiserver accepts requests of 3 MiB, so no larger one was ever served."""


_NOT_JSON: Final = "not JSON, or nested too deeply"


@dataclass(frozen=True, slots=True)
class Edition:
    """``digest``: of all inputs, which are not kept. ``cost``: its bytes in a document."""

    digest: bytes
    paths: Mapping[str, DocumentPart]
    schemas: Mapping[str, DocumentPart]
    has_scale: bool
    problems: tuple[Problem, ...]
    cost: int


class CRDMemo:
    """The editions of the last builds, so that unchanged ones are not built again.

    Owned by the caller, for one set of manifests and one thread at a time. It keeps only the editions of the
    current set.
    """

    def __init__(self) -> None:
        self._editions: dict[tuple[str, str], Edition] = {}

    def __len__(self) -> int:
        return len(self._editions)

    def get(self, crd: CRD, version: Version) -> Edition | None:
        return self._editions.get((crd.name, version.name))

    def put(self, crd: CRD, version: Version, edition: Edition) -> None:
        self._editions[crd.name, version.name] = edition

    def keep(self, names: Set[tuple[str, str]]) -> None:
        """Drop all others; a name consists of those of a CRD and a version."""
        for name in self._editions.keys() - names:
            del self._editions[name]


def make_edition(crd: CRD, version: Version, memo: CRDMemo, templates: Templates = BUNDLED) -> Edition:
    """The cached edition if its content is unchanged. A schema that is not structural becomes a Problem.

    Raises InvalidDocument or LimitExceeded for a version that cannot be published.
    """
    digest = _digest(_identity(crd, version, templates), version)
    edition = memo.get(crd, version)
    if edition is None or edition.digest != digest:
        edition = _build(crd, version, templates, digest)
        memo.put(crd, version, edition)
    return edition


def _build(crd: CRD, version: Version, templates: Templates, digest: bytes) -> Edition:
    schema, problems = _schema(crd, version, templates)
    pointer = pointer_to(*version.schema_path)
    schemas = {
        component_name(crd, version, crd.kind): _part(schema, pointer),
        component_name(crd, version, crd.list_kind): _part(_list_schema(crd, version, templates), pointer),
    }
    paths = {path: _part(item, pointer) for path, item in paths_of(crd, version, templates).items()}
    cost = sum([len(part.json) + ENTRY_COST for part in (*schemas.values(), *paths.values())])
    return Edition(digest, paths, schemas, version.has_scale, problems, cost)


def _identity(crd: CRD, version: Version, templates: Templates) -> tuple[object, ...]:
    return (
        templates.digest.hex(),
        (crd.group, crd.kind, crd.list_kind, crd.plural, crd.is_namespaced),
        (version.name, version.has_status, version.has_scale, version.selectable_fields, version.schema_path),
    )


def _digest(identity: tuple[object, ...], version: Version) -> bytes:
    """Distinguishes 1 from true, which are equal in Python."""
    pointer = pointer_to(*version.schema_path)
    try:
        head, schema = orjson.dumps(identity), orjson.dumps(version.schema)
    except orjson.JSONEncodeError as error:
        raise InvalidDocument(_NOT_JSON, pointer=pointer) from error
    if len(schema) > SCHEMA_MAX_BYTES:
        raise LimitExceeded(f"a schema of {len(schema)} bytes, which no apiserver takes", pointer=pointer)
    return sha256(head + schema).digest()


def _schema(crd: CRD, version: Version, templates: Templates) -> tuple[Document, tuple[Problem, ...]]:
    """Any object, if there is no structural schema: with apiVersion and kind, kubectl would refuse all other
    fields (builder.go, buildKubeNative)."""
    problems: tuple[Problem, ...] = ()
    schema: Document = {"type": "object"}
    try:
        if version.schema is None:
            raise InvalidDocument("none, so any object is accepted", pointer=pointer_to(*version.schema_path))
        schema = publish_schema(version.schema, *version.schema_path, templates=templates)
    except InvalidDocument as fault:
        problems = (Problem(crd.name, fault.pointer, "schema", fault.reason),)
    except RecursionError:
        problems = (Problem(crd.name, pointer_to(*version.schema_path), "schema", "nested too deeply"),)
    return {**schema, **_extensions(crd, version, crd.kind, templates)}, problems


def _list_schema(crd: CRD, version: Version, templates: Templates) -> Document:
    items = {
        "description": f"List of {crd.plural}. More info: {CONVENTIONS}",
        "type": "array",
        "items": reference(component_name(crd, version, crd.kind)),
    }
    return {
        "description": f"{crd.list_kind} is a list of {crd.kind}",
        "type": "object",
        "required": ["items"],
        "properties": {**templates.list_fields, "items": items},
        **_extensions(crd, version, crd.list_kind, templates),
    }


def _extensions(crd: CRD, version: Version, kind: str, templates: Templates) -> Document:
    extensions: Document = {
        "x-kubernetes-group-version-kind": [{"group": crd.group, "version": version.name, "kind": kind}]
    }
    if version.selectable_fields or templates.has_empty_fields:
        fields = [{"fieldPath": path} for path in version.selectable_fields]
        extensions["x-kubernetes-selectable-fields"] = fields
    return extensions


def _part(value: Document, pointer: str) -> DocumentPart:
    return DocumentPart(_encode(value, pointer), frozenset(), ())


def _encode(value: Any, pointer: str) -> bytes:
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except orjson.JSONEncodeError as error:
        raise InvalidDocument(_NOT_JSON, pointer=pointer) from error
