"""What a real apiserver says to random objects of real definitions, beside the service and the command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from cluster.binaries import VERSION, Binaries
from cluster.control_plane import ControlPlane
from cluster.custom_objects import ObjectMaker
from cluster.objects import as_list
from cluster.serving import serving, until
from cluster.test_documents import definitions
from cluster.test_validation import said
from running.process import Process

SEED = int(os.environ.get("SPECMUX_CLUSTER_SEED", "1"))
OBJECTS = int(os.environ.get("SPECMUX_CLUSTER_OBJECTS", "3"))
"""For each version of each definition: one as it was made, the others changed."""

pytestmark = pytest.mark.timeout(1800)

DEPRECATED = "deprecated"
"""In the warnings of versions that their definition deprecates, which no document tells."""
SCALE = " accessor error: "
"""In the causes of an object whose scale cannot be read: no document names the paths to it."""

Answer = tuple[Any, list[str]]
"""A Status without the order of its causes, None for what is accepted; and the Warning fields."""


@dataclass(frozen=True)
class Case:
    """One request, with the apiserver's answer."""

    object: dict[str, Any]
    old: dict[str, Any] | None
    theirs: Answer

    @property
    def name(self) -> str:
        given = self.object
        return f"{given['apiVersion']} {given['kind']} {given['metadata']['name']}"


@dataclass(frozen=True)
class Served:
    """A cluster with the definitions, a service in front of it, and what the apiserver said."""

    plane: ControlPlane
    process: Process
    cases: list[Case]


@pytest.fixture(scope="module")
def served(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("custom")
    items = [_without_webhook(item) for item in definitions()]
    with ControlPlane(binaries, folder / "cluster") as plane:  # one of its own: to delete takes minutes
        plane.apply(as_list(*items))
        with serving(plane, folder, validation={"enabled": True}) as process:
            keys = {f"apis/{item['spec']['group']}/{version['name']}" for item, version in _versions(items)}
            until(lambda: keys <= set(process.paths()), "all published", 300)
            until(lambda: keys <= plane.json("/openapi/v3")["paths"].keys(), "upstream too", 300)
            yield Served(plane, process, list(_cases(plane, items)))


def _without_webhook(item: dict[str, Any]) -> dict[str, Any]:
    spec = {key: value for key, value in item["spec"].items() if key != "conversion"}
    return {**item, "spec": spec}


def _versions(items: list[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    for item in {item["metadata"]["name"]: item for item in items}.values():
        yield from ((item, version) for version in item["spec"]["versions"] if version["served"])


def _cases(plane: ControlPlane, items: list[dict[str, Any]]) -> Iterator[Case]:
    """Creations that are not kept; where the first one is right, it is kept and updated as well."""
    for item, version in _versions(items):
        maker = ObjectMaker(item, version, SEED)
        where = "namespaces/default/" if item["spec"]["scope"] == "Namespaced" else ""
        target = f"/apis/{item['spec']['group']}/{version['name']}/{where}{item['spec']['names']['plural']}"
        made = [maker.made(f"made-{version['name']}-{number}") for number in range(OBJECTS)]
        if not where:
            for each in made:
                del each["metadata"]["namespace"]
        for each in (made[0], *map(maker.changed, made)):
            status, told, warnings = _sent(plane, "POST", f"{target}?dryRun=All&{STRICT}", each)
            yield Case(each, None, (said(told if status >= 400 else None), warnings))
        for each in made:
            status, stored, _ = _sent(plane, "POST", target, each)
            if status != 201:
                continue
            for _ in range(OBJECTS):
                new = maker.changed(stored)
                status, told, warnings = _sent(
                    plane, "PUT", f"{target}/{each['metadata']['name']}?dryRun=All&{STRICT}", new
                )
                yield Case(new, stored, (said(told if status >= 400 else None), warnings))
            break


STRICT = "fieldValidation=Strict"


def _sent(plane: ControlPlane, method: str, target: str, body: Any) -> tuple[int, dict[str, Any], list[str]]:
    return _asked(plane.connection(), method, target, body)


def _asked(
    connection: HTTPConnection, method: str, target: str, body: Any
) -> tuple[int, dict[str, Any], list[str]]:
    try:
        connection.request(method, target, json.dumps(body), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read()), answer.msg.get_all("Warning") or []
    finally:
        connection.close()


def described(theirs: Answer) -> Answer:
    """An answer without what the documents of a definition do not say."""
    status, warnings = theirs
    warnings = [each for each in warnings if DEPRECATED not in each]
    if status is not None:
        *rest, causes = status
        status = (*rest, [each for each in causes if SCALE not in each["message"]])
    return status, warnings


def test_post_validate_answers_as_the_apiserver(served: Served, tally: Callable[[str, int], None]) -> None:
    faults = []
    for case in served.cases:
        body: dict[str, Any] = case.object
        if case.old is not None:
            body = {
                "apiVersion": "specmux/v1",
                "kind": "ValidationReview",
                "operation": "UPDATE",
                "object": case.object,
                "oldObject": case.old,
            }
        connection = HTTPConnection("127.0.0.1", served.process.port, timeout=30)
        status, told, warnings = _asked(connection, "POST", f"/openapi/validate?{STRICT}", body)
        ours = said(told if status >= 400 else None), warnings
        if ours != described(case.theirs):
            how = "created" if case.old is None else "updated"
            faults.append(f"{case.name}, {how}: {ours!r} instead of {case.theirs!r}")
    assert not faults, f"{len(faults)} of {len(served.cases)}:\n" + "\n".join(faults)
    tally(f"random custom resources, answers of {VERSION} equal", len(served.cases))


@pytest.mark.parametrize("source", ["server", "kubeconfig"])
def test_the_command_has_the_apiservers_verdicts(
    served: Served, tmp_path: Path, source: str, tally: Callable[[str, int], None]
) -> None:
    created = [case for case in served.cases if case.old is None]
    for number, case in enumerate(created):
        (tmp_path / f"{number}.json").write_text(json.dumps(case.object))
    given = f"http://127.0.0.1:{served.process.port}" if source == "server" else str(served.plane.admin)
    command = [sys.executable, "-m", "specmux_aggregator.cli", "validate", f"--{source}", given]
    done = subprocess.run(
        [*command, "--release", VERSION.removeprefix("v").rpartition(".")[0], "-o", "json", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    found = {Path(each["file"]).stem: each for each in json.loads(done.stdout)["objects"]}
    assert len(found) == len(created)
    faults = [
        f"{case.name}: {found[str(number)]} instead of {case.theirs!r}"
        for number, case in enumerate(created)
        if (found[str(number)]["status"] == "valid") is not (case.theirs[0] is None)
    ]
    assert not faults, f"{len(faults)} of {len(created)}:\n" + "\n".join(faults)
    tally(f"random custom resources, verdicts of {VERSION}, by {source}", len(created))
