"""The parts shared by all documents of custom resources in a cluster: the kinds of meta/v1, Scale, and the
query parameters of requests.

Their text differs between releases of Kubernetes, so they are extracted from a document published by the
cluster's own apiserver (``templates_of``), or those of a known release (``templates_for``),
by default the newest. ``templates.json`` has the newest release's, and merge patches (RFC 7386) to the older
ones; ``tests/converters/crd/record_templates.py`` writes it.

They are the API's own texts, word for word (kubernetes/apimachinery, Apache-2.0): a document without them
would differ from the one an apiserver serves. The texts of metadata stand in the builder's own code, the same
in every release (apiextensions-apiserver, pkg/controller/openapi/builder/builder.go).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, replace
from functools import lru_cache
from hashlib import sha256
from pkgutil import get_data
from typing import Any, Final

import orjson

from specmux_converters.document import Document, canonical
from specmux_converters.errors import ConverterError
from specmux_converters.json_values import array, mapping, objects
from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.operations import GROUP_VERSION_KIND
from specmux_converters.references import reachable
from specmux_converters.releases import (
    EMPTY_SELECTABLE_FIELDS,
    EXAMPLES,
    NEWEST,
    OLDEST,
    minor_release,
    nearest_minor,
    release_in,
)

PREFIX: Final = "io.k8s.apimachinery.pkg.apis.meta.v1."
DELETE_OPTIONS: Final = PREFIX + "DeleteOptions"
SCALE: Final = "io.k8s.api.autoscaling.v1.Scale"
CONVENTIONS: Final = "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md"

_DATA: Final = orjson.loads(get_data(__package__, "templates.json") or b"")

META_SCHEMAS: Final[Mapping[str, Document]] = _DATA["schemas"]
"""ObjectMeta, ListMeta and what they refer to, of the newest release."""

EMBEDDED_FIELDS: Final[Mapping[str, Any]] = {**_DATA["embedded_fields"], "metadata": _DATA["object_meta"]}
"""apiVersion, kind and metadata of an embedded object."""

MAX_BYTES: Final = 1024 * 1024
"""Most bytes of all templates as JSON; Kubernetes' own have 40 KB."""
_NOT_OF_CLIENTS: Final = frozenset(
    {"admission.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "imagepolicy.k8s.io"}
)
"""Groups that register DeleteOptions in an apiserver but not in client-go's scheme, from which the documents
of CRDs are made."""
_READ: Final = frozenset({"resourceVersion"})
_SHARED: Final = tuple(
    PREFIX + name for name in ("DeleteOptions", "ListMeta", "ObjectMeta", "Patch", "Status")
)
"""Components that documents of CRDs refer to directly; indirect ones are shared as well."""


def _data_of(minor: int) -> Document:
    """``templates.json`` as of a known minor release."""
    data: Document = _DATA
    for row in _DATA["older"]:
        if minor < row["until"]:
            data = _merge_patch(data, row["patch"])
    return data


def _merge_patch(value: Any, patch: Any) -> Any:
    if not (isinstance(value, dict) and isinstance(patch, dict)):
        return patch
    kept = {key: item for key, item in value.items() if key not in patch}
    return kept | {key: _merge_patch(value.get(key), each) for key, each in patch.items() if each is not None}


def reference(component: str) -> Document:
    return {"$ref": f"#/components/schemas/{component}"}


@dataclass(frozen=True, slots=True)
class Templates:
    """Templates, equal if their content is. Documents share them: treat them as read-only.

    ``parameters``: by the action of a request: list, get, write, patch, delete; and "pretty" for every path.
    """

    digest: bytes
    schemas: Mapping[str, Document] = field(repr=False, compare=False)
    scale: Mapping[str, Document] = field(repr=False, compare=False)
    parameters: Mapping[str, tuple[Document, ...]] = field(repr=False, compare=False)
    object_fields: Mapping[str, Any] = field(repr=False, compare=False)
    list_fields: Mapping[str, Any] = field(repr=False, compare=False)
    has_examples: bool = field(compare=False)
    """Whether ``example`` and ``externalDocs`` of a schema are published."""
    has_empty_fields: bool = field(compare=False)
    """Whether a version without selectable fields has an empty list."""
    release: str | None = field(default=None, compare=False)
    """"v1.34", if the document tells one."""
    keeps_definition: bool = field(default=False, compare=False)
    """Whether to keep what no apiserver publishes: ``x-kubernetes-unions``, and restrictions of names."""


def templates_of(document: Document) -> Templates | None:
    """The templates in a built-in document with a resource that has a scale: ``apis/apps/v1``.

    None if it lacks any of them, so that a document never mixes two releases.
    """
    schemas = mapping(mapping(document.get("components")).get("schemas"))
    parameters = _parameters(mapping(document.get("paths")))
    version = mapping(document.get("info")).get("version")
    try:
        made = None if parameters is None else _make_templates(schemas, parameters, nearest_minor(version))
    except ConverterError:
        return None
    return None if made is None else replace(made, release=release_in(version))


def _make_templates(
    schemas: Mapping[str, Any], parameters: Mapping[str, tuple[Document, ...]], minor: int
) -> Templates | None:
    """Raises InvalidDocument or LimitExceeded for values that are not JSON."""
    scale, shared = _closure(schemas, (SCALE,)), _closure(schemas, _SHARED)
    if scale is None or shared is None:
        return None
    shared[DELETE_OPTIONS] = _of_clients(shared[DELETE_OPTIONS], minor)
    scale = {name: scale[name] for name in scale.keys() - shared.keys()}
    status = mapping(mapping(shared.get(PREFIX + "Status")).get("properties"))
    type_meta: dict[str, Any] = {name: status[name] for name in ("apiVersion", "kind") if name in status}
    has_examples, has_empty_fields = EXAMPLES.is_in(minor), EMPTY_SELECTABLE_FIELDS.is_in(minor)
    text = canonical([shared, scale, parameters, has_examples, has_empty_fields])
    if len(text) > MAX_BYTES or len(type_meta) != 2:
        return None
    return Templates(
        digest=sha256(text).digest(),
        schemas=shared,
        scale=scale,
        parameters=parameters,
        object_fields={**type_meta, "metadata": _DATA["object_meta"]},
        list_fields={**type_meta, "metadata": _DATA["list_meta"]},
        has_examples=has_examples,
        has_empty_fields=has_empty_fields,
    )


def _closure(schemas: Mapping[str, Any], names: Iterable[str]) -> dict[str, Document] | None:
    """The components with everything that they refer to; None if one is missing."""
    wanted = reachable(schemas, names)
    found = {name: schema for name in wanted if isinstance(schema := schemas.get(name), dict)}
    return found if len(found) == len(wanted) else None


def _of_clients(options: Document, minor: int) -> Document:
    """DeleteOptions with the kinds that documents of CRDs list. Since Kubernetes 1.36 a built-in document
    lists only those of its own group, and no document has the others."""
    listed = objects(options.get(GROUP_VERSION_KIND))
    if len({str(kind.get("group")) for kind in listed}) <= 2:
        versions = sorted(each.split("/") for each in _data_of(minor)["options"])
        kept = [{"group": group, "kind": "DeleteOptions", "version": version} for group, version in versions]
    else:
        kept = [kind for kind in listed if kind.get("group") not in _NOT_OF_CLIENTS]
    return {**options, GROUP_VERSION_KIND: kept}


def _parameters(paths: Mapping[str, Any]) -> dict[str, tuple[Document, ...]] | None:
    """The parameters of the first resource that can be listed, created, patched and deleted; a custom one has
    the same."""
    for path, collection in sorted(paths.items()):
        one = mapping(paths.get(path + "/{name}"))
        listed, created = _query(collection, "get", "list"), _query(collection, "post", "post")
        patched, deleted = _query(one, "patch", "patch"), _query(one, "delete", "delete")
        # Reading a single object at a version is no longer documented for built-in kinds.
        read = tuple(item for item in listed or () if item["name"] in _READ)
        pretty = tuple(item for item in _query_of(mapping(collection)) if item["name"] == "pretty")
        if listed and created and patched and deleted and read and pretty:
            return {
                "list": listed,
                "get": read,
                "write": created,
                "patch": patched,
                "delete": deleted,
                "pretty": pretty,
            }
    return None


def _query(item: Any, method: str, action: str) -> tuple[Document, ...] | None:
    operation = mapping(mapping(item).get(method))
    return tuple(_query_of(operation)) if operation.get("x-kubernetes-action") == action else None


def _query_of(holder: Mapping[str, Any]) -> Iterator[Document]:
    for parameter in array(holder.get("parameters")):
        match parameter:
            case {"in": "query", "name": str()}:
                yield parameter


@lru_cache(maxsize=NEWEST - OLDEST + 1)
def templates_for(release: str | None = None) -> Templates:
    """The templates of a release ("1.34"), by default the newest. Raises UnknownRelease."""
    minor = minor_release(release)
    data = _data_of(minor)
    parameters = {
        action: tuple(listed[name] for name in sorted(listed))
        for action, listed in data["parameters"].items()
    }
    made = _make_templates(data["schemas"], parameters, minor)
    assert made is not None
    return made


BUNDLED: Final = templates_for()
"""The newest release's."""

AS_DEFINED: Final = replace(BUNDLED, digest=sha256(BUNDLED.digest).digest(), keeps_definition=True)
"""Templates of documents that are not served: readers of a definition see all of it."""
