"""The tools as an MCP server, on the official SDK. Their descriptions are what a model decides by."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

from specmux_aggregator.agents.library import Library
from specmux_aggregator.errors import SpecmuxError
from specmux_aggregator.version import VERSION
from specmux_schemas.errors import SchemasError, UnknownField, UnknownKind
from specmux_schemas.validation import ValidationError

R = TypeVar("R")

INSTRUCTIONS: Final = (
    "The Kubernetes APIs that this user has, custom resources included. Look a field up here before writing "
    "it into a manifest: search finds it by words, explain says its type, default and rules, skeleton begins "
    "a manifest, validate checks one. Answers are cut; nextOffset asks for the rest."
)


def server_of(library: Library, *, has_diff: bool) -> MCPServer:
    server = MCPServer("specmux", version=VERSION, instructions=INSTRUCTIONS)

    @server.tool(structured_output=False)
    def list_kinds(contains: str = "", group: str | None = None, offset: int = 0) -> dict[str, Any]:
        """List the kinds that are served, with apiVersion, plural and short names, in order of preference.

        contains: part of a name, any case. group: an API group such as "apps"; "" is the core group.
        At most 100 at a time; pass nextOffset as offset for more.
        """
        return _told(lambda: library.list_kinds(contains, group, offset))

    @server.tool(structured_output=False)
    def explain(type: str, api_version: str = "", recursive: bool = False, offset: int = 0) -> dict[str, Any]:
        """Explain a kind or field: type, description, default, enum, limits, rules, and the fields below.

        type: a kind, plural or short name with a path, such as "deploy.spec.strategy". api_version: as
        "apps/v1", to choose one of several versions. recursive: every field below, one line each.
        """
        return _told(lambda: library.explain(type, api_version, recursive, offset))

    @server.tool(structured_output=False)
    def search(words: str, group: str | None = None, limit: int = 10, offset: int = 0) -> dict[str, Any]:
        """Find kinds and fields by words of their names, paths and descriptions, best first.

        Give the kind too where it is known: "deployment replicas". Each row has kind, apiVersion, path, type
        and the beginning of the description; alsoInCount counts other kinds with the same field.
        """
        return _told(lambda: library.search(words, group, limit, offset))

    @server.tool(structured_output=False)
    def skeleton(type: str, api_version: str = "") -> str:
        """A YAML manifest of a kind with its required fields, to begin with. type: a kind or short name."""
        return _told(lambda: library.skeleton(type, api_version))

    @server.tool(structured_output=False)
    def validate(manifest: str) -> dict[str, Any]:
        """Check a manifest as an apiserver would: unknown and duplicate fields, types, enums, limits, rules.

        manifest: one object as YAML or JSON. "valid" is the verdict; violations have path, line and message.
        """
        return _told(lambda: library.validate(manifest))

    if has_diff:

        @server.tool(structured_output=False)
        def diff(offset: int = 0) -> dict[str, Any]:
            """What changed between the APIs that the user compares with (--against) and those of now, worst
            first: removed and changed fields, and whom they break."""
            return _told(lambda: library.diff(offset))

    @server.resource("openapi://{group}/{version}", mime_type="application/json")
    def document(group: str, version: str) -> str:
        """The OpenAPI v3 document of a group-version; the group "core" is Kubernetes' own without a name."""
        return _told(lambda: library.document(group, version))

    return server


def _told(ask: Callable[[], R]) -> R:
    """Raises ToolError with what a model can do about it."""
    try:
        return ask()
    except (UnknownKind, UnknownField) as error:
        similar = f" Similar: {', '.join(error.similar)}." if error.similar else ""
        raise ToolError(f"{error}.{similar} Try search.") from error
    except (SchemasError, SpecmuxError, ValidationError) as error:
        raise ToolError(str(error)) from error
