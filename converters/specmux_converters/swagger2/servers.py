"""Servers: ``schemes`` × ``host`` + ``basePath``."""

from __future__ import annotations

from typing import Any

from specmux_converters.losses import Trace
from specmux_converters.swagger2.source import Source


def convert_servers(source: Source, trace: Trace) -> dict[str, Any]:
    """``{"servers": […]}``, empty when the document says nothing of where it is served.

    The ``kubernetes`` profile has none: a client reaches the paths through whoever serves the document.
    """
    document = source.document
    named = [key for key in ("host", "basePath", "schemes") if document.get(key)]
    if source.profile == "kubernetes":
        for key in named:
            trace.lose(key, "a Kubernetes client asks the server that it got the document from", key)
        return {}
    return _servers(source, document.get("schemes"), "schemes", trace)


def operation_servers(node: dict[str, Any], source: Source, trace: Trace) -> dict[str, Any]:
    if "schemes" not in node:
        return {}
    if source.profile == "kubernetes":
        trace.lose("operation schemes", "a Kubernetes client keeps to its connection", "schemes")
        return {}
    return _servers(source, node["schemes"], "schemes", trace)


def _servers(source: Source, schemes: Any, key: str, trace: Trace) -> dict[str, Any]:
    host = source.document.get("host")
    base = source.document.get("basePath")
    for name, value in (("host", host), ("basePath", base)):
        if value is not None and not isinstance(value, str):
            trace.refuse(f"{name} must be a string")
    if schemes is not None and (
        not isinstance(schemes, list) or not all(isinstance(s, str) for s in schemes)
    ):
        trace.refuse("an array of schemes is required", key)
    path = "" if base in (None, "/") else base if base.startswith("/") else f"/{base}"
    if host:
        return {
            "servers": [{"url": f"{scheme}://{host}{path}"} for scheme in schemes or ()]
            or [{"url": f"//{host}{path}"}]
        }
    if schemes:
        trace.lose("schemes", "a server URL with a scheme needs a host", key)
    return {"servers": [{"url": path}]} if path else {}
