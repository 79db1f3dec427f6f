"""``/schemas`` with the whole service behind it: what is told, to whom, and when nothing has to be made."""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import zstandard
from click.testing import CliRunner

from running.service import Client, backend, directory, service
from specmux_aggregator.auth.token_file import FollowedTokenFile
from specmux_aggregator.config.settings import AuthSettings, LogSettings, SchemaSettings
from specmux_aggregator.errors import InvalidConfig
from specmux_aggregator.json_schema_files.endpoint import parse_path_tokens
from specmux_converters.json_schema.catalogue import LAYOUTS
from specmux_tools.commands.schemas import schemas

PATH = "/schemas/apps/thing_v1.json"
TOKEN = "abcdefgh12345678"
MODELS = [(folder, end) for folder in ("", "partial-") for end in (".json", ".openapi.json")]
KNOWN = {"Authorization": "Bearer alice-token"}


def document(group: str, *kinds: str) -> dict[str, Any]:
    components = {
        f"{group}.{kind}": {
            "type": "object",
            "properties": {"apiVersion": {"type": "string"}, "kind": {"type": "string"}},
            "x-kubernetes-group-version-kind": [{"group": group, "version": "v1", "kind": kind}],
        }
        for kind in kinds
    }
    return {
        "openapi": "3.0.0",
        "info": {"title": "t", "version": "1"},
        "paths": {f"/apis/{group}/v1/": {}},
        "components": {"schemas": components},
    }


def write(folder: Path, group: str, *kinds: str) -> None:
    path = folder / f"apis/{group}/v1.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document(group, *kinds)))


@asynccontextmanager
async def serving(folder: Path, *others: Any, **settings: Any) -> AsyncIterator[Client]:
    write(folder, "apps", "Thing")
    async with service(directory("files", folder), *others, **settings) as client:
        await client.ready()
        yield client


async def test_a_kind_in_every_coding_and_nothing_made_twice(tmp_path: Path) -> None:
    async with serving(tmp_path) as client:
        status, fields, body = await client.get(PATH)
        assert (status, fields["Content-Type"], fields["Cache-Control"]) == (
            200,
            "application/schema+json",
            "no-cache",
        )
        assert fields["Access-Control-Allow-Origin"] == "*"
        assert json.loads(body)["properties"]["kind"]["enum"] == ["Thing"]
        tags = {fields["ETag"]}
        for coding, undone in (("gzip", gzip.decompress), ("zstd", zstandard.ZstdDecompressor().decompress)):
            _, fields, coded = await client.get(PATH, Accept_Encoding=coding)
            assert fields["Content-Encoding"] == coding
            assert undone(coded) == body
            tags.add(fields["ETag"])
        assert len(tags) == 3
        files = client.app.schemas
        assert files is not None
        made = files.made
        assert made == 3
        head = await client.get(PATH, method="HEAD")
        assert (head[0], head[1]["Content-Length"], head[2]) == (200, str(len(body)), b"")
        assert (await client.get(PATH))[2] == body
        assert files.made == made


async def test_what_did_not_change_is_told_without_making_it(tmp_path: Path) -> None:
    async with serving(tmp_path) as first:
        tag = (await first.get(PATH))[1]["ETag"]
        assert (await first.get(PATH, If_Match='"x"'))[0] == 412
    async with serving(tmp_path) as replica:
        status, fields, body = await replica.get(PATH, If_None_Match=tag)
        assert (status, fields["ETag"], body) == (304, tag, b"")
        assert replica.app.schemas is not None
        assert replica.app.schemas.made == 0
        before = replica.app.publisher.current.generation
        write(tmp_path, "apps", "Thing", "Other")
        await replica.until(lambda: replica.app.publisher.current.generation > before)
        assert (await replica.get(PATH, If_None_Match=tag))[0] == 200


