"""Security schemes: basic is a kind of http, and the OAuth2 flows got other names."""

from __future__ import annotations

from typing import Any, Final

from specmux_converters.losses import Trace
from specmux_converters.swagger2.source import Source, object_at

_FLOWS: Final = {
    "implicit": "implicit",
    "password": "password",
    "application": "clientCredentials",
    "accessCode": "authorizationCode",
}
_FLOW_KEYS: Final = ("authorizationUrl", "tokenUrl")


def convert_security_schemes(source: Source, trace: Trace) -> dict[str, Any]:
    result = {}
    trace.path.append("securityDefinitions")
    for name, node in object_at(source.document, "securityDefinitions", Trace()).items():
        trace.path.append(name)
        if not isinstance(node, dict):
            trace.refuse("a security scheme object is required")
        scheme = _scheme(node, trace)
        if scheme is not None:
            result[name] = scheme
        trace.path.pop()
    trace.path.pop()
    return result


def _scheme(node: dict[str, Any], trace: Trace) -> dict[str, Any] | None:
    kept = {key: value for key, value in node.items() if key == "description" or key[:2] == "x-"}
    kind = node.get("type")
    if kind == "basic":
        return {"type": "http", "scheme": "basic", **kept}
    if kind == "apiKey":
        return {"type": "apiKey", **{key: node[key] for key in ("name", "in") if key in node}, **kept}
    if kind == "oauth2":
        flow = node.get("flow")
        if isinstance(flow, str) and flow in _FLOWS:
            return {"type": "oauth2", "flows": {_FLOWS[flow]: _flow(node, trace)}, **kept}
    trace.lose("security scheme", "no such type or flow in Swagger 2.0; left out")
    return None


def _flow(node: dict[str, Any], trace: Trace) -> dict[str, Any]:
    result: dict[str, Any] = {key: node[key] for key in _FLOW_KEYS if key in node}
    result["scopes"] = dict(object_at(node, "scopes", trace))
    return result
