"""Reads while the apiserver is away, in each mode of authentication."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections import Counter
from collections.abc import Callable
from itertools import cycle
from pathlib import Path

import pytest

from cluster.control_plane import ControlPlane
from cluster.serving import serving, tls, until
from running.process import Process

AWAY = float(os.environ.get("SPECMUX_CLUSTER_OUTAGE", "120"))
"""Seconds."""
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
TOKEN = "a-token-of-the-file"

pytestmark = pytest.mark.timeout(900)

Get = Callable[..., tuple[int, bytes]]


def test_reads_go_on_for_every_caller_that_was_allowed(
    plane: ControlPlane, tmp_path: Path, tally: Callable[[str, int], None]
) -> None:
    """A caller that has read the root alone reads every document, and discovery, in an outage."""
    tokens = tmp_path / "tokens"
    tokens.write_text(f"{TOKEN},reader\n")
    known = {"Authorization": f"Bearer {plane.token('default', 'reader')}"}
    stranger = {"Authorization": f"Bearer {plane.token('specmux', 'specmux')}"}
    modes = {
        "none": ({"mode": "none"}, {}),
        "kubernetes": ({"mode": "kubernetes"}, known),
        "token-file": (
            {"mode": "token-file", "token_file": str(tokens)},
            {"Authorization": f"Bearer {TOKEN}"},
        ),
        "mtls": ({"mode": "mtls", "client_ca_file": str(plane.folder / "ca.crt")}, {}),
    }
    statuses: dict[str, Counter[str]] = {mode: Counter() for mode in modes}
    with contextlib.ExitStack() as stack:
        readers: dict[str, Callable[[str], int]] = {}
        targets = {}
        for mode, (auth, fields) in modes.items():
            process = stack.enter_context(serving(plane, tmp_path / mode, auth=auth, listen=tls(plane)))
            get = _as_a_caller(plane, process, fields)
            readers[mode] = lambda path, get=get: get(path)[0]
            root = json.loads(get("/openapi/v3")[1])["paths"]
            targets[mode] = cycle([item["serverRelativeURL"] for item in root.values()])
            if mode == "kubernetes":
                unknown = _as_a_caller(plane, process, stranger)
        time.sleep(15)  # prefetched by then
        plane.kill("apiserver")
        try:
            began = time.monotonic()
            while time.monotonic() - began < AWAY:
                for mode, status in readers.items():
                    for path in ("/openapi/v3", "/apis", "/api/v1", "/version"):
                        statuses[mode][f"{path} {status(path)}"] += 1
                    statuses[mode][f"document {status(next(targets[mode]))}"] += 1
                assert unknown("/openapi/v3")[0] == 503
                time.sleep(0.25)
        finally:
            plane.start_apiserver()
        until(lambda: unknown("/openapi/v3")[0] == 200, "a new token is reviewed again", 60)
    refused = {
        mode: {k: n for k, n in each.items() if not k.endswith(" 200")} for mode, each in statuses.items()
    }
    assert not any(refused.values()), refused
    for mode, each in statuses.items():
        tally(f"reads in an outage of {AWAY:g} s, auth.mode {mode}, all 200", each.total())


def _as_a_caller(plane: ControlPlane, process: Process, fields: dict[str, str]) -> Get:
    """With the administrator's certificate, which only the mode mtls looks at."""
    return lambda path, **more: plane.get(path, port=process.port, **fields, **more)
