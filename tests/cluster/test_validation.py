"""What a real apiserver and kubectl say to more than a hundred faulty manifests, and what we say."""

from __future__ import annotations

import http.client
import json
import re
import ssl
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from cluster.binaries import VERSION
from cluster.control_plane import ControlPlane
from cluster.faulty_manifests import DEFINITION, DESCRIBED, GROUP, IN_CODE
from specmux_converters.group_versions import GroupVersion, split
from specmux_converters.releases import minor_release
from specmux_converters.synthesis import synthesise
from specmux_tools.kinds import DocumentSet
from specmux_tools.validation import Directive, ValidationReport, Validator
from specmux_tools.validation.decoding.body import read
from specmux_tools.validation.messages import report_warnings, status_of, warning_fields
from specmux_tools.validation.requests import BodyFormat

pytestmark = pytest.mark.timeout(900)

RELEASE = VERSION.removeprefix("v").rpartition(".")[0]

REST_IN_CODE = {
    "old fields of an ingress": "it needs a backend or rules, in code",
    "unknown in a job": "a template's defaults come before its requirements, in code",
    "unknown in a rule": "what is required is said in other words, in code",
    "unknown in an autoscaler": "zero is too few, in code",
    "unknown in a definition": "a definition's own rules, in code",
    "unknown in a webhook": "what is required is said in other words, in code",
}
"""Refused beside their unknown field, once that is a warning alone."""


IN_DOCUMENTS = {"unknown in a rule", "a role without verbs"} if minor_release(RELEASE) >= 37 else set[str]()
"""Of the faults above, and of those in code, what the documents say since 1.37: verbs are required."""
REST = REST_IN_CODE.keys() - IN_DOCUMENTS

REFUSED_BY_KUBECTL = {"label that is a number", "time", "custom: annotation of a wrong type"}
"""kubectl reads metadata itself, and asks no server then: in words of its own."""


@dataclass(frozen=True)
class Server:
    plane: ControlPlane
    validator: Validator
    documents: DocumentSet

    def post(self, manifest: str, directive: Directive) -> tuple[dict[str, Any] | None, list[str]]:
        """The Status of a refusal, and the Warning fields."""
        file = self.plane.folder.joinpath
        context = ssl.create_default_context(cafile=str(file("ca.crt")))
        context.load_cert_chain(file("admin.crt"), file("admin.key"))
        connection = http.client.HTTPSConnection("127.0.0.1", self.plane.port, timeout=30, context=context)
        try:
            target = f"{self._path(manifest)}?dryRun=All&fieldValidation={directive.value}"
            connection.request("POST", target, manifest.encode(), {"Content-Type": "application/yaml"})
            answer = connection.getresponse()
            told = json.loads(answer.read())
            return (told if answer.status >= 400 else None), answer.msg.get_all("Warning") or []
        finally:
            connection.close()

    def _path(self, manifest: str) -> str:
        version, kind = (
            re.search(rf"^{name}: (.+)$", manifest, re.MULTILINE)[1]  # type: ignore[index]
            for name in ("apiVersion", "kind")
        )
        key = GroupVersion(f"apis/{version}" if "/" in version else f"api/{version}")
        resource = next(
            each for each in synthesise(self.documents.documents[key], key) if each.kind.kind == kind
        )
        where = "namespaces/default/" if resource.is_namespaced else ""
        return f"/{key}/{where}{resource.name}"

    def kubectl(self, manifest: str, validate: str) -> list[str]:
        """Lines of the errors and warnings."""
        command = [
            "kubectl",
            f"--kubeconfig={self.plane.admin}",
            f"--cache-dir={self.plane.folder / 'kubectl'}",
        ]
        done = subprocess.run(
            [*command, "apply", "--dry-run=server", f"--validate={validate}", "-f", "-"],
            input=manifest,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        return sorted(line for line in done.stderr.splitlines() if line.strip())

    def report(self, manifest: str, directive: Directive) -> ValidationReport:
        return self.validator.validate(manifest.encode(), "application/yaml", directive)

    def sent_by_kubectl(self, manifest: str, directive: Directive) -> ValidationReport:
        """kubectl sends JSON: it lets go of what YAML said twice."""
        body = read(manifest.encode(), BodyFormat.YAML)
        return self.validator.validate(json.dumps(body.value).encode(), "application/json", directive)


@pytest.fixture(scope="module")
def server(plane: ControlPlane) -> Iterator[Server]:
    plane.apply(json.dumps(DEFINITION))
    account = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": "default", "namespace": "default"},
    }
    plane.apply(json.dumps(account))
    deadline = time.monotonic() + 60
    while f"apis/{GROUP}/v1" not in (paths := plane.json("/openapi/v3")["paths"]):
        assert time.monotonic() < deadline
        time.sleep(0.5)
    keys = [key for key in paths if split(GroupVersion(key)) is not None]
    found = DocumentSet({GroupVersion(key): plane.json(paths[key]["serverRelativeURL"]) for key in keys})
    yield Server(plane, Validator(found, release=RELEASE), found)
    plane.kubectl("delete", "crd", f"widgets.{GROUP}")


