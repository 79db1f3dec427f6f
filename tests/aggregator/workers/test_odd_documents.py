"""JSON Schemas of documents that are odd: what is odd costs its own schema, and no other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import orjson
import pytest
from click.testing import CliRunner

from specmux_aggregator.cli import main
from specmux_aggregator.http.messages import Coding
from specmux_aggregator.model.observation import Hash
from specmux_aggregator.workers.built import FileContext, SchemaSource, Unencodable
from specmux_converters.document import DEFAULT_LIMITS
from specmux_converters.group_versions import GroupVersion
from specmux_converters.json_schema.paths import file_wanted_at
from specmux_tools.json_schema_job import json_schema

META = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"}}
WHOLE = ("index.json", "catalog.json", "all.json", "_definitions.json", "crds.yaml")

ODD: dict[str, dict[str, Any]] = {
    "no apiVersion and kind": {"properties": {"value": {"type": "string"}}},
    "unknown type": {"properties": {**META, "spec": {"type": "no-such"}}, "required": ["spec"]},
    "minimum is text": {
        "properties": {**META, "spec": {"type": "integer", "minimum": "x", "default": 3}},
        "required": ["spec"],
    },
    "pattern is a number": {"properties": {**META, "spec": {"type": "string", "pattern": 7}}},
    "enum is an object": {"properties": {**META, "spec": {"enum": {"a": 1}}}, "required": ["spec"]},
    "required is a number": {"properties": META, "required": 5},
    "items is text": {"properties": {**META, "spec": {"type": "array", "items": "x"}}, "required": ["spec"]},
}


def document(group: str, schema: dict[str, Any]) -> bytes:
    kind = {"group": group, "version": "v1", "kind": "Thing"}
    operation = {"x-kubernetes-action": "list", "x-kubernetes-group-version-kind": kind, "responses": {}}
    whole = {"type": "object", "x-kubernetes-group-version-kind": [kind], **schema}
    return json.dumps({
        "openapi": "3.0.0",
        "info": {"title": "t", "version": "v1"},
        "paths": {f"/apis/{group}/v1/things": {"get": operation}},
        "components": {"schemas": {f"io.{group}.Thing": whole}},
    }).encode()  # fmt: skip


def made(path: str, *bodies: tuple[str, bytes]) -> bytes:
    file = file_wanted_at(path)
    assert file is not None
    sources = [
        SchemaSource(GroupVersion(f"apis/{group}/v1"), Hash(f"{hash(body):X}"), body)
        for group, body in bodies
    ]
    told = FileContext(tree="T")
    found = json_schema(file, sources, told, coding=Coding.IDENTITY, limits=DEFAULT_LIMITS)
    assert isinstance(found, bytes), found
    return found


@pytest.mark.parametrize("path", WHOLE)
def test_document_that_cannot_be_read_is_left_out_of_what_is_of_all(path: str) -> None:
    good = "good.example.io", document("good.example.io", {"properties": META})
    bad = document("evil.example.io", {"properties": META, "description": "SURROGATE"})
    evil = "evil.example.io", bad.replace(b"SURROGATE", b"\\ud800")
    found = made(path, evil, good)
    if path != "crds.yaml":
        assert b"good.example.io" in found
    if path == "index.json":
        assert orjson.loads(found)["absent"] == ["apis/evil.example.io/v1"]
    if path in ("all.json", "_definitions.json"):
        assert orjson.loads(found)["$comment"] == "without the kinds of: apis/evil.example.io/v1"


def test_file_of_the_document_itself_is_refused() -> None:
    bad = document("evil.example.io", {"description": "SURROGATE"}).replace(b"SURROGATE", b"\\ud800")
    file = file_wanted_at("evil.example.io/thing_v1.json")
    assert file is not None
    source = SchemaSource(GroupVersion("apis/evil.example.io/v1"), Hash("A"), bad)
    found = json_schema(file, [source], FileContext(tree="T"), coding=Coding.IDENTITY, limits=DEFAULT_LIMITS)
    assert isinstance(found, Unencodable)


@pytest.mark.parametrize("schema", ODD.values(), ids=ODD)
def test_odd_kind_costs_no_other(schema: dict[str, Any], tmp_path: Path) -> None:
    odd = "odd.example.io", document("odd.example.io", schema)
    good = "good.example.io", document("good.example.io", {"properties": META})
    for path in WHOLE:
        if path != "crds.yaml":
            assert b"good.example.io" in made(path, odd, good)
    assert b'"Thing"' in made("odd.example.io/thing_v1.json", odd)
    for group, body in (odd, good):
        folder = tmp_path / "documents" / "apis" / group
        folder.mkdir(parents=True)
        (folder / "v1.json").write_bytes(body)
    target = tmp_path / "out"
    outcome = CliRunner().invoke(main, ["schemas", str(target), "--directory", str(tmp_path / "documents")])
    assert outcome.exception is None or isinstance(outcome.exception, SystemExit), outcome.output
    assert (target / "good.example.io" / "thing_v1.json").is_file()
    assert (target / "all.json").is_file()
