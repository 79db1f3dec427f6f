"""Convert OpenAPI v3 documents to one Swagger 2.0 document, from pieces made once per document."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field
from functools import lru_cache
from typing import Any, Final, TypeAlias
from urllib.parse import urlsplit

import orjson

from specmux_converters.document import DEFAULT_LIMITS, Document, Limits, canonical
from specmux_converters.errors import InvalidDocument, LimitExceeded, cut
from specmux_converters.from_swagger2.paths.security import FLOWS
from specmux_converters.from_swagger2.reading.source import Profile, check_profile
from specmux_converters.from_swagger2.reading.trace import OutputBudget, Trace
from specmux_converters.json_values import array, mapping, within
from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.losses import Loss, pointer_to
from specmux_converters.operations import GROUP_VERSION_KIND
from specmux_converters.references import METHODS
from specmux_converters.to_swagger2.operations import convert_path_item
from specmux_converters.to_swagger2.schemas import custom_schema, publish_schema, valid_schema
from specmux_converters.to_swagger2.source import OpenAPISource, list_of, lose_others

_ORDER: Final = (
    "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum", "maxLength", "minLength", "pattern",
    "maxItems", "minItems", "uniqueItems", "multipleOf", "enum", "type", "nullable", "format", "items",
    "collectionFormat", "default", "example", "description", "name", "in", "required", "schema",
    "allowEmptyValue",
)  # fmt: skip
"""Fields in Go's order: the name contains a hash of that text."""

_UNSHARED: Final = frozenset(
    {("query", "name"), ("path", "name"), ("query", "fieldValidation"), ("query", "dryRun")}
)
"""kubectl looks for the last two in the operation itself; a name's description contains the kind."""
_GENERIC: Final = "#/definitions/io.k8s.apimachinery"
_FNV_OFFSET: Final = 14695981039346656037
_FNV_PRIME: Final = 1099511628211


Known: TypeAlias = dict[int, tuple[str | None, Document]]
"""Name of a shared parameter by identity, since equal ones are mostly the same object; None: not shared.
Keeps the object, so that its id stays unique."""


def share_parameters(paths: Iterable[Document], known: Known | None = None) -> Document:
    """The shared parameters of these paths, which are changed to refer to them. ``known``: of earlier
    paths."""
    known = {} if known is None else known
    shared: Document = {}
    for parameters in (each for item in paths for each in _lists(item)):
        for index, parameter in enumerate(parameters):
            found = known.get(id(parameter))
            if found is None:
                shown = f"{parameter['name']}-{_hash(_text(parameter))}" if _is_shared(parameter) else None
                found = known[id(parameter)] = shown, parameter
            name = found[0]
            if name is not None:
                shared.setdefault(name, parameter)
                parameters[index] = {"$ref": f"#/parameters/{name}"}
    return dict(sorted(shared.items()))


def _lists(item: Document) -> Iterator[list[Any]]:
    for holder in (item, *(item[method] for method in METHODS if method in item)):
        parameters = holder.get("parameters")
        if parameters:
            yield parameters


def _is_shared(parameter: Document) -> bool:
    if "$ref" in parameter or (parameter["in"], parameter["name"]) in _UNSHARED:
        return False
    is_body = parameter["in"] == "body" and parameter["name"] == "body"
    return not is_body or str(parameter["schema"].get("$ref", "")).startswith(_GENERIC)


def _text(parameter: Document) -> bytes:
    known = {key: parameter[key] for key in _ORDER if key in parameter}
    return orjson.dumps({**known, **dict(sorted(parameter.items()))})


@lru_cache(maxsize=1024)
def _hash(text: bytes) -> str:
    """Six bytes of FNV-1, in base64."""
    value = _FNV_OFFSET
    for byte in text:
        value = (value * _FNV_PRIME) & 0xFFFFFFFFFFFFFFFF ^ byte
    return urlsafe_b64encode(value.to_bytes(8, "big")[:6]).decode()


_OF_SCHEME: Final = ("type", "description", "name", "in", "scheme", "flows", "bearerFormat")


