"""Security schemes and servers: the reverse of ``from_swagger2``."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from specmux_converters.document import Document
from specmux_converters.errors import cut
from specmux_converters.from_swagger2.paths.security import FLOWS
from specmux_converters.from_swagger2.reading.trace import Trace
from specmux_converters.to_swagger2.source import OpenAPISource, items_of, list_of, lose_others

_OF_SCHEME: Final = ("type", "description", "name", "in", "scheme", "flows", "bearerFormat")


def convert_schemes(source: OpenAPISource, trace: Trace) -> Document:
    """``securityDefinitions``. Of a scheme with several flows, the first keeps its name."""
    result: Document = {}
    trace.path += ("components", "securitySchemes")
    for name, node in items_of(items_of(source.document, "components"), "securitySchemes").items():
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
    flows = items_of(node, "flows")
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
        lose_others(server, ("url", "variables"), trace.at(["servers", index]), keeps_extensions=False)
        if parts.scheme in ("http", "https", "ws", "wss") and parts.scheme not in schemes:
            schemes.append(parts.scheme)
    result = {key: value for key, value in places.items() if value and value != "/"}
    return {**result, "schemes": schemes} if schemes and "host" in result else result
