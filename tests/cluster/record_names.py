"""Records what a real kube-apiserver says of names, labels and annotations, as creations that are dry runs.

    .venv/bin/python tests/cluster/record_names.py v1.37.2

The objects are those of ``recorded/names.jsonl.gz``; the rows of that release are written anew.
"""

from __future__ import annotations

import gzip
import http.client
import json
import ssl
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve()
sys.path.append(str(HERE.parents[1]))

from cluster.binaries import Binaries  # noqa: E402
from cluster.control_plane import ControlPlane  # noqa: E402

RECORDED = HERE.parents[1] / "schemas" / "validation" / "recorded" / "names.jsonl.gz"


def faults(plane: ControlPlane, value: dict[str, Any]) -> list[str] | None:
    """The causes of a refusal; None where something else than validation refused it."""
    api = value["apiVersion"]
    base = f"/apis/{api}" if "/" in api else f"/api/{api}"
    resources = plane.json(base)["resources"]
    found = next(each for each in resources if each["kind"] == value["kind"] and "/" not in each["name"])
    folder = f"{base}/namespaces/default" if found["namespaced"] else base
    context = ssl.create_default_context(cafile=str(plane.folder / "ca.crt"))
    context.load_cert_chain(plane.folder / "admin.crt", plane.folder / "admin.key")
    connection = http.client.HTTPSConnection("127.0.0.1", plane.port, timeout=60, context=context)
    try:
        fields = {"Content-Type": "application/json"}
        connection.request("POST", f"{folder}/{found['name']}?dryRun=All", json.dumps(value), fields)
        answer = connection.getresponse()
        status = json.loads(answer.read())
    finally:
        connection.close()
    if answer.status not in (201, 422):
        return None
    causes = status.get("details", {}).get("causes", []) if answer.status == 422 else []
    return [f"{cause['field']}: {cause['message']}" for cause in causes]


def main(version: str, rows: Iterable[dict[str, Any]]) -> None:
    release = ".".join(version.removeprefix("v").split(".")[:2])
    objects = {json.dumps(row["object"], sort_keys=True): row["object"] for row in rows}
    kept = [row for row in rows if row["release"] != release]
    with tempfile.TemporaryDirectory() as folder, ControlPlane(Binaries(version), Path(folder)) as plane:
        for value in objects.values():
            found = faults(plane, value)
            if found is not None:
                kept.append({"release": release, "object": value, "faults": found})
    text = "".join(f"{json.dumps(row)}\n" for row in kept)
    RECORDED.write_bytes(gzip.compress(text.encode(), 9, mtime=0))


if __name__ == "__main__":
    main(sys.argv[1], [json.loads(line) for line in gzip.decompress(RECORDED.read_bytes()).splitlines()])
