"""Objects of one custom resource as an apiserver keeps them: created, read, patched, applied and deleted."""

from __future__ import annotations

import uuid
from typing import Any

import orjson
import yaml
from aiohttp import web

from fakes.cluster import status

APPLY = "application/apply-patch+yaml"


class CustomObjects:
    """Those of a resource of the group-version ``key`` in one namespace. Fields but ``spec_fields`` are
    unknown, and refused where a client validates strictly."""

    def __init__(
        self, key: str, plural: str, kind: str, *, spec_fields: set[str], namespace: str = "default"
    ) -> None:
        self.root = f"/{key}/namespaces/{namespace}/{plural}"
        self.objects: dict[str, dict[str, Any]] = {}
        self._group_version = key.removeprefix("apis/")
        self._kind = kind
        self._namespace = namespace
        self._spec_fields = spec_fields
        self._version = 0

    def has(self, path: str) -> bool:
        return path == self.root or path.startswith(f"{self.root}/")

    async def answer(self, request: web.Request) -> web.Response:
        name = request.path[len(self.root) + 1 :]
        if request.method == "GET":
            return self._read(name) if name else self._list()
        body = await request.read()
        if request.method == "DELETE":
            return self._delete(name)
        sent = yaml.safe_load(body)
        unknown = sorted(set(sent.get("spec", {})) - self._spec_fields)
        if unknown and request.query.get("fieldValidation") == "Strict":
            return status(400, f'strict decoding error: unknown field "spec.{unknown[0]}"')
        if request.method == "POST":
            name = sent["metadata"]["name"]
            if name in self.objects:
                return status(409, "AlreadyExists")
        return self._write(request, name, sent)

    def _write(self, request: web.Request, name: str, sent: dict[str, Any]) -> web.Response:
        before = self.objects.get(name)
        is_apply = request.content_type == APPLY
        if request.method == "PATCH":
            if before is None and not is_apply:
                return status(404, "NotFound")
            sent = _merged(before or {}, sent)
        self._version += 1
        stored = {**sent, "apiVersion": self._group_version, "kind": self._kind}
        stored["metadata"] = {
            "uid": before["metadata"]["uid"] if before else str(uuid.uuid4()),
            "creationTimestamp": "2026-01-01T00:00:00Z",
            **sent["metadata"],
            "namespace": self._namespace,
            "resourceVersion": str(self._version),
        }
        if is_apply:
            stored["metadata"]["managedFields"] = [
                {"manager": request.query["fieldManager"], "operation": "Apply"}
            ]
        if "dryRun" not in request.query:
            self.objects[name] = stored
        return _answer(stored, 200 if before else 201)

    def _read(self, name: str) -> web.Response:
        return _answer(self.objects[name]) if name in self.objects else status(404, "NotFound")

    def _list(self) -> web.Response:
        return _answer(
            {
                "apiVersion": self._group_version,
                "kind": f"{self._kind}List",
                "metadata": {"resourceVersion": str(self._version)},
                "items": list(self.objects.values()),
            }
        )

    def _delete(self, name: str) -> web.Response:
        gone = self.objects.pop(name, None)
        if gone is None:
            return status(404, "NotFound")
        details = {"name": name, "uid": gone["metadata"]["uid"]}
        return _answer({"apiVersion": "v1", "kind": "Status", "status": "Success", "details": details})


def _answer(item: dict[str, Any], code: int = 200) -> web.Response:
    return web.Response(status=code, body=orjson.dumps(item), content_type="application/json")


def _merged(old: Any, patch: Any) -> Any:
    """RFC 7396."""
    if not isinstance(patch, dict):
        return patch
    kept = old if isinstance(old, dict) else {}
    changed = {key: _merged(kept.get(key), value) for key, value in patch.items() if value is not None}
    return {key: value for key, value in {**kept, **changed}.items() if patch.get(key, value) is not None}
