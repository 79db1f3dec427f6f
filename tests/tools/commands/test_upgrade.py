"""``specmux upgrade`` as users run it: definitions and releases beside objects, forms, exit codes."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml
from click.testing import CliRunner, Result

from shared_data import DATA, needs
from specmux_aggregator.cli import main
from specmux_converters.releases import RELEASES
from specmux_tools.kind_lifecycles import REMOVED
from specmux_tools.reports import FORMS

PAIRS = DATA / "k8s-pairs"
PLUTO = """
    1.16 apps/v1beta1 Deployment StatefulSet
    1.16 apps/v1beta2 DaemonSet Deployment ReplicaSet StatefulSet
    1.16 extensions/v1beta1 DaemonSet Deployment NetworkPolicy PodSecurityPolicy ReplicaSet
    1.17 scheduling.k8s.io/v1alpha1 PriorityClass
    1.22 admissionregistration.k8s.io/v1beta1 MutatingWebhookConfiguration ValidatingWebhookConfiguration
    1.22 apiextensions.k8s.io/v1beta1 CustomResourceDefinition
    1.22 apiregistration.k8s.io/v1beta1 APIService
    1.22 authentication.k8s.io/v1beta1 TokenReview
    1.22 certificates.k8s.io/v1beta1 CertificateSigningRequest
    1.22 coordination.k8s.io/v1beta1 Lease
    1.22 extensions/v1beta1 Ingress
    1.22 networking.k8s.io/v1beta1 Ingress IngressClass
    1.23 rbac.authorization.k8s.io/v1alpha1 ClusterRole ClusterRoleBinding Role RoleBinding
    1.22 rbac.authorization.k8s.io/v1beta1 ClusterRole ClusterRoleBinding Role RoleBinding
    1.22 scheduling.k8s.io/v1beta1 PriorityClass
    1.22 storage.k8s.io/v1beta1 CSIDriver CSINode StorageClass VolumeAttachment
    1.25 autoscaling/v2beta1 HorizontalPodAutoscaler
    1.25 batch/v1beta1 CronJob
    1.25 discovery.k8s.io/v1beta1 EndpointSlice
    1.25 events.k8s.io/v1beta1 Event
    1.25 node.k8s.io/v1beta1 RuntimeClass
    1.25 policy/v1beta1 PodDisruptionBudget PodSecurityPolicy
    1.26 autoscaling/v2beta2 HorizontalPodAutoscaler
    1.27 storage.k8s.io/v1beta1 CSIStorageCapacity
