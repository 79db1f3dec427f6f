"""``/openapi/v2`` with the whole service behind it: off, passed through, or merged of all documents."""

from __future__ import annotations

import asyncio
import gzip
import json
from pathlib import Path
from typing import Any

import pytest
import zstandard

from running.service import Client, directory, service
from specmux_aggregator.config.settings import DocumentSettings
from specmux_converters.codecs import protobuf_v2
from specmux_converters.document import Limits

PATH = "/openapi/v2"
PROTOBUF = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
MERGED = DocumentSettings(openapi_v2="merged")


def write(folder: Path, group: str, text: str = "d") -> None:
    path = folder / f"apis/{group}/v1.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    parameter = {"name": "pretty", "in": "query", "schema": {"type": "string"}}
    responses = {"200": {"description": text}}
    document = {
        "openapi": "3.0.0",
        "info": {"title": "t", "version": "1"},
        "paths": {f"/apis/{group}/v1/": {"get": {"parameters": [parameter], "responses": responses}}},
        "components": {"schemas": {f"{group}.Thing": {"type": "string", "default": "a"}}},
    }
    path.write_text(json.dumps(document))


async def until_changed(client: Client, etag: str) -> tuple[int, Any, bytes]:
    for _ in range(200):
        answer = await client.get(PATH)
        if answer[1].get("ETag") != etag:
            return answer
        await asyncio.sleep(0.05)
    pytest.fail("the merged document never changed")


async def test_all_documents_are_merged_in_every_form(tmp_path: Path) -> None:
    for group in ("apps", "batch"):
        write(tmp_path, group)
    async with service(directory("files", tmp_path), documents=MERGED) as client:
        await client.ready()
        swagger = client.app.swagger
        assert swagger is not None
        assert swagger.made == 0
        status, fields, body = await client.get(PATH)
        document = json.loads(body)
        assert (status, fields["Content-Type"], fields["Cache-Control"]) == (
            200,
            "application/json",
            "no-cache",
        )
        assert list(document["paths"]) == ["/apis/apps/v1/", "/apis/batch/v1/"]
        assert document["definitions"] == {
            "apps.Thing": {"type": "string"},
            "batch.Thing": {"type": "string"},
        }
        (name,) = document["parameters"]
        assert document["paths"]["/apis/apps/v1/"]["get"]["parameters"] == [{"$ref": f"#/parameters/{name}"}]
        tags = {fields["ETag"]}
        for coding, undone in (("gzip", gzip.decompress), ("zstd", zstandard.ZstdDecompressor().decompress)):
            _, fields, coded = await client.get(PATH, Accept_Encoding=coding)
            assert undone(coded) == body
            tags.add(fields["ETag"])
        _, fields, coded = await client.get(PATH, Accept=PROTOBUF)
        assert protobuf_v2.decode(coded, limits=Limits()) == document
        assert "spec.v2.v1.0+protobuf" in fields["Content-Type"]
        assert len(tags | {fields["ETag"]}) == 4
        made = swagger.made
        assert made == 4
        unchanged = await client.get(PATH, Accept=PROTOBUF, If_None_Match=fields["ETag"])
        assert (unchanged[0], unchanged[2]) == (304, b"")
        head = await client.get(PATH, method="HEAD")
        assert (head[0], head[1]["Content-Length"]) == (200, str(len(body)))
        assert (await client.get(PATH, method="POST"))[0] == 405
        assert (await client.get(PATH, Accept="text/html"))[0] == 406
        assert swagger.made == made


async def test_a_document_that_changes_or_goes_is_merged_anew(tmp_path: Path) -> None:
    for group in ("apps", "batch"):
        write(tmp_path, group)
    async with service(directory("files", tmp_path), documents=MERGED) as client:
        await client.ready()
        _, fields, first = await client.get(PATH)
        write(tmp_path, "apps", "other")
        _, fields, body = await until_changed(client, fields["ETag"])
        paths = json.loads(body)["paths"]
        assert paths["/apis/apps/v1/"]["get"]["responses"]["200"]["description"] == "other"
        assert paths["/apis/batch/v1/"] == json.loads(first)["paths"]["/apis/batch/v1/"]
        write(tmp_path, "apps")
        _, again, body = await until_changed(client, fields["ETag"])
        assert body == first
        assert again["ETag"] != fields["ETag"]


async def test_memory_that_is_short_lets_the_bytes_go(tmp_path: Path) -> None:
    write(tmp_path, "apps")
    async with service(directory("files", tmp_path), documents=MERGED) as client:
        await client.ready()
        swagger, representations = client.app.swagger, client.app.published.representations
        assert swagger is not None
        before = representations.usage().bytes
        _, _, body = await client.get(PATH)
        assert representations.usage().bytes >= before + len(body)
        for _ in range(20):
            representations.shed()
        _, _, again = await client.get(PATH, Accept="application/json;q=0.9")
        assert again == body


@pytest.mark.parametrize("mode", ["off", "passthrough"])
async def test_nobody_answers_where_nothing_is_merged(tmp_path: Path, mode: str) -> None:
    write(tmp_path, "apps")
    async with service(directory("files", tmp_path), documents=DocumentSettings(openapi_v2=mode)) as client:
        await client.ready()
        assert client.app.swagger is None
        assert (await client.get(PATH))[0] in (404, 503)
