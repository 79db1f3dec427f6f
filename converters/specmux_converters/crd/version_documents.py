"""An Edition is one served version of a CRD, built: its schemas and paths, each as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Set
from hashlib import sha256
from typing import Any, Final

import orjson

from specmux_converters.crd.manifest import CRD, Problem, Version
from specmux_converters.crd.structural import publish_schema
from specmux_converters.crd.templates import BUNDLED, CONVENTIONS, PREFIX, SCALE, Templates, reference
from specmux_converters.document import Document
from specmux_converters.errors import InvalidDocument, LimitExceeded
from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.losses import pointer_to
from specmux_converters.outlines import ENTRY_COST, DocumentPart, parts_of

# They equal those of the apiserver's installer (apiextensions-apiserver,
# pkg/controller/openapi/builder/builder.go; apiserver, pkg/endpoints/openapi/openapi.go).

_WRITTEN: Final = ("application/json", "application/yaml")
_PATCHES: Final = (
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/apply-patch+yaml",
)
_MESSAGES: Final = {"200": "OK", "201": "Created", "202": "Accepted"}
_STATUS: Final = PREFIX + "Status"


@dataclass(frozen=True, slots=True)
class _Request:
    """``action``: its name in the API; ``verb``: the beginning of its operationId and description;
    ``parameters``: its key in the templates."""

    method: str
    action: str
    verb: str
    parameters: str
    statuses: tuple[str, ...] = ("200",)


_LISTING: Final = _Request("get", "list", "list", "list")
_COLLECTION: Final = (
    _LISTING,
    _Request("post", "post", "create", "write", ("200", "201", "202")),
    _Request("delete", "deletecollection", "deletecollection", "list"),
)
_SUBRESOURCE: Final = (
    _Request("get", "get", "read", "get"),
    _Request("put", "put", "replace", "write", ("200", "201")),
    _Request("patch", "patch", "patch", "patch"),
)
_OBJECT: Final = (*_SUBRESOURCE, _Request("delete", "delete", "delete", "delete", ("200", "202")))


def component_name(crd: CRD, version: Version, kind: str) -> str:
    """``com.example.v1.Widget``: kube-openapi, pkg/util, ToRESTFriendlyName."""
    return ".".join([*reversed(crd.group.split(".")), version.name, kind])


def paths_of(crd: CRD, version: Version, templates: Templates = BUNDLED) -> dict[str, Document]:
    """The path items of a version by their paths."""
    resource = _Resource(crd, version, templates)
    root = f"/apis/{crd.group}/{version.name}/"
    paths: dict[str, Document] = {}
    if crd.is_namespaced:
        paths[root + crd.plural] = resource.all_namespaces()
        root += "namespaces/{namespace}/"
    collection = root + crd.plural
    paths[collection] = resource.path_item(_COLLECTION)
    paths[collection + "/{name}"] = resource.path_item(_OBJECT, has_name=True)
    if version.has_status:
        paths[collection + "/{name}/status"] = resource.path_item(_SUBRESOURCE, has_name=True, sub="status")
    if version.has_scale:
        paths[collection + "/{name}/scale"] = resource.path_item(_SUBRESOURCE, has_name=True, sub="scale")
    return paths


class _Resource:
    def __init__(self, crd: CRD, version: Version, templates: Templates) -> None:
        self._parameters = templates.parameters
        self._kind = crd.kind
        self._is_namespaced = crd.is_namespaced
        self._object = component_name(crd, version, crd.kind)
        self._list = component_name(crd, version, crd.list_kind)
        group = crd.group.removesuffix(".k8s.io")
        self._id_infix = _identifier(group, capital=True) + _identifier(version.name, capital=True)
        self._tag = f"{_identifier(group)}_{_identifier(version.name)}"
        self._group_version_kind = {"group": crd.group, "version": version.name, "kind": crd.kind}

    def all_namespaces(self) -> Document:
        """A list of all namespaces' objects; the parameters of its single operation belong to the path."""
        operation = self._operation(_LISTING, "", f"list{self._kind}ForAllNamespaces")
        parameters = [*operation.pop("parameters"), *self._parameters["pretty"]]
        return {"get": operation, "parameters": _sort_parameters(parameters)}

    def path_item(self, requests: tuple[_Request, ...], *, has_name: bool = False, sub: str = "") -> Document:
        infix = "Namespaced" if self._is_namespaced else ""
        item: Document = {
            request.method: self._operation(request, sub, request.verb + infix + self._kind + sub.title())
            for request in requests
        }
        common = [*self._parameters["pretty"]]
        if has_name:
            common.append(_path_parameter("name", f"name of the {self._kind}"))
        if self._is_namespaced:
            common.append(
                _path_parameter("namespace", "object name and auth scope, such as for teams and projects")
            )
        item["parameters"] = _sort_parameters(common)
        return item

    def _operation(self, request: _Request, sub: str, name: str) -> Document:
        operation: Document = {
            "tags": [self._tag],
            "description": self._description(request.verb, sub),
            "operationId": self._operation_id(name),
            "parameters": [*self._parameters[request.parameters]],
            "responses": self._responses(request, sub),
            "x-kubernetes-action": request.action,
            "x-kubernetes-group-version-kind": self._group_version_kind,
        }
        body = self._body(request, sub)
        if body is not None:
            operation["requestBody"] = body
        return operation

    def _operation_id(self, name: str) -> str:
        """Group and version follow the verb, which is "delete" for deletecollection."""
        verb = next(verb for verb in _VERBS if name.startswith(verb))
        return verb + self._id_infix + _identifier(name.removeprefix(verb), capital=True)

    def _description(self, verb: str, sub: str) -> str:
        of = f" {sub} of" if sub else ""
        match verb:
            case "list":
                return f"list{of} objects of kind {self._kind}"
            case "read" | "replace":
                return f"{verb}{of} the specified {self._kind}"
            case "patch":
                return f"partially update{of} the specified {self._kind}"
            case "deletecollection":
                return f"delete collection of {self._kind}"
            case _:
                return f"{verb}{_article(self._kind)}{self._kind}"

    def _answer(self, request: _Request, sub: str) -> str:
        match request.action:
            case "list":
                return self._list
            case "delete" | "deletecollection":
                return _STATUS
            case _:
                return SCALE if sub == "scale" else self._object

    def _responses(self, request: _Request, sub: str) -> Document:
        content = _content(_WRITTEN, self._answer(request, sub))
        responses: Document = {
            status: {"description": _MESSAGES[status], "content": content} for status in request.statuses
        }
        responses["401"] = {"description": "Unauthorized"}
        return responses

    def _body(self, request: _Request, sub: str) -> Document | None:
        match request.action:
            case "patch":
                return {"content": _content(_PATCHES, PREFIX + "Patch"), "required": True}
            case "post" | "put":
                return {"content": _content(_WRITTEN, self._answer(request, sub)), "required": True}
            case "delete":
                return {"content": _content(_WRITTEN, PREFIX + "DeleteOptions")}
            case _:
                return None