"""
"""What pluto's versions.yaml (0c240f6) has of Kubernetes: the release, the version and its kinds. Its lists
are opened. Its FlowControl is no kind, apps/v1beta1 never had ReplicaSet, and rbac v1alpha1 went in 1.23."""
REMOVED_KINDS = {f"{version} {kind}" for version, kind in REMOVED}
STRING = {"type": "string"}


def run(*arguments: Any, stdin: bytes | None = None) -> Result:
    return CliRunner().invoke(main, ["upgrade", *map(str, arguments)], input=stdin)


def definition(*versions: str, **spec: Any) -> dict[str, Any]:
    """Of Widgets, whose spec has these fields; the last version is stored."""
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": spec}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [
                {
                    "name": name,
                    "served": True,
                    "storage": name == versions[-1],
                    "schema": {"openAPIV3Schema": schema},
                }
                for name in versions
            ],
        },
    }


def widget(version: str = "v1", **spec: Any) -> dict[str, Any]:
    head = {"apiVersion": f"example.com/{version}", "kind": "Widget", "metadata": {"name": "a"}}
    return {**head, "spec": spec}


def written(path: Path, *values: Any) -> Path:
    path.write_bytes(yaml.safe_dump_all(values).encode())
    return path


@pytest.fixture
def sides(tmp_path: Path) -> list[Any]:
    before = definition("v1beta1", "v1", mode={"type": "string", "default": "a"}, old=STRING, name=STRING)
    short = {"type": "string", "maxLength": 3}
    after = definition("v1", mode={"type": "string", "default": "b"}, name=short)
    sides = written(tmp_path / "before.yaml", before), written(tmp_path / "after.yaml", after)
    return ["--from", sides[0], "--to", sides[1]]


def told(result: Result) -> list[str]:
    return result.stdout.splitlines()


def test_missing_target_is_explained_with_the_releases_that_are_known(tmp_path: Path) -> None:
    manifest = tmp_path / "d.yaml"
    manifest.write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")
    found = run(manifest)
    assert found.exit_code == 2
    assert "--to is missing: objects are validated under what will serve them" in found.stderr
    assert (
        f"{RELEASES[0]} to {RELEASES[-1]}, such as --to {RELEASES[-1]}, or documents: a file" in found.stderr
    )
    assert "no objects: name manifests as PATH" in run("--to", RELEASES[-1]).stderr


def test_what_an_upgrade_breaks_is_reported_with_its_place(sides: list[Any], tmp_path: Path) -> None:
    objects = written(
        tmp_path / "objects.yaml",
        widget("v1beta1", mode="x"),
        widget(mode="x", old="y", name="abcd"),
        widget(name="abc"),
        widget(mode="a"),
    )
    result = run(*sides, objects)
    where = "example.com/v1beta1 Widget is not served any more: example.com/v1 has Widget"
    assert told(result) == [
        f"{objects}:1:1: error: Widget a: {where}",
        f'{objects}:15:3: error: Widget a: unknown field "spec.old"',
        f"{objects}:14:3: error: Widget a: spec.name: Too long: may not be more than 3 bytes",
        f"{objects}:21:1: warning: Widget a: spec.mode: the default changed: a became b",
        "Summary: 4 objects: 1 ready, 1 changed, 2 not-ready",
    ]
    assert result.exit_code == 1


def test_a_list_of_a_kind_is_opened(sides: list[Any], tmp_path: Path) -> None:
    """Items of a CronJobList need not say what they are (apimachinery, unstructured.decodeToList)."""
    plain = {key: value for key, value in widget("v1beta1").items() if key not in ("apiVersion", "kind")}
    head = {"apiVersion": "example.com/v1beta1", "kind": "WidgetList"}
    objects = written(tmp_path / "lists.yaml", {**head, "items": [plain, widget(mode="b"), 1]}, head)
    lines = told(run(*sides, objects))
    gone = "example.com/v1beta1 Widget is not served any more: example.com/v1 has Widget"
    assert lines[0] == f"{objects}:3:3: error: Widget a: {gone}"
    assert lines[-1] == "Summary: 4 objects: 1 ready, 2 not-ready, 1 not-checked"


def test_what_is_ready_exits_with_0(sides: list[Any], tmp_path: Path) -> None:
    body = orjson.dumps({"apiVersion": "v1", "kind": "List", "items": [widget(mode="a"), widget(mode="b")]})
    result = run(*sides, "-", stdin=body)
    assert told(result) == ["Summary: 2 objects: 2 ready"]
    assert result.exit_code == 0
    refused = run(*sides, written(tmp_path / "bad.yaml", widget(mode=1)))
    assert told(refused) == ["Summary: 1 object: 1 refused-before"]
    assert refused.exit_code == 0


def test_nothing_is_green_that_was_not_judged(sides: list[Any], tmp_path: Path) -> None:
    other = written(tmp_path / "other.yaml", {"apiVersion": "a.example/v1", "kind": "Gadget"}, {"a": 1})
    result = run(*sides, other)
    assert "a.example/v1 Gadget is described neither now nor then" in told(result)[0]
    assert "Object 'Kind' is missing" in told(result)[1]
    assert result.exit_code == 5
    assert run(*sides, other, "--allow-unchecked").exit_code == 0
    assert run(*sides).exit_code == 2


def test_definitions_that_cannot_be_replaced_are_reported(tmp_path: Path) -> None:
    """Beside the documents of the release that serves definitions."""
    kinds = DATA / "k8s-pairs/1.35/v3/apis/apiextensions.k8s.io"
    folder = tmp_path / "after"
    shutil.copytree(kinds, folder / "apis" / kinds.name)
    written(folder / "widgets.yaml", definition("v1", mode=STRING))
    stored = definition("v1", "v1beta1", mode=STRING)
    stored["status"] = {"storedVersions": ["v1", "v1beta1"]}
    result = run("--from", folder, "--to", folder, written(tmp_path / "crds.yaml", stored))
    said = 'status.storedVersions[1]: Invalid value: "v1beta1": missing from spec.versions; v1beta1 was'
    assert f"its definition after the upgrade is refused: {said}" in told(result)[0]
    assert result.exit_code == 1


@pytest.mark.parametrize("form", FORMS)
def test_every_form_says_it(form: str, sides: list[Any], tmp_path: Path) -> None:
    objects = written(tmp_path / "objects.yaml", widget("v1beta1"))
    result = run(*sides, objects, "-o", form)
    assert "is not served any more" in result.stdout
    assert result.exit_code == 1


def test_json_has_an_outcome_for_each_object(sides: list[Any], tmp_path: Path) -> None:
    found = orjson.loads(run(*sides, written(tmp_path / "o.yaml", widget(mode="a")), "-o", "json").stdout)
    assert found["summary"]["ready"] == 1
    assert found["objects"][0]["outcome"] == "ready"


def test_what_a_cluster_stores_is_judged(sides: list[Any], tmp_path: Path) -> None:
    class Lists(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            items = [widget(mode="x", old="y"), widget(mode="x")] if "/widgets" in self.path else []
            body = orjson.dumps({"kind": "WidgetList", "apiVersion": "example.com/v1", "items": items})
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Lists)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    origin = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        result = run(*sides, "--live", "--server", origin)
    finally:
        server.shutdown()
        server.server_close()
    assert told(result) == [
        'cluster:1:91: error: Widget a: unknown field "spec.old"',
        "Summary: 2 objects: 1 ready, 1 not-ready",
    ]


@needs("data/k8s-pairs/1.29")
def test_every_kind_that_kubernetes_removed_is_found(tally: Callable[[str, int], None]) -> None:
    """Removed APIs: https://kubernetes.io/docs/reference/using-api/deprecation-guide."""
    bodies = [
        {"apiVersion": version, "kind": kind, "metadata": {"name": "a"}} for version, kind in sorted(REMOVED)
    ]
    result = run(
        "--from", PAIRS / "1.29/v3", "--to", PAIRS / "1.35/v3", "-", stdin=yaml.safe_dump_all(bodies).encode()
    )
    lines = [line for line in told(result) if "is not served any more" in line]
    tally("kinds that Kubernetes removed, found", len(lines))
    assert len(lines) == len(REMOVED)
    assert all(removal.now in line for (_, removal), line in zip(sorted(REMOVED.items()), lines, strict=True))


