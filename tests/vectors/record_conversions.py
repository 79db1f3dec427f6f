"""Write ``conversions.jsonl``: what kube-openapi's openapiconv makes of Swagger 2.0 documents of ours.

cd tests/benchmarks/go && go build -o /tmp/openapiconv ./convert
.venv/bin/python tests/vectors/record_conversions.py /tmp/openapiconv
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import orjson

RECORDED: Final = Path(__file__).with_name("conversions.jsonl")
DEFECTS: Final = Path(__file__).resolve().parents[1] / "recorded/data/defects"
GVK: Final = {"group": "example.com", "version": "v1", "kind": "Box"}
BOX: Final = {
    "type": "object",
    "description": "A box.",
    "required": ["spec"],
    "properties": {
        "apiVersion": {"type": "string"},
        "spec": {"$ref": "#/definitions/com.example.v1.BoxSpec"},
        "parts": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
    },
    "x-kubernetes-group-version-kind": [GVK],
}
SPEC: Final = {
    "type": "object",
    "properties": {
        "size": {"type": "integer", "format": "int32", "minimum": 0, "default": 1},
        "port": {"type": "string", "format": "int-or-string"},
    },
}
PATHS: Final = {
    "/apis/example.com/v1/boxes": {
        "get": {
            "operationId": "listBoxes",
            "produces": ["application/json", "application/yaml"],
            "parameters": [{"name": "limit", "in": "query", "type": "integer", "uniqueItems": True}],
            "responses": {
                "200": {"description": "OK", "schema": {"$ref": "#/definitions/com.example.v1.Box"}}
            },
            "x-kubernetes-action": "list",
        },
        "post": {
            "operationId": "createBox",
            "consumes": ["application/json"],
            "produces": ["application/json"],
            "parameters": [
                {
                    "name": "body",
                    "in": "body",
                    "required": True,
                    "schema": {"$ref": "#/definitions/com.example.v1.Box"},
                }
            ],
            "responses": {"401": {"description": "Unauthorized"}},
        },
        "parameters": [{"name": "pretty", "in": "query", "type": "string", "description": "Indented."}],
    }
}


def documents() -> dict[str, Any]:
    head = {"swagger": "2.0", "info": {"title": "t", "version": "1"}}
    definitions = {"com.example.v1.Box": BOX, "com.example.v1.BoxSpec": SPEC}
    made = {
        "kinds": {**head, "paths": {}, "definitions": definitions},
        "paths": {**head, "paths": PATHS, "definitions": definitions},
        "nothing": {**head, "paths": {}},
    }
    found = {path.stem[3:]: path.read_bytes() for path in sorted(DEFECTS.glob("[01]*.json"))}
    return made | {name: orjson.loads(data) for name, data in found.items() if b'"swagger"' in data}


def main() -> None:
    asked = documents()
    lines = [
        orjson.dumps({"id": name, "task": "convert", "input": {"document": each}})
        for name, each in asked.items()
    ]
    done = subprocess.run([sys.argv[1]], input=b"\n".join(lines), capture_output=True, check=True)
    told = [orjson.loads(line) for line in done.stdout.splitlines()]
    rows = [{"name": each.pop("id"), **each} for each in told]
    texts = (orjson.dumps({**row, "document": asked[row["name"]]}) for row in rows)
    RECORDED.write_bytes(b"\n".join(texts) + b"\n")


if __name__ == "__main__":
    main()
