"""Security schemes: basic is a kind of http, and the OAuth2 flows got other names."""

from __future__ import annotations

from typing import Any, Final

from specmux_converters.swagger2.source import Source, object_at
from specmux_converters.swagger2.trace import Trace

_FLOWS: Final = {
    "implicit": "implicit",
    "password": "password",
    "application": "clientCredentials",
    "accessCode": "authorizationCode",
}
_FIELDS: Final = {
    "basic": (),
    "apiKey": ("name", "in"),
    "oauth2": ("flow", "authorizationUrl", "tokenUrl", "scopes"),
}


def convert_security_schemes(source: Source, trace: Trace) -> dict[str, Any]:
    """The component security schemes, by name."""
    definitions = object_at(source.document, "securityDefinitions", trace)
    result = {}
    trace.path.append("securityDefinitions")
    for name, node in definitions.items():
        trace.path.append(name)
        if not isinstance(node, dict):
            trace.refuse("a security scheme object is required")
        scheme = _scheme(node, trace)
        if scheme is None:
            trace.lose("security scheme", "no such type or flow in Swagger 2.0; left out")
        else:
            result[name] = scheme
        trace.path.pop()
    trace.path.pop()
    return result


def _scheme(node: dict[str, Any], trace: Trace) -> dict[str, Any] | None:
    kind, flow = node.get("type"), node.get("flow")
    if not isinstance(kind, str) or kind not in _FIELDS:
        return None
    result = {key: value for key, value in node.items() if key == "description" or key[:2] == "x-"}
    result["type"] = kind
    if kind == "basic":
        result.update(type="http", scheme="basic")
    elif kind == "apiKey":
        result.update({key: node[key] for key in _FIELDS[kind] if key in node})
    elif not isinstance(flow, str) or flow not in _FLOWS:
        return None
    else:
        result["flows"] = {_FLOWS[flow]: _flow(node, trace)}
    trace.keep_unknown(node, {"type", "description", *_FIELDS[kind]}, result)
    return result


def _flow(node: dict[str, Any], trace: Trace) -> dict[str, Any]:
    result: dict[str, Any] = {key: node[key] for key in ("authorizationUrl", "tokenUrl") if key in node}
    result["scopes"] = dict(object_at(node, "scopes", trace))
    return result
