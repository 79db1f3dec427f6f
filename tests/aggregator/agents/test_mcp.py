"""``specmux mcp`` as clients start it: over standard input and output, asked by the SDK's own client."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import orjson
import pytest

from data.explained_documents import bed

mcp = pytest.importorskip("mcp", reason="the extra specmux[mcp] is not installed")

NAME = {"type": "string", "description": "What it is called.", "default": "bed"}
VERSION = "garden.example.org/v1"


def write(folder: Path, *, other: str = "", **spec: Any) -> Path:
    """``other``: the plural of a resource beside beds."""
    document: Any = bed(**spec)
    if other:
        document["paths"][f"/apis/{VERSION}/{other}"] = document["paths"][f"/apis/{VERSION}/beds"]
    path = folder / "apis" / f"{VERSION}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(orjson.dumps(document))
    return folder


def asked(folder: Path, scenario: Callable[[Any], Coroutine[Any, Any, None]], *options: str) -> None:
    async def whole() -> None:
        command = mcp.StdioServerParameters(
            command=sys.executable,
            args=["-m", "specmux_aggregator.cli", "mcp", "--directory", str(folder), *options],
            env=environment(folder),
        )
        async with asyncio.timeout(90), mcp.Client(command) as client:
            await scenario(client)

    asyncio.run(whole())


def environment(folder: Path) -> dict[str, str]:
    paths = os.pathsep.join(filter(None, sys.path))
    return {"PATH": os.environ["PATH"], "PYTHONPATH": paths, "XDG_CACHE_HOME": str(folder / "cache")}


async def told(client: Any, tool: str, **arguments: Any) -> Any:
    answer = await client.call_tool(tool, arguments)
    text = answer.content[0].text
    assert not answer.is_error, text
    return orjson.loads(text) if text.startswith("{") else text


async def refused(client: Any, tool: str, **arguments: Any) -> str:
    answer = await client.call_tool(tool, arguments)
    assert answer.is_error
    return str(answer.content[0].text)


def test_every_tool_is_listed_and_answers(tmp_path: Path) -> None:
    async def scenario(client: Any) -> None:
        listed = (await client.list_tools()).tools
        assert {each.name for each in listed} == {
            "list_kinds", "explain", "search", "skeleton", "validate", "diff"
        }  # fmt: skip
        assert all(each.description and len(each.description) > 60 for each in listed)
        kinds = await told(client, "list_kinds", contains="bed")
        assert kinds["kinds"] == [{"kind": "Bed", "apiVersion": VERSION, "plural": "beds", "shortNames": []}]
        assert 'DEFAULT:\n    "bed"' in (await told(client, "explain", type="bed.spec.name"))["text"]
        rows = (await told(client, "search", words="bed called"))["rows"]
        assert rows[0]["path"] == "spec.name"
        skeleton = await told(client, "skeleton", type="Bed")
        assert skeleton.startswith("apiVersion: garden.example.org/v1\nkind: Bed\n")
        good = f"apiVersion: {VERSION}\nkind: Bed\nmetadata: {{name: a}}\nspec: {{name: b}}\n"
        assert (await told(client, "validate", manifest=good))["valid"] is True
        bad = await told(client, "validate", manifest=good.replace("name: b", "nam: b"))
        assert (bad["valid"], bad["violations"][0]["path"]) == (False, "spec.nam")
        assert "resource-removed" in (await told(client, "diff"))["text"]
        resource = await client.read_resource("openapi://garden.example.org/v1")
        assert orjson.loads(resource.contents[0].text)["openapi"] == "3.0.0"

    old = write(tmp_path / "old", other="stones", name=NAME)
    asked(write(tmp_path / "new", name=NAME), scenario, "--against", str(old))


def test_refusals_say_what_to_try(tmp_path: Path) -> None:
    async def scenario(client: Any) -> None:
        assert "Similar: name" in await refused(client, "explain", type="bed.spec.nam")
        assert "Similar: beds" in await refused(client, "skeleton", type="bedss")
        assert "no word" in await refused(client, "search", words=" ")
        assert {each.name for each in (await client.list_tools()).tools}.isdisjoint({"diff"})

    asked(write(tmp_path, name=NAME), scenario)


def test_long_answers_are_cut_and_can_be_asked_for_in_parts(tmp_path: Path) -> None:
    async def scenario(client: Any) -> None:
        whole, offset = "", 0
        while True:
            part = await told(client, "explain", type="bed.spec", offset=offset)
            assert len(part["text"]) <= 12_000
            whole += part["text"]
            if "nextOffset" not in part:
                break
            offset = part["nextOffset"]
        assert all(f"field{number:04}" in whole for number in range(400))

    asked(write(tmp_path, **{f"field{number:04}": NAME for number in range(400)}), scenario)
