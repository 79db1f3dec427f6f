"""The tools as an MCP server, on the official SDK. Their descriptions are what a model decides by."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

import orjson
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ResourceNotFoundError, ToolError
from mcp.types import ToolAnnotations

from specmux_aggregator.errors import SpecmuxError
from specmux_aggregator.version import VERSION
from specmux_tools.errors import SchemasError, UnknownName
from specmux_tools.mcp.library import Library
from specmux_tools.validation import ValidationError

R = TypeVar("R")

READ_ONLY: Final = ToolAnnotations(
    read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)

INSTRUCTIONS: Final = (
    "The Kubernetes APIs that this user has, custom resources included. Look a field up here before writing "
    "it into a manifest: search finds it by words, explain says its type, default and rules, skeleton begins "
    "a manifest, validate checks one. Answers are cut; nextOffset asks for the rest."
)


def server_of(library: Library, *, has_diff: bool) -> MCPServer:
    # A call that fails is the model's to read; INFO is a boxed line of it on standard error.
    server = MCPServer("specmux", version=VERSION, instructions=INSTRUCTIONS, log_level="WARNING")

    @server.tool(structured_output=False, annotations=READ_ONLY)
    def list_kinds(contains: str | None = None, group: str | None = None, offset: int = 0) -> list[str]:
        """List the kinds that are served, one a line: apiVersion, kind, plural, short names.

        contains: part of a name, any case. group: an API group such as "apps"; "" is the core group.
        At most 100 at a time; pass nextOffset as offset for more.
        """
        return _ask_library(lambda: library.list_kinds(contains or "", group, offset))

    @server.tool(structured_output=False, annotations=READ_ONLY)
    def explain(type: str, api_version: str = "", recursive: bool = False, offset: int = 0) -> list[str]:
        """Explain a kind or field: type, description, default, enum, limits, rules, and the fields below.

        type: a kind, plural or short name with a path, such as "deploy.spec.strategy". api_version: as
        "apps/v1", to choose one of several versions. recursive: every field below, one line each.
        """
        return _ask_library(lambda: library.explain(type, api_version, recursive, offset))

    @server.tool(structured_output=False, annotations=READ_ONLY)
    def search(words: str, group: str | None = None, limit: int = 10, offset: int = 0) -> str:
        """Find kinds and fields by at most 8 words of their names, paths and descriptions, best first; words
        that every question has do not count.

        Give the kind too where it is known: "deployment replicas". Each row has kind, apiVersion, path, type
        and the beginning of the description; alsoInCount counts other kinds with the same field.
        """
        return _ask_library(lambda: _json(library.search(words, group, limit, offset)))

    @server.tool(structured_output=False, annotations=READ_ONLY)
    def skeleton(type: str, api_version: str = "") -> str:
        """A YAML manifest of a kind with its required fields, to begin with. type: a kind or short name."""
        return _ask_library(lambda: library.skeleton(type, api_version))

    @server.tool(structured_output=False, annotations=READ_ONLY)
    def validate(manifest: str) -> str:
        """Check manifests as an apiserver would: unknown and duplicate fields, types, enums, limits, rules.

        manifest: YAML or JSON, any number of objects, Lists and definitions among them. "valid" is the
        verdict on all; each of "objects" has its own, with violations by path, line and message. A violation
        of the severity "note" names what could not be checked.
        """
        return _ask_library(lambda: _json(library.validate(manifest)))

    if has_diff:

        @server.tool(structured_output=False, annotations=READ_ONLY)
        def diff(offset: int = 0) -> list[str]:
            """What changed between the APIs that the user compares with (--against) and those of now, worst
            first: removed and changed fields, and whom they break."""
            return _ask_library(lambda: library.diff(offset))

    @server.resource("openapi://{group}/{version}", mime_type="application/json")
    def document(group: str, version: str) -> str:
        """The OpenAPI v3 document of a group-version; the group "core" is Kubernetes' own without a name."""
        try:
            return library.document(group, version)
        except (SchemasError, SpecmuxError) as error:
            raise ResourceNotFoundError(str(error)) from error

    return server


def _json(answer: dict[str, Any]) -> str:
    """Without the white space that models pay for."""
    return orjson.dumps(answer).decode()


def _ask_library(ask: Callable[[], R]) -> R:
    """Raises ToolError with what a model can do about it."""
    try:
        return ask()
    except UnknownName as error:
        similar = f" Similar: {', '.join(error.similar)}." if error.similar else ""
        raise ToolError(f"{error}.{similar} Try search.") from error
    except (SchemasError, SpecmuxError, ValidationError) as error:
        raise ToolError(str(error)) from error