@needs("data/k8s-pairs/1.29")
def test_every_kind_that_pluto_knows_is_found(tally: Callable[[str, int], None]) -> None:
    rows = [line.split() for line in PLUTO.strip().splitlines()]
    wanted = [(release, version, kind) for release, version, *kinds in rows for kind in kinds]
    item = {"metadata": {"name": "a"}}
    bodies = [{"apiVersion": version, "kind": kind, **item} for _, version, kind in wanted]
    bodies += [{"apiVersion": version, "kind": f"{kind}List", "items": [item]} for _, version, kind in wanted]
    result = run(
        "--from", PAIRS / "1.29/v3", "--to", PAIRS / "1.35/v3", "-", stdin=yaml.safe_dump_all(bodies).encode()
    )
    lines = [line for line in told(result) if "is not served any more" in line]
    tally("rows of pluto, found", len(wanted))
    assert len(lines) == 2 * len(wanted)
    said = zip(2 * wanted, lines, strict=True)
    assert [line for (since, *kind), line in said if f"{since} removed {' '.join(kind)}" not in line] == []


@needs("data/manifests")
def test_no_false_word_on_real_manifests(tally: Callable[[str, int], None]) -> None:
    result = run("--from", PAIRS / "1.32/v3", "--to", PAIRS / "1.35/v3", DATA / "manifests", "-o", "json")
    objects = orjson.loads(result.stdout)["objects"]
    said = [each for each in objects if each["outcome"] in ("not-ready", "changed")]
    tally("real manifests judged for an upgrade", len(objects))
    assert len(objects) > 300
    assert all(each["violations"][0]["message"].partition(" is not")[0] in REMOVED_KINDS for each in said)


def test_roles_that_name_what_is_gone_are_reported() -> None:
    rules = [
        {
            "apiGroups": ["flowcontrol.apiserver.k8s.io", ""],
            "resources": ["pods", "nothing"],
            "verbs": ["get"],
        }
    ]
    rules.append({"apiGroups": ["resource.k8s.io"], "resources": ["podschedulingcontexts"], "verbs": ["*"]})
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "a"}}
    body = orjson.dumps({**role, "rules": rules})
    result = run("--from", PAIRS / "1.30/v3", "--to", PAIRS / "1.35/v3", "-", stdin=body)
    place = "ClusterRole a: rules[1].resources[0]"
    said = f"{place}: podschedulingcontexts of resource.k8s.io is not served any more"
    assert [line.partition(": warning: ")[2] for line in told(result)[:-1]] == [said]
    assert result.exit_code == 0