async def test_a_pinned_tree_is_immutable_and_another_is_gone(tmp_path: Path) -> None:
    async with serving(tmp_path) as client:
        index = json.loads((await client.get("/schemas/index.json"))[2])
        assert [each["kind"] for each in index["kinds"]] == ["List", "Thing"]
        status, fields, _ = await client.get(f"/schemas/hash/{index['hash']}/apps/thing_v1.json")
        assert (status, fields["Cache-Control"]) == (200, "public, max-age=31536000, immutable")
        status, fields, body = await client.get("/schemas/hash/0/apps/thing_v1.json")
        assert (status, fields["Cache-Control"]) == (410, "no-store")
        assert body.decode() == f"that tree is not held; the current one is {index['hash']}\n"


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/schemas/all.json", 200),
        ("/schemas/_definitions.json", 200),
        ("/schemas/catalog.json", 200),
        ("/schemas/crds.yaml", 200),
        ("/schemas/master-standalone-strict/thing-apps-v1.json", 200),
        ("/schemas/v1.30.9-standalone/thing-apps-v1.json", 200),
        ("/schemas/v1.31.0-standalone/thing-apps-v1.json", 404),
        ("/schemas/partial/apps/thing_v1.json", 200),
        ("/schemas/apps/gadget_v1.json", 404),
        ("/schemas/nobody/thing_v1.json", 404),
        ("/schemas", 404),
        ("/schemas/", 404),
        ("/schemas/../status", 404),
        ("/schemas/token/x/all.json", 404),
    ],
)
async def test_paths(tmp_path: Path, path: str, status: int) -> None:
    async with serving(
        tmp_path, schemas=SchemaSettings(release="v1.30.2", base_url="https://h/schemas")
    ) as client:
        found, fields, body = await client.get(path)
        assert found == status
        if status == 404:
            assert fields["Content-Type"].startswith("text/plain")
            assert body.count(b"\n") == 1
        if path.endswith("catalog.json"):
            assert json.loads(body)["schemas"][0]["url"] == "https://h/schemas/all.json"
        assert (await client.get(path))[0] == status


async def test_the_service_and_the_command_give_the_same_files(tmp_path: Path) -> None:
    documents, target = tmp_path / "documents", tmp_path / "schemas"
    write(documents, "apps.example.org", "Bed", "BedList")
    (documents / "api").mkdir()
    (documents / "api/v1.json").write_text(json.dumps(document("", "Pod")))
    async with serving(documents) as client:
        options = [word for layout in LAYOUTS for word in ("--layout", layout)]
        command = [str(target), "--directory", str(documents), *options]
        done = await asyncio.to_thread(CliRunner().invoke, schemas, command)
        assert (done.exit_code, done.stderr) == (0, "")
        paths = {str(path.relative_to(target)) for path in target.rglob("*.json")}
        assert {f"{folder}models/apps_v1{end}" for folder, end in MODELS} <= paths
        for path in sorted(paths - {"index.json", "catalog.json"}):  # which name the tree and its address
            status, fields, body = await client.get(f"/schemas/{path}")
            assert (path, status, body) == (path, 200, (target / path).read_bytes())
            is_openapi = path.endswith(".openapi.json")
            assert fields["Content-Type"] == f"application/{'' if is_openapi else 'schema+'}json"
        assert (await client.get("/schemas/models/none_v1.json"))[0] == 404
        assert (await client.get("/schemas/models/apps_v2.json"))[0] == 404


async def test_only_reading(tmp_path: Path) -> None:
    async with serving(tmp_path) as client:
        status, fields, _ = await client.get(PATH, method="DELETE")
        assert (status, fields["Allow"]) == (405, "GET, HEAD")


async def test_a_backend_that_is_down_is_named(tmp_path: Path) -> None:
    async with serving(tmp_path, backend("down", "http://127.0.0.1:9")) as client:
        index = json.loads((await client.get("/schemas/index.json"))[2])
        assert index["absent"] == ["down"]
        whole = json.loads((await client.get("/schemas/all.json"))[2])
        assert whole["$comment"] == "without the kinds of: down"