def convert_schemes(source: OpenAPISource, trace: Trace) -> Document:
    """``securityDefinitions``. Of a scheme with several flows, the first keeps its name."""
    result: Document = {}
    trace.path += ("components", "securitySchemes")
    for name, node in within(within(source.document, "components"), "securitySchemes").items():
        trace.path.append(name)
        found = source.component(node, trace)
        scheme = None if found is None else _scheme(found, trace)
        if found is None or scheme is None:
            trace.lose("security scheme", "Swagger 2.0 has no such type or flow; left out")
        else:
            lose_others(found, _OF_SCHEME, trace)
            result[name] = scheme
        trace.path.pop()
    del trace.path[-2:]
    return result


def _scheme(node: Document, trace: Trace) -> Document | None:
    about = {key: value for key, value in node.items() if key == "description" or key[:2] == "x-"}
    match kind := node.get("type"):
        case "http" if str(node.get("scheme")).lower() == "basic":
            return {"type": "basic", **about}
        case "http":
            trace.note("scheme", f"{cut(str(node.get('scheme')))}: said as the header that it is sent in")
            return {"type": "apiKey", "name": "authorization", "in": "header", **about}
        case "apiKey" if node.get("in") in ("header", "query") and isinstance(node.get("name"), str):
            return {"type": kind, "name": node["name"], "in": node["in"], **about}
        case "oauth2":
            return _oauth2(node, about, trace)
        case _:
            return None


def _oauth2(node: Document, about: Document, trace: Trace) -> Document | None:
    flows = within(node, "flows")
    known = {new for new, _ in FLOWS.values()}
    trace.path.append("flows")
    lose_others(flows, known, trace, keeps_extensions=False)
    trace.path.pop()
    chosen: Document | None = None
    for old, (new, urls) in FLOWS.items():
        flow = flows.get(new)
        if not isinstance(flow, dict):
            continue
        if chosen is not None:
            trace.lose("flow", "Swagger 2.0 has one flow of a scheme; left out", "flows", new)
            continue
        trace.path += ("flows", new)
        lose_others(flow, ("scopes", *urls), trace, keeps_extensions=False)
        del trace.path[-2:]
        chosen = {"type": "oauth2", "flow": old, "scopes": flow.get("scopes") or {}, **about}
        chosen |= {url: flow.get(url, "") for url in urls}
    return chosen


def convert_servers(source: OpenAPISource, trace: Trace) -> Document:
    """``host``, ``basePath`` and ``schemes`` of servers that differ only in scheme."""
    servers = [each for each in list_of(source.document, "servers") if isinstance(each, dict)]
    if source.document.get("servers") and len(servers) < len(list_of(source.document, "servers") or [0]):
        trace.lose("servers", "an array of objects is required; others are left out", "servers")
    places: Document = {}
    schemes: list[str] = []
    for index, server in enumerate(servers):
        url = str(server.get("url", ""))
        for name, variable in within(server, "variables").items():
            trace.note("server variable", "its default is written in its place", "servers", index)
            url = url.replace("{" + name + "}", str(within({"v": variable}, "v").get("default", name)))
        try:
            parts = urlsplit(url)
        except ValueError:
            trace.lose("server", "no URL; left out", "servers", index)
            continue
        place = {"host": parts.netloc, "basePath": "/" + parts.path.strip("/")}
        if places and place != places:
            trace.lose("server", "Swagger 2.0 has one host and path; left out", "servers", index)
            continue
        places = place
        lose_others(server, ("url", "variables"), trace.at(["servers", index]), keeps_extensions=False)
        if parts.scheme in ("http", "https", "ws", "wss") and parts.scheme not in schemes:
            schemes.append(parts.scheme)
    result = {key: value for key, value in places.items() if value and value != "/"}
    return {**result, "schemes": schemes} if schemes and "host" in result else result