_VERBS: Final = ("list", "create", "delete", "read", "replace", "patch")


def _article(kind: str) -> str:
    """The article before a kind, with spaces; a plural has none (apiserver, GetArticleForNoun)."""
    if kind.endswith("s") and not kind.endswith("ss"):
        return " "
    return " an " if kind[0] in "aeiouAEIOU" else " a "


def _identifier(text: str, *, capital: bool = False) -> str:
    """Camel case of the words between characters that identifiers cannot contain; no leading digit."""
    parts: list[str] = []
    for index, character in enumerate(text):
        if character.isalpha() or character == "_" or (index > 0 and character.isdigit()):
            parts.append(character.upper() if capital else character)
            capital = False
        else:
            capital = True
    return "".join(parts)


def _content(media_types: tuple[str, ...], component: str) -> Mapping[str, Any]:
    schema = reference(component)
    return {media_type: {"schema": schema} for media_type in media_types}


def _path_parameter(name: str, description: str) -> Document:
    return {
        "name": name,
        "in": "path",
        "description": description,
        "required": True,
        "schema": {"type": "string", "uniqueItems": True},
    }


def _sort_parameters(parameters: list[Document]) -> list[Document]:
    return sorted(parameters, key=lambda parameter: str(parameter["name"]))


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


class CRDMemo(dict[tuple[str, str], Edition]):
    """The editions of the last builds by the names of CRD and version, so that unchanged ones are not built
    again.

    Owned by the caller, for one set of manifests and one thread at a time. It keeps only the editions of the
    current set.
    """

    def keep(self, names: Set[tuple[str, str]]) -> None:
        """Drop all others."""
        for name in self.keys() - names:
            del self[name]


def make_edition(crd: CRD, version: Version, memo: CRDMemo, templates: Templates = BUNDLED) -> Edition:
    """The cached edition if its content is unchanged. A schema that is not structural becomes a Problem.

    Raises InvalidDocument or LimitExceeded for a version that cannot be published.
    """
    digest = _digest(_identity(crd, version, templates), version)
    edition = memo.get((crd.name, version.name))
    if edition is None or edition.digest != digest:
        edition = memo[crd.name, version.name] = _build(crd, version, templates, digest)
    return edition


def _build(crd: CRD, version: Version, templates: Templates, digest: bytes) -> Edition:
    schema, problems = _schema(crd, version, templates)
    made = {
        component_name(crd, version, crd.kind): schema,
        component_name(crd, version, crd.list_kind): _list_schema(crd, version, templates),
    }
    schemas = parts_of(made, *version.schema_path)
    paths = parts_of(paths_of(crd, version, templates), *version.schema_path)
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