async def test_switched_off(tmp_path: Path) -> None:
    async with serving(tmp_path, schemas=SchemaSettings(enabled=False)) as client:
        assert (await client.get(PATH))[0] == 404


def guarded(tmp_path: Path, **fields: Any) -> dict[str, Any]:
    (tmp_path / "users").write_text("alice-token,alice\n")
    auth = AuthSettings(mode="token-file", token_file=tmp_path / "users")
    return {"auth": auth, "schemas": SchemaSettings(**fields), "log": LogSettings(slow_request=0)}


async def test_as_documents(tmp_path: Path) -> None:
    async with serving(tmp_path / "d", **guarded(tmp_path)) as client:
        assert (await client.get(PATH))[0] == 401
        status, fields, _ = await client.get(PATH, **KNOWN)
        assert (status, fields["Cache-Control"]) == (200, "private, no-cache")
        assert "Access-Control-Allow-Origin" not in fields


async def test_anonymous(tmp_path: Path) -> None:
    async with serving(tmp_path / "d", **guarded(tmp_path, access="anonymous")) as client:
        status, fields, _ = await client.get(PATH)
        assert (status, fields["Cache-Control"], fields["Access-Control-Allow-Origin"]) == (
            200,
            "no-cache",
            "*",
        )
        assert (await client.get("/openapi/v3"))[0] == 401
        assert (await client.get("/schemasx"))[0] == 401


async def test_a_token_in_the_path_is_never_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "paths").write_text(f"{TOKEN}\n")
    settings = guarded(tmp_path, access="path-token", token_file=tmp_path / "paths")
    with caplog.at_level(logging.DEBUG):
        async with serving(tmp_path / "d", **settings) as client:
            assert (await client.get(f"/schemas/token/{TOKEN}/apps/thing_v1.json"))[0] == 200
            assert (await client.get(f"/schemas/token/{TOKEN}x/apps/thing_v1.json"))[0] == 404
            assert (await client.get("/schemas/token//apps/thing_v1.json"))[0] == 404
            assert (await client.get(f"/schemas/token/{TOKEN}/../../openapi/v3"))[0] == 404
            assert (await client.get(PATH))[0] == 401
    assert "/schemas/token/" in caplog.text
    assert TOKEN not in caplog.text


async def test_the_file_of_tokens_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("specmux_aggregator.auth.token_file.INTERVAL", 0.02)
    file = tmp_path / "paths"
    file.write_text(f"{TOKEN}\n")
    other = "b" * 20

    async def status_of(token: str, wanted: int) -> bool:
        for _ in range(500):
            if (await client.get(f"/schemas/token/{token}/apps/thing_v1.json"))[0] == wanted:
                return True
            await asyncio.sleep(0.02)
        return False

    settings = guarded(tmp_path, access="path-token", token_file=file)
    async with serving(tmp_path / "d", **settings) as client:
        assert await status_of(TOKEN, 200)
        assert await status_of(other, 404)
        file.write_text("short\n")  # refused: what was read before stays
        await asyncio.sleep(0.1)
        assert await status_of(TOKEN, 200)
        file.write_text(f"{other}\n")
        assert await status_of(other, 200)
        assert await status_of(TOKEN, 404)


@pytest.mark.parametrize(
    ("text", "reason"), [("", "no token"), ("short\n", "token 1"), ("a/b" * 9, "token 1")]
)
def test_a_file_of_tokens_that_protects_nothing_is_refused(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "paths").write_text(text)
    with pytest.raises(InvalidConfig, match=reason):
        FollowedTokenFile(tmp_path / "paths", parse_path_tokens, setting="schemas.token_file")


async def test_what_is_remembered_of_requests_is_bounded(tmp_path: Path) -> None:
    async with serving(tmp_path) as client:
        files = client.app.schemas
        assert files is not None
        await client.get(PATH)
        before = len(files._decisions)
        assert (await client.get(f"/schemas/{'a' * 4000}/thing_v1.json"))[0] == 404
        assert len(files._decisions) == before > 0
