"""Pods of the chart: hardened, spread, whole in every example."""

from __future__ import annotations

import pytest

from running.helm_chart import (
    EXAMPLES,
    NAMESPACE,
    VERSIONS,
    Object,
    container,
    objects,
    of_kind,
    one,
    require_helm,
)

require_helm()


def service(example: str) -> Object:
    (found,) = (item for item in of_kind("Service", example) if "selector" in item["spec"])
    return found


OF_THE_CLUSTER = {"ClusterRole", "ClusterRoleBinding"}


@pytest.mark.parametrize("example", EXAMPLES)
def test_pod_is_hardened(example: str) -> None:
    pod = one("Deployment", example)["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert pod["enableServiceLinks"] is False
    assert container(example)["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert not {"hostNetwork", "hostPID", "hostIPC"} & pod.keys()


@pytest.mark.parametrize("example", EXAMPLES)
def test_what_is_mounted_is_there(example: str) -> None:
    pod = one("Deployment", example)["spec"]["template"]["spec"]
    assert {item["name"] for item in container(example)["volumeMounts"]} == {
        item["name"] for item in pod["volumes"]
    }
    made = {(item["kind"], item["metadata"]["name"]) for item in objects(example)}
    config = next(item for item in pod["volumes"] if item["name"] == "config")
    assert ("ConfigMap", config["configMap"]["name"]) in made
    secret = next(item for item in pod["volumes"] if item["name"] == "tls")["secret"]["secretName"]
    issued = {item["spec"]["secretName"] for item in of_kind("Certificate", example)}
    assert ("Secret", secret) in made or secret in issued or example == "existing-secret"


@pytest.mark.parametrize("example", EXAMPLES)
def test_selectors_find_the_pods(example: str) -> None:
    labels = one("Deployment", example)["spec"]["template"]["metadata"]["labels"].items()
    selectors = [
        one("Deployment", example)["spec"]["selector"]["matchLabels"],
        service(example)["spec"]["selector"],
        *(item["spec"]["selector"]["matchLabels"] for item in of_kind("PodDisruptionBudget", example)),
        *(item["spec"]["podSelector"]["matchLabels"] for item in of_kind("NetworkPolicy", example)),
    ]
    assert all(selector.items() <= labels for selector in selectors)
    of_service = service(example)["metadata"]["labels"].items()
    for monitor in of_kind("ServiceMonitor", example):
        assert monitor["spec"]["selector"]["matchLabels"].items() <= of_service


@pytest.mark.parametrize("example", EXAMPLES)
def test_everything_is_in_the_namespace_of_the_release(example: str) -> None:
    for item in objects(example):
        assert item["metadata"].get("namespace") == (None if item["kind"] in OF_THE_CLUSTER else NAMESPACE)


def test_common_labels_are_everywhere() -> None:
    found = objects("names-and-images")
    assert [item["kind"] for item in found if item["metadata"]["labels"].get("team") != "platform"] == []
    assert (
        one("Deployment", "names-and-images")["spec"]["template"]["metadata"]["labels"]["team"] == "platform"
    )


def test_defaults_survive_the_loss_of_a_node() -> None:
    spec = one("Deployment")["spec"]
    assert spec["replicas"] >= 2
    assert spec["strategy"]["rollingUpdate"]["maxUnavailable"] == 0
    assert one("PodDisruptionBudget")["spec"]["maxUnavailable"] == 1
    spread = spec["template"]["spec"]["topologySpreadConstraints"]
    assert [item["topologyKey"] for item in spread] == [
        "kubernetes.io/hostname",
        "topology.kubernetes.io/zone",
    ]
    assert all(item["labelSelector"]["matchLabels"] == spec["selector"]["matchLabels"] for item in spread)


def test_a_constraint_keeps_the_selector_it_has() -> None:
    (constraint,) = one("Deployment", "scheduling")["spec"]["template"]["spec"]["topologySpreadConstraints"]
    assert constraint["labelSelector"] == {"matchLabels": {"app.kubernetes.io/name": "specmux"}}


def test_probes_ask_the_service() -> None:
    made = container()
    port = {item["name"] for item in made["ports"]}
    for probe, path in (
        ("startupProbe", "/livez"),
        ("livenessProbe", "/livez"),
        ("readinessProbe", "/readyz"),
    ):
        asked = made[probe]["httpGet"]
        assert asked["path"] == path
        assert asked["scheme"] == "HTTPS"
        assert asked["port"] in port
    assert (
        not {"startupProbe", "livenessProbe", "readinessProbe", "lifecycle"}
        & container("single-replica").keys()
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_pod_serves_on_while_it_is_taken_out(version: str) -> None:
    hook = container(version=version)["lifecycle"]["preStop"]
    if version == "1.27":  # which knows no sleep
        assert hook["exec"]["command"] == ["python3", "-c", "import time; time.sleep(5)"]
    else:
        assert hook == {"sleep": {"seconds": 5}}


def test_autoscaler_decides_alone() -> None:
    assert "replicas" not in one("Deployment", "autoscaling")["spec"]
    scaler = one("HorizontalPodAutoscaler", "autoscaling")["spec"]
    assert scaler["scaleTargetRef"]["name"] == one("Deployment", "autoscaling")["metadata"]["name"]
    assert (scaler["minReplicas"], scaler["maxReplicas"]) == (3, 12)


def test_cache_is_bounded_and_gone_when_off() -> None:
    volumes = one("Deployment", "extras")["spec"]["template"]["spec"]["volumes"]
    assert {"name": "cache", "emptyDir": {"sizeLimit": "600Mi", "medium": "Memory"}} in volumes
    assert all(item["name"] != "cache" for item in container("single-replica")["volumeMounts"])


def test_image_by_tag_and_by_digest() -> None:
    assert container()["image"] == "registry.example.org/specmux:0.9.0"
    assert (
        container("names-and-images")["image"]
        == f"registry.example.net/mirror/specmux@sha256:{'0123456789abcdef' * 4}"
    )


def test_network_policy_lets_in_what_is_named_and_out_what_is_allowed() -> None:
    assert one("NetworkPolicy")["spec"]["policyTypes"] == ["Ingress"]
    assert one("NetworkPolicy")["spec"]["ingress"] == [{"ports": [{"port": "https", "protocol": "TCP"}]}]
    closed = one("NetworkPolicy", "network-policy")["spec"]
    assert closed["policyTypes"] == ["Ingress", "Egress"]
    assert [[port["port"] for port in rule["ports"]] for rule in closed["egress"]] == [[53, 53], [6443]]
    assert closed["ingress"][0]["from"] == [{"namespaceSelector": {}}]


def test_further_objects_are_templates() -> None:
    made = {item["metadata"]["name"]: item for item in of_kind("ConfigMap", "extras")}
    assert made["documents"]["data"] == {"release": "release"}
    assert "release-specmux-text" in made
