"""Security schemes and servers: the reverse of ``swagger2``."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from specmux_converters.document import Document
from specmux_converters.errors import cut
from specmux_converters.openapi2.source import OpenAPISource, items_of, list_of
from specmux_converters.swagger2.paths.security import FLOWS
from specmux_converters.swagger2.reading.trace import Trace


def convert_schemes(source: OpenAPISource, trace: Trace) -> Document:
    """``securityDefinitions``. Of a scheme with several flows, the first keeps its name."""
    result: Document = {}
    trace.path += ("components", "securitySchemes")
    for name, node in items_of(items_of(source.document, "components"), "securitySchemes").items():
        trace.path.append(name)
        scheme = _scheme(source.component(node, trace), trace)
        if scheme is None:
            trace.lose("security scheme", "Swagger 2.0 has no such type or flow; left out")
        else:
            result[name] = scheme
        trace.path.pop()
    del trace.path[-2:]
    return result


def _scheme(node: Any, trace: Trace) -> Document | None:
    kind = node.get("type") if isinstance(node, dict) else None
    about = {
        key: value
        for key, value in items_of({"node": node}, "node").items()
        if key == "description" or key[:2] == "x-"
    }
    match kind:
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
    flows = items_of(node, "flows")
    chosen: Document | None = None
    for old, (new, urls) in FLOWS.items():
        flow = flows.get(new)
        if not isinstance(flow, dict):
            continue
        if chosen is not None:
            trace.lose("flow", "Swagger 2.0 has one flow of a scheme; left out", "flows", new)
            continue
        if flow.get("refreshUrl"):
            trace.lose("refreshUrl", "Swagger 2.0 has none; left out", "flows", new)
        chosen = {"type": "oauth2", "flow": old, "scopes": flow.get("scopes") or {}, **about}
        chosen |= {url: flow.get(url, "") for url in urls}
    return chosen


def convert_servers(source: OpenAPISource, trace: Trace) -> Document:
    """``host``, ``basePath`` and ``schemes`` of servers that differ only in scheme."""
    servers = [each for each in list_of(source.document, "servers") if isinstance(each, dict)]
    places: Document = {}
    schemes: list[str] = []
    for index, server in enumerate(servers):
        url = str(server.get("url", ""))
        for name, variable in items_of(server, "variables").items():
            trace.note("server variable", "its default is written in its place", "servers", index)
            url = url.replace("{" + name + "}", str(items_of({"v": variable}, "v").get("default", name)))
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
        if parts.scheme in ("http", "https", "ws", "wss") and parts.scheme not in schemes:
            schemes.append(parts.scheme)
    result = {key: value for key, value in places.items() if value and value != "/"}
    return {**result, "schemes": schemes} if schemes and "host" in result else result
