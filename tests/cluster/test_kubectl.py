"""An unmodified kubectl in front of specmux, which passes resources on to a real control plane."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator

import pytest

from cluster.control_plane import ControlPlane
from cluster.objects import as_list, crd
from cluster.serving import discovered, front_proxy, serving, tls, until
from running.process import Process

pytestmark = pytest.mark.timeout(600)

EDIT = """
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: reader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: ServiceAccount, name: reader, namespace: default}]
"""
ROLLOUT = {
    "apiVersion": "rollouts.example.com/v1",
    "kind": "Rollout",
    "metadata": {"name": "r1", "namespace": "default"},
    "spec": {"replicas": 3},
}

Kubectl = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def process(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    plane.apply(EDIT)
    plane.apply(as_list(crd("Rollout", group="rollouts.example.com")))
    with (
        front_proxy(plane) as shown,
        serving(
            plane,
            tmp_path_factory.mktemp("kubectl"),
            kubernetes=shown,
            proxy={"resources": True},
            listen=tls(plane),
        ) as made,
    ):
        until(lambda: "apis/rollouts.example.com/v1" in discovered(made), "listed")
        yield made
    plane.kubectl("delete", "crd", "rollouts.rollouts.example.com")


@pytest.fixture(scope="module")
def kubectl(plane: ControlPlane, process: Process, tmp_path_factory: pytest.TempPathFactory) -> Kubectl:
    """As an account of the cluster, through specmux."""
    home = tmp_path_factory.mktemp("home")
    server = f"https://127.0.0.1:{process.port}"
    config = plane.kubeconfig("reader", token=plane.token("default", "reader"), server=server)

    def run(*arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["kubectl", f"--kubeconfig={config}", f"--cache-dir={home}", *arguments],
            input=given,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    return run


def good(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_version_is_the_apiservers(plane: ControlPlane, kubectl: Kubectl) -> None:
    told = json.loads(good(kubectl("version", "-o", "json")))
    assert told["serverVersion"]["gitVersion"] == plane.binaries.version


def test_scale_of_a_custom_resource(plane: ControlPlane, process: Process, kubectl: Kubectl) -> None:
    good(kubectl("apply", "-f", "-", given=json.dumps(ROLLOUT)))
    accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

    def scale(groups: list[dict[str, object]]) -> object:
        (group,) = (item for item in groups if item["metadata"]["name"] == "rollouts.example.com")  # type: ignore[index]
        (resource,) = group["versions"][0]["resources"]  # type: ignore[index]
        return {item["subresource"]: item["responseKind"] for item in resource["subresources"]}

    ours = scale(json.loads(process.get("/apis", Accept=accept)[2])["items"])
    assert ours == scale(plane.json("/apis", Accept=accept)["items"])
    scaled = kubectl("scale", "rollout", "r1", "--current-replicas=3", "--replicas=4")
    assert "scaled" in good(scaled), scaled.stderr
    assert good(kubectl("get", "rollout", "r1", "-o", "jsonpath={.spec.replicas}")) == "4"


def test_explain_and_strict_validation(kubectl: Kubectl) -> None:
    assert "How many." in good(kubectl("explain", "rollout.spec.replicas"))
    wrong = {**ROLLOUT, "spec": {"replica": 3}}
    refused = kubectl("apply", "--validate=strict", "-f", "-", given=json.dumps(wrong))
    assert refused.returncode != 0
    assert "replica" in refused.stderr


def test_resources_of_the_extension_apiserver(kubectl: Kubectl) -> None:
    assert "flunders" in good(kubectl("api-resources", "--api-group=wardle.example.com"))
    good(kubectl("get", "flunders", "-A"))


def test_discovery_lists_what_the_apiserver_lists(plane: ControlPlane, process: Process) -> None:
    accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

    def resources(body: dict[str, object]) -> dict[str, object]:
        return {
            f"{item['metadata'].get('name', '')}/{version['version']}/{resource['resource']}": (  # type: ignore[attr-defined]
                resource["responseKind"],
                sorted(resource["verbs"]),
                resource["scope"],
                sorted(
                    (sub["subresource"], str(sub.get("responseKind")))
                    for sub in resource.get("subresources", [])
                ),
            )
            for item in body["items"]  # type: ignore[attr-defined]
            for version in item["versions"]
            for resource in version.get("resources", [])
        }

    # Definitions that other tests deleted: while their finalizers run, the apiserver lists fewer verbs.
    items = plane.json("/apis/apiextensions.k8s.io/v1/customresourcedefinitions")["items"]
    leaving = {item["spec"]["group"] for item in items if item["metadata"].get("deletionTimestamp")}
    for path in ("/api", "/apis"):
        ours = resources(json.loads(process.get(path, Accept=accept)[2]))
        theirs = resources(plane.json(path, Accept=accept))
        different = {key for key in ours.keys() | theirs.keys() if ours.get(key) != theirs.get(key)}
        assert {key.partition("/")[0] for key in different} <= leaving, different
        assert len(ours) > 10
