"""Examples of the page, as a real apiserver takes them: created there, without being kept."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing

import pytest

from cluster.control_plane import ControlPlane
from specmux_converters.document import parse
from specmux_converters.group_versions import GroupVersion, split
from specmux_converters.synthesis import synthesise
from specmux_tools.explanation.skeleton import example
from specmux_tools.kinds import kinds_of

pytestmark = pytest.mark.timeout(900)

NEED_MORE = {"Binding", "ClusterTrustBundle", "PodCertificateRequest"}
"""The first a pod that there is; the others a certificate and a signed request of their reader's own."""


def test_every_example_is_accepted(plane: ControlPlane, tally: Callable[[str, int], None]) -> None:
    connection = plane.connection()

    def ask(method: str, target: str, body: str | None = None) -> tuple[int, bytes]:
        connection.request(method, target, body, {"Content-Type": "application/yaml"})
        answer = connection.getresponse()
        return answer.status, answer.read()

    account = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: default}\n"
    accepted, refused = 0, {}
    with closing(connection):
        ask("POST", "/api/v1/namespaces/default/serviceaccounts", account)  # no controller makes it here
        for name, item in json.loads(ask("GET", "/openapi/v3")[1])["paths"].items():
            key = GroupVersion(name)
            if split(key) is None or "wardle" in key:
                continue
            status, body = ask("GET", item["serverRelativeURL"])
            if status == 404:  # of a definition that another test deleted
                continue
            document = parse(body)
            schemas = {found.kind: found.schema for found in kinds_of(document, key)}
            for resource in synthesise(document, key):
                if "create" not in resource.verbs or resource.kind not in schemas:
                    continue
                text = example(document, resource.kind, schemas[resource.kind])
                where = "namespaces/default/" if resource.is_namespaced else ""
                target = f"/{key}/{where}{resource.name}?dryRun=All&fieldValidation=Strict"
                status, body = ask("POST", target, text)
                if status in (200, 201):
                    accepted += 1
                elif resource.kind.kind not in NEED_MORE:
                    refused[f"{key} {resource.kind.kind}"] = json.loads(body).get("message")
    tally("examples that an apiserver accepts", accepted)
    assert refused == {}
    assert accepted > 60
