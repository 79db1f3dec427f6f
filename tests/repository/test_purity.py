"""Which modules of the aggregator's mixed rooms know no event loop, no socket and no HTTP library.

The rooms that are pure as a whole are a contract of import-linter (pyproject.toml).
"""

from __future__ import annotations

from typing import Any

import grimp
import pytest

LOOPS = ("asyncio", "aiohttp", "socket")

ALL_BUT = {
    "workers": "worker",
    "config": "watch",
    "api_discovery": "client follower synthesis watch",
    "kubernetes": ("api_client custom_resources listing service_endpoints shared_crd_parts source watch"),
    "proxy": "exchanges handler response swagger_copies upload",
}
"""Rooms whose modules are pure, but for these."""

THESE = {
    "aggregation": "check_schedule first_look ownership",
    "auth": "users",
    "changes": "document_history entries log",
    "documents": "representations",
    "json_schema_files": "answers",
    "endpoints": "discovery not_found openapi status",
    "backend_sources": "outcome",
    "reader": "assets requests",
    "server": "malformed_log stats",
}
"""Rooms that move bytes, and their modules that are pure."""


@pytest.fixture(scope="module")
def graph() -> Any:
    packages = ("specmux_aggregator", "specmux_cache", "specmux_converters", "specmux_tools")
    return grimp.build_graph(*packages, include_external_packages=True, cache_dir=None)


def knowing_loops(graph: Any, room: str) -> set[str]:
    """The modules of a room that import a loop, by whatever way."""
    prefix = f"specmux_aggregator.{room}."
    names = {name for name in graph.modules if name.startswith(prefix)}
    return {
        name.removeprefix(prefix) for name in names if any(graph.chain_exists(name, loop) for loop in LOOPS)
    }


@pytest.mark.parametrize("room", ALL_BUT)
def test_modules_of_a_room_that_decides_know_no_loop(graph: Any, room: str) -> None:
    assert knowing_loops(graph, room) == set(ALL_BUT[room].split())


@pytest.mark.parametrize("room", THESE)
def test_decisions_of_a_room_that_moves_bytes_know_no_loop(graph: Any, room: str) -> None:
    known = {name.rpartition(".")[2] for name in graph.find_children(f"specmux_aggregator.{room}")}
    assert set(THESE[room].split()) <= known
    assert not set(THESE[room].split()) & knowing_loops(graph, room)