def said(status: dict[str, Any] | None) -> Any:
    """A Status without the order of its causes, which is that of a Go map."""
    if status is None:
        return None
    causes = sorted((status.get("details") or {}).get("causes") or [], key=json.dumps)
    message = status["message"].partition(" is invalid: ")[0] if causes else status["message"]
    return status["code"], status["reason"], message, causes


def printed(report: ValidationReport) -> list[str]:
    """As kubectl prints it."""
    lines = [f"Warning: {text}" for text in dict.fromkeys(report_warnings(report))]
    status = status_of(report)
    if status is None:
        return sorted(lines)
    if status["reason"] != "Invalid":
        error = f'Error from server (BadRequest): error when creating "STDIN": {status["message"]}'
        return sorted([*lines, *error.splitlines()])
    details = status["details"]
    causes = [f"{cause['field']}: {cause['message']}" for cause in details["causes"]]
    head = f'The {details["kind"]} "{details["name"]}" is invalid: '
    return sorted(
        [*lines, head + causes[0]] if len(causes) == 1 else [*lines, head, *(f"* {each}" for each in causes)]
    )


def test_answers_are_the_apiservers(server: Server, tally: Callable[[str, int], None]) -> None:
    faults, equal = [], 0
    for name, manifest in DESCRIBED.items():
        for directive in (Directive.STRICT, Directive.WARN):
            status, warnings = server.post(manifest, directive)
            report = server.report(manifest, directive)
            is_listed = name in REST and directive is Directive.WARN
            ours = said(status_of(report)), warning_fields(report_warnings(report))
            if (ours == (said(status), warnings)) is is_listed or ours[1] != warnings:
                faults.append(f"{name}, {directive.value}: {ours!r} instead of {(said(status), warnings)!r}")
            equal += not is_listed
    tally("manifests with faults, answers of a real apiserver equal", equal)
    tally("manifests with faults, answers that differ, listed", len(REST))
    assert not faults, "\n".join(faults)


def test_answers_are_what_kubectl_prints(server: Server, tally: Callable[[str, int], None]) -> None:
    faults, equal = [], 0
    for name, manifest in DESCRIBED.items():
        for validate, directive in (("strict", Directive.STRICT), ("warn", Directive.WARN)):
            is_listed = name in REST and directive is Directive.WARN
            if is_listed or name in REFUSED_BY_KUBECTL:
                continue
            theirs = server.kubectl(manifest, validate)
            ours = printed(server.sent_by_kubectl(manifest, directive))
            if ours == theirs:
                equal += 1
            else:
                faults.append(f"{name}, {validate}: {ours!r} instead of {theirs!r}")
    tally("manifests with faults, what kubectl prints equal", equal)
    assert not faults, "\n".join(faults)


def test_faults_found_in_code_are_refused_there(server: Server, tally: Callable[[str, int], None]) -> None:
    for name, manifest in IN_CODE.items():
        if name in IN_DOCUMENTS:
            continue
        status, _ = server.post(manifest, Directive.STRICT)
        assert status is not None, name
        assert said(status) != said(status_of(server.report(manifest, Directive.STRICT))), name
    tally(
        "manifests with faults that an apiserver finds in code, not compared",
        len(IN_CODE) - len(IN_DOCUMENTS & IN_CODE.keys()),
    )
