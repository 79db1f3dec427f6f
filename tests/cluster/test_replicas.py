"""Three replicas behind nginx, one request each in turn, while definitions come, change and go."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from cluster.control_plane import ControlPlane
from cluster.nginx import nginx
from cluster.objects import as_list, crd
from cluster.serving import serving, tls, until

REPLICAS = 3
READERS = 4
ROUNDS = 12
DEFINITIONS = 8

pytestmark = pytest.mark.timeout(1200)


def test_replicas_behind_nginx_agree_while_definitions_change(
    plane: ControlPlane, tmp_path: Path, tally: Callable[[str, int], None]
) -> None:
    with contextlib.ExitStack() as stack:
        replicas = [
            stack.enter_context(serving(plane, tmp_path / str(number), listen=tls(plane)))
            for number in range(REPLICAS)
        ]
        front = stack.enter_context(nginx(plane, tmp_path / "nginx", "http", *(r.port for r in replicas)))
        reading = Reading(plane, front)
        with ThreadPoolExecutor(READERS) as pool:
            over = threading.Event()
            tasks = [pool.submit(reading.read, over) for _ in range(READERS)]
            try:
                for number in range(ROUNDS):
                    plane.apply(as_list(*(definition(each, number) for each in range(DEFINITIONS))))
                    time.sleep(1)
                    if number % 3 == 2:
                        plane.kubectl("delete", "crd", "churn0s.c0.churn.example.com")
                plane.apply(as_list(*(definition(each, ROUNDS) for each in range(DEFINITIONS))))
            finally:
                over.set()
            for task in tasks:
                task.result()
        keys = {f"apis/c{each}.churn.example.com/v1" for each in range(DEFINITIONS)}

        def agree() -> bool:
            roots = [replica.paths() for replica in replicas]
            return keys <= roots[0].keys() and all(root == roots[0] for root in roots)

        until(agree, "all replicas have the same root")
        plane.kubectl(
            "delete",
            "--wait=false",
            "crd",
            *(f"churn{n}s.c{n}.churn.example.com" for n in range(DEFINITIONS)),
        )
    print(reading.statuses, reading.redirects)
    assert max(reading.redirects) <= 1
    assert reading.wrong == []
    # A definition that was deleted meanwhile is found by nobody.
    assert {status for status in reading.statuses if status not in (200, 404)} == set(), reading.statuses
    assert all("/c0." in key for key in reading.absent), reading.absent
    tally("documents through nginx in front of three replicas, none wrong", reading.statuses[200])


def definition(number: int, turn: int) -> dict[str, Any]:
    made = crd(f"Churn{number}", group=f"c{number}.churn.example.com")
    schema = made["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["description"] = f"Turn {turn}."
    return made


class Reading:
    """Reads the root and all that it lists, redirects followed by hand."""

    def __init__(self, plane: ControlPlane, port: int) -> None:
        self._plane = plane
        self._port = port
        self._bodies: dict[str, str] = {}
        """By URL with its hash, of answers that are immutable."""
        self.statuses: Counter[int] = Counter()
        self.redirects: Counter[int] = Counter()
        self.wrong: list[str] = []
        self.absent: set[str] = set()

    def read(self, over: threading.Event) -> None:
        with contextlib.closing(self._plane.connection(self._port)) as connection:

            def get(path: str) -> tuple[int, dict[str, str], bytes]:
                connection.request("GET", path)
                answer = connection.getresponse()
                return answer.status, dict(answer.getheaders()), answer.read()

            while not over.is_set():
                status, _, body = get("/openapi/v3")
                self.statuses[status] += 1
                for key, item in json.loads(body)["paths"].items() if status == 200 else ():
                    self._follow(get, key, item["serverRelativeURL"])

    def _follow(self, get: Callable[[str], tuple[int, dict[str, str], bytes]], key: str, target: str) -> None:
        followed = 0
        status, fields, body = get(target)
        while status == 301 and followed < 5:
            followed += 1
            target = fields["Location"]
            target = target if target.startswith("/") else f"/openapi/v3/{key}{target[target.index('?') :]}"
            status, fields, body = get(target)
        self.statuses[status] += 1
        self.redirects[followed] += 1
        if status == 404:
            self.absent.add(target)
        if status == 200 and "immutable" in fields.get("Cache-Control", ""):
            digest = sha256(body).hexdigest()
            if self._bodies.setdefault(target.replace("&redirected=1", ""), digest) != digest:
                self.wrong.append(target)
