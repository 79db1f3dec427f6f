"""``/openapi/v2`` with the whole service behind it: off, passed through, or merged of all documents."""

from __future__ import annotations

import asyncio
import gzip
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import zstandard
from click.testing import CliRunner

from fakes.apiserver import FakeAPIServer, document, serving, swagger
from running.service import Client, backend, directory, service
from specmux_aggregator.cli import main
from specmux_aggregator.config.settings import DocumentSettings
from specmux_converters.codecs import protobuf_v2
from specmux_converters.document import Limits
from specmux_converters.media_types import JSON, PROTOBUF_V2

PATH = "/openapi/v2"
PROTOBUF = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
LOST = "apis/lost.example.org/v1"
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


async def test_memory_that_is_short_lets_bytes_and_process_go(tmp_path: Path) -> None:
    write(tmp_path, "apps")
    async with service(directory("files", tmp_path), documents=MERGED) as client:
        await client.ready()
        app, worker = client.app, client.app.published.workers.catalogue
        before = app.published.representations.usage().bytes
        assert not worker.is_up  # nothing is made, and nothing started, until somebody asks
        _, _, body = await client.get(PATH)
        assert app.published.representations.usage().bytes >= before + len(body)
        assert worker.is_up
        app._shed()
        assert not worker.is_up
        while app._shed():
            pass
        _, _, again = await client.get(PATH, Accept="application/json;q=0.9")
        assert again == body


async def test_a_document_that_cannot_be_had_is_asked_for_once_in_a_while(tmp_path: Path) -> None:
    write(tmp_path, "apps")
    lost = FakeAPIServer({LOST: document(LOST)})
    asked = f"/openapi/v3/{LOST}"
    async with (
        serving(lost),
        service(directory("files", tmp_path), backend("lost", lost.url), documents=MERGED) as client,
    ):
        await client.ready()
        lost.listed, lost.documents = lost.documents, {}
        status, fields, body = await client.get(PATH)
        assert (status, list(json.loads(body)["paths"])) == (200, ["/apis/apps/v1/"])
        assert "without 1 documents" in fields["Warning"]
        once = lost.count(asked)
        assert once
        for headers in ({}, {"Accept": PROTOBUF}, {"Accept_Encoding": "gzip"}):
            status, again, _ = await client.get(PATH, **headers)
            assert (status, again["Warning"]) == (200, fields["Warning"])
        assert (await client.get(PATH, If_None_Match=fields["ETag"]))[0] == 304
        assert lost.count(asked) == once
        lost.documents = lost.listed
        app = client.app.swagger
        assert app is not None and set(app._partials) == {JSON, PROTOBUF_V2}
        app._partials = {key: replace(each, until=0.0) for key, each in app._partials.items()}
        _, whole, body = await client.get(PATH)
        assert list(json.loads(body)["paths"]) == ["/apis/apps/v1/", f"/{LOST}/things"]
        assert "Warning" not in whole
        assert whole["ETag"] != fields["ETag"]


async def test_a_document_that_protobuf_cannot_express_is_missing_there_alone(tmp_path: Path) -> None:
    for group in ("apps", "odd"):
        write(tmp_path, group)
    odd = tmp_path / "apis/odd/v1.json"
    text = odd.read_text()
    odd.write_text(text.replace('"type": "string", "default"', '"unknown": 1, "default"'))
    async with service(directory("files", tmp_path), documents=MERGED) as client:
        await client.ready()
        for _ in range(2):
            status, fields, body = await client.get(PATH, Accept=PROTOBUF)
            assert (status, fields["Warning"]) == (200, '199 - "without 1 documents that cannot be had"')
            assert list(protobuf_v2.decode(body, limits=Limits())["paths"]) == ["/apis/apps/v1/"]
            assert client.app.swagger is not None and client.app.swagger.made == 1
        assert (await client.get(PATH, Accept=PROTOBUF, If_None_Match=fields["ETag"]))[0] == 304
        status, whole, body = await client.get(PATH)
        assert (status, list(json.loads(body)["paths"])) == (200, ["/apis/apps/v1/", "/apis/odd/v1/"])
        assert "Warning" not in whole
        odd.write_text(text)
        await until_changed(client, whole["ETag"])
        status, fields, body = await client.get(PATH, Accept=PROTOBUF)
        assert len(protobuf_v2.decode(body, limits=Limits())["paths"]) == 2
        assert "Warning" not in fields


@pytest.mark.parametrize("mode", ["merged", "passthrough"])
async def test_who_reads_it_is_counted(mode: str) -> None:
    origin = FakeAPIServer({LOST: document(LOST)}, swagger(LOST))
    async with (
        serving(origin),
        service(backend("one", origin.url), documents=DocumentSettings(openapi_v2=mode)) as client,
    ):
        await client.ready()
        for agent in ("kubectl/v1.27.3 (linux/amd64)", "kubectl/v1.28.0", "kustomize"):
            assert (await client.get(PATH, User_Agent=agent))[0] == 200
        await client.get(PATH, Accept=PROTOBUF, User_Agent="kubectl/v1.27.3")
        await client.get(PATH, method="POST", User_Agent="writer/1")
        known = (await client.status())["openapiV2"]
        assert (known["requests"], known["products"]) == (
            4,
            {"kubectl": {"json": 2, "protobuf": 1}, "kustomize": {"json": 1}},
        )
        _, _, metrics = await client.get("/metrics")
        assert b'specmux_openapi_v2_requests_total{form="json",product="kubectl"} 2.0' in metrics
        shown = await asyncio.to_thread(CliRunner().invoke, main, ["status", client.base])
        line = (
            r"/openapi/v2: 4 requests, the last \d+s ago: kubectl 3 \(json, protobuf\), kustomize 1 \(json\)"
        )
        assert re.search(line, shown.output), shown.output


@pytest.mark.parametrize("mode", ["off", "passthrough"])
async def test_nobody_answers_where_nothing_is_merged(tmp_path: Path, mode: str) -> None:
    write(tmp_path, "apps")
    async with service(directory("files", tmp_path), documents=DocumentSettings(openapi_v2=mode)) as client:
        await client.ready()
        assert client.app.swagger is None
        assert (await client.get(PATH))[0] in (404, 503)