_COPIED: Final = frozenset({"info", "tags", "externalDocs", "security"})
_OF_DOCUMENT: Final = _COPIED | {"openapi", "servers", "paths", "components"}
_BEARER: Final = {
    "BearerToken": {
        "description": "Bearer Token authentication",
        "in": "header",
        "name": "authorization",
        "type": "apiKey",
    }
}
"""Present in every apiserver's v2, and absent from native v3 documents."""


@dataclass(frozen=True, slots=True)
class Piece:
    """The contribution of a v3 document to a Swagger 2.0 document. Read-only."""

    frame: Document = field(repr=False)
    paths: Document = field(repr=False)
    definitions: Document = field(repr=False)
    losses: tuple[Loss, ...]


@dataclass(frozen=True, slots=True)
class ReleaseMemo:
    """Repeated parts of documents of one release, converted one after the other in one profile."""

    definitions: dict[tuple[str, bytes], tuple[Document, list[Loss]]] = field(default_factory=dict)
    """Definitions by name and by the JSON of the schema."""
    texts: dict[int, bytes] = field(default_factory=dict)
    """Canonical JSON of definitions, by identity."""
    objects: dict[tuple[str, bytes], Any] = field(default_factory=dict)
    """``OpenAPISource.among``."""
    parameters: Known = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SwaggerConversion:
    document: Document = field(repr=False)
    losses: tuple[Loss, ...]


def convert_to_v2(
    document: Document, *, profile: Profile = "kubernetes", limits: Limits = DEFAULT_LIMITS
) -> SwaggerConversion:
    """One OpenAPI v3 document as Swagger 2.0. Raises InvalidDocument, LimitExceeded, InvalidArgument."""
    return join_pieces({"": piece_of(document, profile=profile, limits=limits)})


def piece_of(
    document: Document,
    *,
    profile: Profile = "kubernetes",
    limits: Limits = DEFAULT_LIMITS,
    memo: ReleaseMemo | None = None,
) -> Piece:
    """``memo``: of documents converted earlier. Raises as ``convert_to_v2``."""
    check_profile(profile)
    if not str(document.get("openapi", "")).startswith("3."):
        raise InvalidDocument("OpenAPI v3 is wanted", pointer="/openapi")
    memo = memo or ReleaseMemo()
    source = OpenAPISource(document, profile, among=memo.objects)
    trace = Trace([], [], set(), [], OutputBudget.of(document, limits))
    try:
        frame = _frame(source, trace)
        lose_others(document, _OF_DOCUMENT, trace)
        paths = _each(
            within(document, "paths"),
            trace,
            ("paths",),
            lambda _, node: convert_path_item(node, source, trace),
        )
        schemas = within(within(document, "components"), "schemas")
        definitions = _each(
            schemas,
            trace,
            ("components", "schemas"),
            lambda name, node: _known_definition(name, node, profile, trace, memo),
        )
        _lose_unused(source, trace)
    except RecursionError:
        raise LimitExceeded("nested too deeply") from None
    return Piece(frame, paths, definitions, tuple(dict.fromkeys(trace.losses)))


def join_pieces(pieces: Mapping[str, Piece], *, known: Known | None = None) -> SwaggerConversion:
    """Join the pieces to one document, in order of keys. Of equal paths, and of different definitions with
    one name, the first remains and the others are reported; a loss of several documents names them.
    ``known``: parameters of pieces joined earlier."""
    paths: Document = {}
    definitions: dict[str, Document] = {}
    losses: list[Loss] = []
    frame: Document = {}
    for key, piece in sorted(pieces.items()):
        where = f"{key}#" if len(pieces) > 1 else ""
        losses += (
            [loss._replace(pointer=where + loss.pointer) for loss in piece.losses] if where else piece.losses
        )
        for name in piece.frame.keys() - frame.keys():
            frame[name] = piece.frame[name]
        for path, item in piece.paths.items():
            if path in paths:
                losses.append(
                    Loss(f"{where}/paths", "path", f"{cut(path)} is in another document too; left out")
                )
            else:
                paths[path] = _copy_path_item(item)
        for name, schema in piece.definitions.items():
            first = definitions.setdefault(name, schema)
            if first is not schema and first != schema:
                definitions[name] = one = one_definition(first, schema)
                if one is first:
                    reason = f"{cut(name)} is another schema in another document; left out"
                    losses.append(Loss(f"{where}/components/schemas", "definition", reason))
    result: Document = {"swagger": "2.0", "info": {"title": "", "version": ""}, **frame}
    result["paths"] = dict(sorted(paths.items()))
    result["definitions"] = dict(sorted(definitions.items()))
    if _MARK in frame:
        result.pop(_MARK)
        parameters = share_parameters(paths.values(), known)
        if parameters:
            result["parameters"] = parameters
    return SwaggerConversion(result, tuple(losses))


