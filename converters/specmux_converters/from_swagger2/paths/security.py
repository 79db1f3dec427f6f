"""Security schemes and requirements: basic becomes a kind of http, and OAuth2 flows are renamed."""

from __future__ import annotations

from typing import Any, Final

from specmux_converters.from_swagger2.reading.component_names import is_allowed, reason_of_rename
from specmux_converters.from_swagger2.reading.fields import (
    ARRAY,
    DESCRIPTION,
    NO_OTHERS,
    TEXT,
    is_present,
    keep_fields,
    texts,
)
from specmux_converters.from_swagger2.reading.source import SwaggerSource, object_at
from specmux_converters.from_swagger2.reading.trace import Trace

FLOWS: Final = {
    "implicit": ("implicit", ("authorizationUrl",)),
    "password": ("password", ("tokenUrl",)),
    "application": ("clientCredentials", ("tokenUrl",)),
    "accessCode": ("authorizationCode", ("authorizationUrl", "tokenUrl")),
}
"""The v2 name of a flow -> its v3 name, and the exact set of URLs that it must have."""

_URLS: Final = ("authorizationUrl", "tokenUrl")
_MOVED: Final = {
    "basic": frozenset({"type"}),
    "apiKey": frozenset({"type", "name", "in"}),
    "oauth2": frozenset({"type", "flow", "scopes", *_URLS}),
}


def convert_security_schemes(source: SwaggerSource, trace: Trace) -> dict[str, Any]:
    """The component security schemes, by name."""
    definitions = object_at(source.document, "securityDefinitions", trace)
    result = {}
    trace.path.append("securityDefinitions")
    for name, node in definitions.items():
        trace.path.append(name)
        if node is not None and not isinstance(node, dict):
            trace.refuse("a security scheme object is required")
        scheme = _scheme(node, trace) if node is not None else None
        if scheme is None:
            trace.lose("security scheme", "no such type or flow in Swagger 2.0; left out")
        else:
            result[source.names.security.get(name, name)] = scheme
            if not is_allowed(name):
                trace.note("component name", reason_of_rename(source.names.security.get(name)))
        trace.path.pop()
    trace.path.pop()
    return result


def convert_requirements(
    requirements: list[Any], source: SwaggerSource, trace: Trace
) -> list[dict[str, Any]]:
    """The value of ``security`` at ``trace``, with the names of v3."""
    result = []
    for index, requirement in enumerate(requirements):
        if requirement.__class__ is not dict:
            trace.refuse("a security requirement object is required", "security", index)
        trace.path += ("security", index)
        result.append(
            {
                source.names.security.get(name, name): _scopes(name, scopes, source, trace)
                for name, scopes in requirement.items()
            }
        )
        del trace.path[-2:]
    return result


def _scopes(name: str, scopes: Any, source: SwaggerSource, trace: Trace) -> list[Any]:
    if not is_present(name, scopes, ARRAY, trace):
        scopes = []
    texts({name: scopes}, name, trace)
    if name not in source.schemes:
        trace.note("security", "no security definition has this name; kept as it is", name)
    elif scopes and source.schemes[name] != "oauth2":
        trace.note("scopes", "OpenAPI 3.0 has them for OAuth2 alone, and an empty list here; kept", name)
    return list(scopes)


def _scheme(node: dict[str, Any], trace: Trace) -> dict[str, Any] | None:
    kind, flow = node.get("type"), node.get("flow")
    if not isinstance(kind, str) or kind not in _MOVED:
        return None
    result = keep_fields(node, DESCRIPTION, _MOVED[kind], trace)
    result["type"] = kind
    if kind == "basic":
        result.update(type="http", scheme="basic")
    elif kind == "apiKey":
        if not isinstance(node.get("name"), str) or node.get("in") not in ("header", "query"):
            return None
        result.update(name=node["name"])
        result["in"] = node["in"]
    elif not isinstance(flow, str) or flow not in FLOWS:
        return None
    else:
        name, urls = FLOWS[flow]
        result["flows"] = {name: _flow(node, urls, trace)}
    return result


def _flow(node: dict[str, Any], urls: tuple[str, ...], trace: Trace) -> dict[str, Any]:
    if "scopes" not in node:
        trace.note("flow without scopes", "OpenAPI 3.0 requires them; an empty object is added")
    scopes = object_at(node, "scopes", trace)
    for scope, text in scopes.items():
        if not isinstance(text, str) and scope[:2] != "x-":
            trace.refuse("a string is required", "scopes", scope)
    result: dict[str, Any] = {
        "scopes": {scope: text for scope, text in scopes.items() if isinstance(text, str)}
    }
    result |= {scope: value for scope, value in scopes.items() if not isinstance(value, str)}
    written: dict[str, Any] = {url: node[url] for url in _URLS if url in node}
    result |= keep_fields(written, dict.fromkeys(urls, TEXT), NO_OTHERS, trace)
    for url in urls:
        if url not in result:
            trace.note(f"flow without {url}", "OpenAPI 3.0 requires one; an empty one is added")
            result[url] = ""
    return result
