"""The parts of a document that belong to no path and no component."""

from __future__ import annotations

from typing import Any, Final

from specmux_converters.swagger2.servers import convert_servers
from specmux_converters.swagger2.source import Source
from specmux_converters.swagger2.trace import Trace

VERSION: Final = {"kubernetes": "3.0.0", "oas": "3.0.3"}

_COPIED: Final = frozenset({"tags", "externalDocs"})
_MOVED: Final = frozenset(
    {
        "swagger", "info", "host", "basePath", "schemes", "consumes", "produces", "paths", "definitions",
        "parameters", "responses", "securityDefinitions", "security",
    }
)  # fmt: skip


def convert_frame(source: Source, trace: Trace) -> dict[str, Any]:
    """A v3 document without ``paths`` and ``components``."""
    document = source.document
    result: dict[str, Any] = {"openapi": VERSION[source.profile], "info": _info(document.get("info"), trace)}
    result |= {key: value for key, value in document.items() if key in _COPIED or key[:2] == "x-"}
    trace.keep_unknown(document, _COPIED | _MOVED, result)
    if "security" in document:
        if source.profile == "kubernetes":
            trace.lose("security", "Kubernetes publishes the schemes, not the requirement", "security")
        else:
            result["security"] = document["security"]
    result.update(convert_servers(source, trace))
    return result


def _info(node: Any, trace: Trace) -> dict[str, Any]:
    if node is None:
        node = {}
    if not isinstance(node, dict):
        trace.refuse("an object is required", "info")
    missing = [key for key in ("title", "version") if key not in node]
    for key in missing:
        trace.lose(f"info without {key}", "OpenAPI 3.0 requires one; an empty one is added", "info")
    return {**node, **dict.fromkeys(missing, "")} if missing else node
