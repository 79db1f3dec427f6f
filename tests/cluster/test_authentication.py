"""Who may read, as a real apiserver decides it; and what our own account uses of its rights."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from cluster.control_plane import ControlPlane
from cluster.serving import serving, until

pytestmark = pytest.mark.timeout(600)

NOBODY = """
apiVersion: v1
kind: ServiceAccount
metadata: {name: leaving, namespace: default}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: plain, namespace: default}
"""
DOCUMENT = "apis/apps/v1"


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def test_tokens_are_let_in_as_the_apiserver_lets_them_in(plane: ControlPlane, tmp_path: Path) -> None:
    plane.apply(NOBODY)
    token = plane.token("default", "plain")
    with serving(plane, tmp_path, auth={"mode": "kubernetes"}) as process:
        for path in ("/openapi/v3", "/apis", "/api/v1", "/version"):
            assert process.get(path, **bearer(token))[0] == 200, path
            assert process.get(path, **bearer(token + "x"))[0] == 401, path
            assert process.get(path)[0] == 401, path
        assert process.get("/metrics", **bearer(token))[0] == 403


def test_restart_of_the_apiserver_stops_nobody_from_reading(plane: ControlPlane, tmp_path: Path) -> None:
    token = plane.token("default", "reader")
    stranger = plane.token("specmux", "specmux")
    with serving(plane, tmp_path, auth={"mode": "kubernetes", "cache_seconds": 1}) as process:
        fields = bearer(token)
        root = json.loads(process.get("/openapi/v3", **fields)[2])["paths"]
        target = root[DOCUMENT]["serverRelativeURL"]
        assert process.get(target, **fields)[0] == 200
        plane.kill("apiserver")
        try:
            time.sleep(2)
            slowest = 0.0
            for _ in range(20):
                began = time.monotonic()
                assert process.get("/openapi/v3", **fields)[0] == 200
                assert process.get(target, **fields)[0] == 200
                slowest = max(slowest, time.monotonic() - began)
                time.sleep(0.2)
            assert slowest < 5
            assert process.get("/openapi/v3", **bearer(stranger))[0] == 503
        finally:
            plane.start_apiserver()
        until(lambda: process.get("/openapi/v3", **bearer(stranger))[0] == 200, "reviewed again", 30)


def test_token_that_is_revoked_is_refused_in_time(plane: ControlPlane, tmp_path: Path) -> None:
    plane.apply(NOBODY)
    token = plane.token("default", "leaving")
    with serving(plane, tmp_path, auth={"mode": "kubernetes", "cache_seconds": 2}) as process:
        assert process.get("/openapi/v3", **bearer(token))[0] == 200
        plane.kubectl("-n", "default", "delete", "serviceaccount", "leaving")
        until(lambda: process.get("/openapi/v3", **bearer(token))[0] == 401, "revoked", 15)


def test_nothing_is_lacking_of_our_rights(plane: ControlPlane, tmp_path: Path) -> None:
    plane.audit_log.write_text("")
    token = plane.token("default", "reader")
    with serving(plane, tmp_path, auth={"mode": "kubernetes"}) as process:
        fields = bearer(token)
        root = json.loads(process.get("/openapi/v3", **fields)[2])["paths"]
        assert process.get(root[DOCUMENT]["serverRelativeURL"], **fields)[0] == 200
        time.sleep(12)
    events = [json.loads(line) for line in plane.audit_log.read_text().splitlines() if line.strip()]
    refused = {event["requestURI"] for event in events if event.get("responseStatus", {}).get("code") == 403}
    assert events
    assert refused == set()
