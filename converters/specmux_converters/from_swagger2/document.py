"""The parts of a document outside paths and components."""

from __future__ import annotations

from typing import Any, Final

from specmux_converters.document import Document
from specmux_converters.from_swagger2.paths.security import convert_requirements
from specmux_converters.from_swagger2.paths.servers import convert_servers
from specmux_converters.from_swagger2.reading.encoding import encode
from specmux_converters.from_swagger2.reading.fields import (
    ARRAY,
    NO_OTHERS,
    NUMBER,
    OBJECT,
    TEXT,
    identity,
    is_present,
    kept,
)
from specmux_converters.from_swagger2.reading.source import SwaggerSource, object_at
from specmux_converters.from_swagger2.reading.trace import Trace

VERSION: Final = {"kubernetes": "3.0.0", "oas": "3.0.3"}

_MOVED: Final = frozenset(
    {
        "swagger", "info", "host", "basePath", "schemes", "consumes", "produces", "paths", "definitions",
        "parameters", "responses", "securityDefinitions", "security",
    }
)  # fmt: skip
_COPIED: Final = {"tags": ARRAY, "externalDocs": OBJECT}
_TAG: Final = {"name": TEXT, "description": TEXT, "externalDocs": OBJECT}
_INFO: Final = {
    **dict.fromkeys(("title", "version", "description", "termsOfService"), TEXT),
    "contact": OBJECT,
    "license": OBJECT,
}


def convert_frame(source: SwaggerSource, trace: Trace) -> dict[str, Any]:
    """A v3 document without ``paths`` and ``components``."""
    document = source.document
    result = {
        "openapi": VERSION[source.profile],
        "info": _info(document, trace),
        **kept(document, _COPIED, _MOVED, trace),
    }
    if "tags" in result:
        result["tags"] = _tags(result["tags"], trace)
    security = document.get("security")
    if security is not None and is_present("security", security, ARRAY, trace):
        requirements = convert_requirements(security, source, trace)
        if source.profile == "kubernetes":
            trace.note("security", "Kubernetes publishes the schemes, not the requirement", "security")
        else:
            result["security"] = requirements
    result.update(convert_servers(source, trace))
    return result


def _info(document: Document, trace: Trace) -> dict[str, Any]:
    node = object_at(document, "info", trace)
    place = ["info"] if "info" in document else []
    trace.path += place
    version = node.get("version")
    if version.__class__ in NUMBER:
        trace.note("number", "a version is a string, and YAML made a number of it; written as one", "version")
        node = {**node, "version": encode(version).decode()}
    result = kept(node, _INFO, NO_OTHERS, trace)
    for key in ("title", "version"):
        if key not in result:
            trace.note(f"info without {key}", "OpenAPI 3.0 requires one; an empty one is added")
            result[key] = ""
    del trace.path[len(trace.path) - len(place) :]
    return result


def _tags(nodes: list[Any], trace: Trace) -> list[dict[str, Any]]:
    """Of tags with equal names, only the first."""
    result: dict[str, dict[str, Any]] = {}
    for index, node in enumerate(nodes):
        if not isinstance(node, dict) or not isinstance(node.get("name"), str):
            trace.refuse("a tag object with a name is required", "tags", index)
        tag = kept(node, _TAG, NO_OTHERS, trace.at(["tags", index]))
        first = result.setdefault(tag["name"], tag)
        if first is tag:
            continue
        if identity(first) == identity(tag):
            trace.note("repeated value", "is there already, and counts once; left out", "tags", index)
        else:
            trace.lose("tag", "another one has its name; left out", "tags", index)
    return list(result.values())
