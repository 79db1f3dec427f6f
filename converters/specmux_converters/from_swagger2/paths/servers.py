"""Servers: ``schemes`` × ``host`` + ``basePath``."""

from __future__ import annotations

import re
from typing import Any, Final

from specmux_converters.errors import InvalidDocument, cut
from specmux_converters.from_swagger2.reading.source import SwaggerSource
from specmux_converters.from_swagger2.reading.trace import Trace
from specmux_converters.losses import pointer_to

_VARIABLE: Final = re.compile(r"\{([^{}]*)\}")


def convert_servers(source: SwaggerSource, trace: Trace) -> dict[str, Any]:
    """``{"servers": […]}``; empty if the document does not state where it is served.

    The ``kubernetes`` profile has none: a client uses the server of the document.
    """
    document = source.document
    if source.profile == "oas":
        return _servers(document.get("schemes"), source, trace)
    for key in ("host", "basePath", "schemes"):
        if document.get(key) not in (None, "", "/", []):
            trace.note(key, "a Kubernetes client asks the server that it got the document from", key)
    return {}


def operation_servers(node: dict[str, Any], source: SwaggerSource, trace: Trace) -> dict[str, Any]:
    if node.get("schemes") is None:
        return {}
    if source.profile == "oas":
        return _servers(node["schemes"], source, trace)
    trace.note("operation schemes", "a Kubernetes client keeps to its connection", "schemes")
    return {}


def _servers(schemes: Any, source: SwaggerSource, trace: Trace) -> dict[str, Any]:
    host, base = (_text(source, key) for key in ("host", "basePath"))
    if schemes is None:
        schemes = []
    if not isinstance(schemes, list) or not all(isinstance(scheme, str) for scheme in schemes):
        trace.refuse("an array of schemes is required", "schemes")
    base = base.strip("/")  # a path starts with a slash; two would change it
    path = f"/{base}" if base else ""
    if host:
        urls = [f"{scheme}://{host}{path}" for scheme in dict.fromkeys(schemes)] or [f"//{host}{path}"]
        return {"servers": [_server(url, trace) for url in urls]}
    if schemes:
        trace.note("schemes", "a server URL with a scheme needs a host", "schemes")
    return {"servers": [_server(path, trace)]} if path else {}


def _server(url: str, trace: Trace) -> dict[str, Any]:
    """Swagger 2.0 has no templates in host and basePath, and OpenAPI 3.0 requires each variable to be
    declared."""
    names = [name for name in dict.fromkeys(_VARIABLE.findall(url)) if name]
    if not names:
        return {"url": url}
    for name in names:
        reason = f"nothing says what {{{cut(name)}}} stands for; its name is the default"
        trace.lose("server variable", reason)
    return {"url": url, "variables": {name: {"default": name} for name in names}}


def _text(source: SwaggerSource, key: str) -> str:
    value = source.document.get(key)
    if value is not None and not isinstance(value, str):
        raise InvalidDocument("a string is required", pointer=pointer_to(key))
    return value or ""
