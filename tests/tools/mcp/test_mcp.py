"""``specmux mcp``, asked by the SDK's own client: once as clients start it, over standard streams, else in
this process, because loading the SDK takes a second."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Coroutine
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from unittest import mock

import orjson
import pytest
from click.testing import CliRunner

from data.explained_documents import bed
from deadline import DEADLINE
from specmux_aggregator.cli import main

# Not imported here: that takes a second, of every process that only collects.
installed = pytest.mark.skipif(find_spec("mcp") is None, reason="the extra specmux[mcp] is not installed")
pytestmark = installed

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


def asked(folder: Path, scenario: Callable[[Any], Coroutine[Any, Any, None]]) -> None:
    from mcp.server.mcpserver import MCPServer

    def run(server: MCPServer, transport: str) -> None:
        assert transport == "stdio"
        asyncio.run(connected(server, scenario))

    with mock.patch.object(MCPServer, "run", run):  # it would take this process' standard input
        words = ["mcp", "--directory", str(folder)]
        result = CliRunner().invoke(main, words, env=environment(folder), catch_exceptions=False)
    assert result.exit_code == 0, result.output


def asked_over_stdio(
    folder: Path, scenario: Callable[[Any], Coroutine[Any, Any, None]], *options: str
) -> None:
    import mcp
    from mcp.client.stdio import stdio_client

    command = mcp.StdioServerParameters(
        command=sys.executable,
        args=["-m", "specmux_aggregator.cli", "mcp", "--directory", str(folder), *options],
        env=environment(folder),
    )
    # Else it takes what stood for stderr when it was imported, which may have been another test's buffer.
    asyncio.run(connected(stdio_client(command, errlog=sys.__stderr__), scenario))


async def connected(server: Any, scenario: Callable[[Any], Coroutine[Any, Any, None]]) -> None:
    import mcp

    async with asyncio.timeout(DEADLINE), mcp.Client(server) as client:
        await scenario(client)


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
        assert kinds == f"1 kind\n{VERSION} Bed beds"
        assert 'DEFAULT:\n    "bed"' in await told(client, "explain", type="bed.spec.name")
        for asked_for in (f"{VERSION} Bed", f"{VERSION}/Bed", "bed spec name"):
            assert await told(client, "explain", type=asked_for)
        rows = (await told(client, "search", words="bed called"))["rows"]
        assert rows[0]["path"] == "spec.name"
        skeleton = await told(client, "skeleton", type="Bed")
        assert skeleton.startswith("apiVersion: garden.example.org/v1\nkind: Bed\n")
        good = f"apiVersion: {VERSION}\nkind: Bed\nmetadata: {{name: a}}\nspec: {{name: b}}\n"
        assert (await told(client, "validate", manifest=good))["valid"] is True
        bad = await told(client, "validate", manifest=good.replace("name: b", "nam: b"))
        assert (bad["valid"], bad["objects"][0]["violations"][0]["path"]) == (False, "spec.nam")
        assert "resource-removed" in await told(client, "diff")
        assert all(each.annotations.read_only_hint for each in listed)
        resource = await client.read_resource("openapi://garden.example.org/v1")
        assert orjson.loads(resource.contents[0].text)["openapi"] == "3.0.0"

    old = write(tmp_path / "old", other="stones", name=NAME)
    asked_over_stdio(write(tmp_path / "new", name=NAME), scenario, "--against", str(old))


GOOD = f"apiVersion: {VERSION}\nkind: Bed\nmetadata: {{name: a}}\nspec: {{name: b}}\n"
BAD = GOOD.replace("name: b", "nam: b")
LIST = orjson.dumps(
    {
        "apiVersion": "v1",
        "kind": "List",
        "items": [
            {"apiVersion": VERSION, "kind": "Bed", "metadata": {"name": name}, "spec": spec}
            for name, spec in (("a", {"name": "b"}), ("c", {"nam": "b"}))
        ],
    }
).decode()


def test_every_object_is_judged(tmp_path: Path) -> None:
    async def scenario(client: Any) -> None:
        for manifest in (
            f"{GOOD}---\n{BAD}",
            f"{BAD}---\n{GOOD}",
            LIST,
            f"```yaml\n{BAD}```",
            f"```\n{BAD}\n```\n",
        ):
            answer = await told(client, "validate", manifest=manifest)
            assert answer["valid"] is False, manifest
            violations = [found for each in answer["objects"] for found in each["violations"]]
            assert [found["path"] for found in violations] == ["spec.nam"], manifest
        assert (await told(client, "validate", manifest=f"{GOOD}---\n{GOOD}"))["valid"] is True
        assert (await told(client, "validate", manifest=f"Here:\n```yaml\n{GOOD}```"))["valid"] is False
        unknown = await told(client, "validate", manifest=GOOD.replace("kind: Bed", "kind: Beds"))
        assert unknown["valid"] is False
        assert unknown["hints"] == [f"{VERSION} Beds: did you mean Bed?"]
        assert "no object" in await refused(client, "validate", manifest="\n# nothing\n")

    asked(write(tmp_path, name=NAME), scenario)


def test_definition_in_a_manifest_counts(tmp_path: Path) -> None:
    names = {"kind": "Cup", "plural": "cups", "singular": "cup", "listKind": "CupList"}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "string"}}}}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "cups.shop.example.org"},
        "spec": {
            "group": "shop.example.org",
            "names": names,
            "scope": "Namespaced",
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }
    cup = {"apiVersion": "shop.example.org/v1", "kind": "Cup", "metadata": {"name": "a"}, "spec": 1}

    async def scenario(client: Any) -> None:
        manifest = orjson.dumps(definition).decode() + orjson.dumps(cup).decode()
        answer = await told(client, "validate", manifest=manifest)
        (violation,) = answer["objects"][1]["violations"]
        assert "spec in body must be of type string" in violation["message"]

    asked(write(tmp_path, name=NAME), scenario)


def test_files_that_change_are_seen(tmp_path: Path) -> None:
    async def scenario(client: Any) -> None:
        assert (await told(client, "validate", manifest=BAD))["valid"] is False
        assert "stones" not in await told(client, "list_kinds")
        write(tmp_path, other="stones", nam=NAME)
        assert (await told(client, "validate", manifest=BAD))["valid"] is True
        assert "stones" in await told(client, "list_kinds")
        assert (await told(client, "search", words="what is the nam of a bed"))["rows"][0][
            "path"
        ] == "spec.nam"
        assert "What it is called" in await told(client, "explain", type="bed.spec.nam")

    asked(write(tmp_path, name=NAME), scenario)


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
            answer = await client.call_tool("explain", {"type": "bed.spec", "offset": offset})
            text, *more = (each.text for each in answer.content)
            assert len(text) <= 12_000
            whole += text
            if not more:
                break
            offset = int(more[0].removeprefix("nextOffset: "))
        assert all(f"field{number:04}" in whole for number in range(400))

    asked(write(tmp_path, **{f"field{number:04}": NAME for number in range(400)}), scenario)
