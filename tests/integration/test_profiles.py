"""Smaller forms of documents, by a profile of JSON."""

from __future__ import annotations

import json
from pathlib import Path

from running.service import directory, service


async def test_a_profile_is_a_form_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "apis/apps/v1.json"
    path.parent.mkdir(parents=True)
    operation = {
        "parameters": [{"name": "pretty", "in": "query", "schema": {"type": "string"}}],
        "responses": {"200": {"description": "d"}},
    }
    document = {
        "openapi": "3.0.0",
        "info": {"title": "t", "version": "1"},
        "paths": {"/apis/apps/v1/": {"get": operation}, "/apis/apps/v1/x": {"get": operation}},
        "components": {"schemas": {"S": {"type": "string"}}},
    }
    path.write_text(json.dumps(document))
    async with service(directory("files", tmp_path)) as client:
        await client.ready()
        url = "/openapi/v3/apis/apps/v1"
        _, plain, body = await client.get(url)
        assert json.loads(body) == document
        tags = {plain["ETag"]}
        for profile in ("components", "schemas"):
            accept = f"application/json;profile={profile}"
            _, fields, smaller = await client.get(url, Accept=accept)
            assert fields["Content-Type"] == accept
            tags.add(fields["ETag"])
            again = await client.get(url, Accept=accept, If_None_Match=fields["ETag"])
            assert (again[0], again[2]) == (304, b"")
            _, _, packed = await client.get(url, Accept=f'application/json; profile="{profile}"')
            assert packed == smaller
            found = json.loads(smaller)
            assert found["components"]["schemas"] == {"S": {"type": "string"}}
            if profile == "schemas":
                assert found["paths"] == {}
            else:
                (name,) = found["components"]["parameters"]
                assert found["paths"]["/apis/apps/v1/x"]["get"]["parameters"] == [
                    {"$ref": f"#/components/parameters/{name}"}
                ]
        assert len(tags) == 3
        root = json.loads((await client.get("/openapi/v3"))[2])
        hashed = root["paths"]["apis/apps/v1"]["serverRelativeURL"]
        _, fields, _ = await client.get(hashed, Accept="application/json;profile=schemas")
        assert "immutable" in fields["Cache-Control"]
        for other in ("application/json;profile=unknown", "application/json, */*;profile=schemas"):
            _, fields, same = await client.get(url, Accept=other)
            assert (fields["ETag"], same) == (plain["ETag"], body)
