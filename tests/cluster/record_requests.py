"""Records what a real kube-apiserver answers to the matrix of KEP-2885, as requests that are dry runs.

    .venv/bin/python tests/cluster/record_requests.py v1.37.2

Definition, stored objects and requests are those of ``recorded/requests-<release>.json.gz``, which is written
anew: with the objects as this apiserver stores them, and its answers.
"""

from __future__ import annotations

import gzip
import json
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

HERE = Path(__file__).resolve()
sys.path.append(str(HERE.parents[1]))

from cluster.binaries import Binaries  # noqa: E402
from cluster.control_plane import ControlPlane  # noqa: E402
from cluster.serving import until  # noqa: E402

RECORDED = HERE.parents[1] / "schemas" / "validation" / "recorded"
SET_BY_SERVER: Final = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields")


class Requests:
    """What is asked of one apiserver, as its administrator."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane

    def send(self, method: str, target: str, body: str, media_type: str) -> tuple[int, list[str], Any]:
        """Status, Warning fields and the object of the answer."""
        connection = self._plane.connection()
        try:
            fields = {"Content-Type": media_type, "Accept": "application/json"}
            connection.request(method, target, body.encode(), fields)
            answer = connection.getresponse()
            warnings = [value for name, value in answer.getheaders() if name.lower() == "warning"]
            return answer.status, warnings, json.loads(answer.read())
        finally:
            connection.close()

    def store(self, value: Mapping[str, Any], folder: str) -> dict[str, Any]:
        """The object as it is stored, which a request may mean by its resourceVersion."""
        metadata = {name: each for name, each in value["metadata"].items() if name not in SET_BY_SERVER}
        made = json.dumps({**value, "metadata": metadata})
        name = value["metadata"]["name"]
        until(
            lambda: self.send("POST", folder, made, "application/json")[0] in (201, 409), f"{name} is stored"
        )
        stored: dict[str, Any] = self._plane.json(f"{folder}/{name}")
        stored["metadata"].pop("managedFields", None)
        return stored

    def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        query = {"dryRun": "All", "fieldValidation": request["directive"]}
        if request["contentType"].startswith("application/apply-patch"):
            query |= {"fieldManager": "m", "force": "true"}
        target = f"{request['path']}?{urlencode(query)}"
        code, warnings, value = self.send(request["method"], target, request["body"], request["contentType"])
        answer: dict[str, Any] = {"code": code, "warnings": warnings}
        if code >= 300:
            told = ("message", "reason", "details")
            answer["status"] = {name: value[name] for name in told if value.get(name) is not None}
        return answer


def recorded_anew(recorded: dict[str, Any], plane: ControlPlane) -> dict[str, Any]:
    requests = Requests(plane)
    plane.apply(json.dumps(recorded["definition"]))
    folders = {each["kind"]: each["path"] for each in recorded["requests"] if each["operation"] == "create"}
    stored = {kind: requests.store(value, folders[kind]) for kind, value in recorded["stored"].items()}
    rows = []
    for row in recorded["requests"]:
        old, new = (each[row["kind"]]["metadata"]["resourceVersion"] for each in (recorded["stored"], stored))
        body = row["body"].replace(f'"{old}"', f'"{new}"')
        rows.append({**row, "body": body, "answer": requests.answer({**row, "body": body})})
    return {**recorded, "stored": stored, "requests": rows}


def main(version: str) -> None:
    release = ".".join(version.removeprefix("v").split(".")[:2])
    path = RECORDED / f"requests-{release}.json.gz"
    recorded = json.loads(gzip.decompress(path.read_bytes()))
    with tempfile.TemporaryDirectory() as folder, ControlPlane(Binaries(version), Path(folder)) as plane:
        made = recorded_anew(recorded, plane)
    path.write_bytes(gzip.compress(json.dumps(made).encode(), 9, mtime=0))


if __name__ == "__main__":
    main(sys.argv[1])