_MARK: Final = "x-specmux-profile"
"""In frames of the ``kubernetes`` profile until they are joined."""


def _frame(source: OpenAPISource, trace: Trace) -> Document:
    document = source.document
    frame = {key: value for key, value in document.items() if key in _COPIED or key.startswith("x-")}
    schemes = convert_schemes(source, trace)
    frame.update(convert_servers(source, trace))
    if source.profile == "kubernetes":
        frame[_MARK] = source.profile
        frame["info"] = {"title": "Kubernetes", **within(document, "info")}
        frame.setdefault("security", [{name: []} for name in _BEARER])
        schemes = schemes or _BEARER
    if schemes:
        frame["securityDefinitions"] = schemes
    return frame


def _lose_unused(source: OpenAPISource, trace: Trace) -> None:
    """Report shared objects that nothing refers to: the others are written where they are used."""
    components = within(source.document, "components")
    for section in components.keys() - {"schemas", "securitySchemes"}:
        for name in within(components, section):
            if "#" + pointer_to("components", section, name) not in source.used:
                trace.note("shared object", "nothing refers to it; left out", "components", section, name)


def _each(
    nodes: Document, trace: Trace, place: Iterable[str], convert: Callable[[str, Any], Any]
) -> Document:
    result = {}
    for name, node in nodes.items():
        trace.path[:] = [*place, name]
        result[name] = convert(name, node)
    trace.path.clear()
    return result


def _known_definition(name: str, node: Any, profile: Profile, trace: Trace, memo: ReleaseMemo) -> Document:
    key = name, canonical(node)
    known = memo.definitions.get(key)
    if known is None:
        before = len(trace.losses)
        made = _definition(name, node, profile, trace)
        known = memo.definitions[key] = made, trace.losses[before:]
    else:
        trace.losses += known[1]
    return known[0]


def _definition(name: str, node: Any, profile: Profile, trace: Trace) -> Document:
    if profile == "oas":
        return valid_schema(node, trace)
    return custom_schema(node, trace, is_root=True) if _is_custom(name, node) else publish_schema(node, trace)


def _is_custom(name: str, node: Any) -> bool:
    """Whether it is named like a CustomResourceDefinition's; names of Go types contain their package path."""
    for kind in array(mapping(node).get(GROUP_VERSION_KIND)):
        match kind:
            case {"group": str() as group, "version": str() as version, "kind": str() as text}:
                if group and name == ".".join([*reversed(group.split(".")), version, text]):
                    return True
    return False


def one_definition(first: Document, other: Document) -> Document:
    """Combine both if they differ only in their lists of kinds; else the first."""
    rest = {key: value for key, value in first.items() if key != GROUP_VERSION_KIND}
    if rest != {key: value for key, value in other.items() if key != GROUP_VERSION_KIND}:
        return first
    kinds = {
        tuple(sorted(kind.items())): kind
        for holder in (first, other)
        for kind in holder.get(GROUP_VERSION_KIND, ())
    }
    return {**rest, GROUP_VERSION_KIND: [kinds[key] for key in sorted(kinds)]}


def _copy_path_item(item: Document) -> Document:
    """With parameter lists of its own, which sharing modifies."""
    return {
        key: _copy_path_item(value)
        if isinstance(value, dict) and "responses" in value
        else list(value)
        if key == "parameters"
        else value
        for key, value in item.items()
    }
