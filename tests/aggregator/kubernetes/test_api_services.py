"""APIService objects: which backends they make, and what becomes of those that say nonsense."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampling import examples
from specmux_aggregator.config.settings import KubernetesSettings
from specmux_aggregator.kubernetes.api_services import (
    APIService,
    Condition,
    read_api_services,
    recall,
    write_note,
)
from specmux_aggregator.kubernetes.cluster_backends import (
    APISERVER,
    CUSTOM_RESOURCES,
    cluster_backends,
    list_shadowed,
)
from specmux_aggregator.kubernetes.custom_resources import definitions, keep_definition
from specmux_aggregator.model.backend import Backend, BackendKind, BackendName
from specmux_cache.access.server_access import Credentials, ServerTLS

CA = b"-----BEGIN CERTIFICATE-----\n"
KUBERNETES = Backend(
    name=BackendName("from-kubeconfig"),
    url="https://10.0.0.1:6443",
    credentials=Credentials(token_file=Path("/token")),
)


def api_service(name: str, *, service: Any = None, labels: Any = None, **spec: Any) -> dict[str, Any]:
    version, _, group = name.partition(".")
    fields = {"group": group, "version": version, "groupPriorityMinimum": 100, "versionPriority": 10}
    if service is not None:
        fields["service"] = service
    return {
        "kind": "APIService",
        "apiVersion": "apiregistration.k8s.io/v1",
        "metadata": {"name": name, "labels": labels},
        "spec": {**fields, **spec},
        "status": {"conditions": [{"type": "Available", "status": "True", "reason": "Passed"}]},
    }


def served_by(name: str, namespace: str = "default", **more: Any) -> dict[str, Any]:
    return {"name": name, "namespace": namespace, **more}


METRICS = api_service(
    "v1beta1.metrics.k8s.io",
    service=served_by("metrics-server", "kube-system"),
    caBundle=base64.b64encode(CA).decode(),
)
APPS = api_service(
    "v1.apps",
    labels={"kube-aggregator.kubernetes.io/automanaged": "onstart"},
    groupPriorityMinimum=17800,
    versionPriority=15,
)
CORE = api_service("v1.", labels={"kube-aggregator.kubernetes.io/automanaged": "onstart"})
OF_A_CRD = api_service(
    "v1.example.com",
    labels={"kube-aggregator.kubernetes.io/automanaged": "true"},
    groupPriorityMinimum=1000,
    versionPriority=100,
)


def read(*objects: Any) -> tuple[APIService, ...]:
    services, problems = read_api_services(objects)
    assert problems == ()
    return services


def backends(*objects: Any, **settings: Any) -> dict[str, Backend]:
    made = cluster_backends(
        KUBERNETES,
        read(*objects),
        settings=KubernetesSettings(**settings),
        has_custom_resources=True,
    )
    return {backend.name: backend for backend in made}


def test_service_becomes_a_backend_that_publishes_its_group_version_alone() -> None:
    backend = backends(METRICS)["v1beta1.metrics.k8s.io"]
    assert backend.kind is BackendKind.AUTO
    assert backend.url == "https://metrics-server.kube-system.svc:443"
    assert backend.group_versions == {"apis/metrics.k8s.io/v1beta1"}
    assert backend.tls == ServerTLS(ca_data=CA, server_name="metrics-server.kube-system.svc")
    assert backend.priorities_of(next(iter(backend.group_versions))) == (100, 10)
    assert not backend.is_fallback


def test_extension_apiserver_gets_no_credential_that_the_settings_do_not_name() -> None:
    assert backends(METRICS)["v1beta1.metrics.k8s.io"].credentials == Credentials()
    backend = backends(
        METRICS,
        service_cert_file=Path("/c"),
        service_key_file=Path("/k"),
        service_remote_user="system:aggregator",
    )["v1beta1.metrics.k8s.io"]
    assert (backend.tls.cert_file, backend.tls.key_file) == (Path("/c"), Path("/k"))
    assert backend.credentials == Credentials(remote_user="system:aggregator")


def test_address_follows_the_template_and_the_port_of_the_service() -> None:
    item = api_service("v1.x.io", service=served_by("s", port=8443), insecureSkipTLSVerify=True)
    backend = backends(item, service_url="https://127.0.0.1:{port}/{namespace}/{name}")["v1.x.io"]
    assert backend.url == "https://127.0.0.1:8443/default/s"
    assert backend.tls == ServerTLS(server_name="s.default.svc", insecure_skip_verify=True)
    plain = backends(item, service_url="http://127.0.0.1:{port}")["v1.x.io"]
    assert (plain.url, plain.tls) == ("http://127.0.0.1:8443", ServerTLS())


def test_apiserver_itself_stands_in_for_the_rest_with_the_priorities_of_its_own() -> None:
    backend = backends(APPS, CORE, METRICS)[APISERVER]
    assert backend.is_fallback
    assert (backend.url, backend.credentials) == (KUBERNETES.url, KUBERNETES.credentials)
    assert backend.priorities_of("apis/apps/v1") == (17800, 15)  # type: ignore[arg-type]
    assert backend.priorities_of("api/v1") == (100, 10)  # type: ignore[arg-type]
    assert backend.priorities_of("apis/metrics.k8s.io/v1beta1") == (None, None)  # type: ignore[arg-type]


def test_priorities_that_somebody_gave_a_definition_are_its_own_and_the_usual_ones_are_no_change() -> None:
    assert backends(APPS, OF_A_CRD) == backends(APPS)
    found = backends(APPS, api_service("v1.example.com", groupPriorityMinimum=3, versionPriority=2))
    assert found[CUSTOM_RESOURCES].priorities_of("apis/example.com/v1") == (3, 2)  # type: ignore[arg-type]


def test_definitions_publish_nothing_that_the_apiserver_serves_from_elsewhere() -> None:
    backend = backends(APPS, CORE, METRICS, OF_A_CRD)[CUSTOM_RESOURCES]
    assert backend.kind is BackendKind.CRDS
    assert backend.owns("apis/example.com/v1")  # type: ignore[arg-type]
    for key in ("apis/apps/v1", "api/v1", "apis/metrics.k8s.io/v1beta1"):
        assert not backend.owns(key)  # type: ignore[arg-type]
    assert backend.priorities_of("apis/example.com/v1") == (1000, 100)  # type: ignore[arg-type]
    assert list_shadowed(read(OF_A_CRD)) == frozenset()


@pytest.mark.parametrize(
    ("has_apiserver", "has_custom_resources", "expected"),
    [(True, False, [APISERVER]), (False, True, [CUSTOM_RESOURCES]), (False, False, [])],
)
def test_what_is_switched_off_is_no_backend(
    has_apiserver: bool, has_custom_resources: bool, expected: list[str]
) -> None:
    made = cluster_backends(
        KUBERNETES,
        (),
        settings=KubernetesSettings(apiserver=has_apiserver),
        has_custom_resources=has_custom_resources,
    )
    assert [backend.name for backend in made] == expected


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ([{"type": "Available", "status": "True", "reason": "Passed"}], Condition(True, "Passed")),
        (
            [{"type": "Other"}, {"type": "Available", "status": "False", "reason": "R", "message": "a\nb"}],
            Condition(False, "R", "a\\nb"),
        ),
        ([{"type": "Available", "status": "Unknown"}], Condition(False)),
    ],
)
def test_available_condition_is_kept(conditions: Any, expected: Condition) -> None:
    (service,) = read({**METRICS, "status": {"conditions": conditions}})
    assert service.available == expected


@pytest.mark.parametrize("status", [None, {}, {"conditions": None}, {"conditions": ["x"]}, "x"])
def test_service_of_which_nothing_is_said_is_not_available(status: Any) -> None:
    (service,) = read({**METRICS, "status": status})
    assert not service.available.is_true


@pytest.mark.parametrize(
    ("item", "fault"),
    [
        ({}, "APIService without a name: its metadata is no object"),
        ({**METRICS, "spec": None}, "APIService v1beta1.metrics.k8s.io: its spec is no object"),
        (api_service("v1.x.io", version=["v1"]), "spec.version is no version"),
        (api_service("v1.x.io", group="../x"), "spec.group is no API group"),
        (api_service("v1.x.io", group="y.io"), 'is not called "v1.y.io"'),
        (api_service("v1.", service=served_by("s")), "gives the core group to a service"),
        (api_service("v1.x.io", service="s"), "its service is no object"),
        (api_service("v1.x.io", service=served_by("evil/..")), "spec.service.name is no DNS label"),
        (api_service("v1.x.io", service=served_by("s", "a.b")), "spec.service.namespace is no DNS label"),
        (api_service("v1.x.io", service=served_by("s", port=0)), "spec.service.port is no port"),
        (api_service("v1.x.io", service=served_by("s", port=True)), "spec.service.port is no port"),
        (api_service("v1.x.io", service=served_by("s"), caBundle="!"), "spec.caBundle is not base64"),
        (api_service("v1.x.io", service=served_by("s"), caBundle=[1]), "spec.caBundle is not base64"),
        (
            api_service("v1.x.io", service=served_by("s"), insecureSkipTLSVerify="no"),
            "neither true nor false",
        ),
        (
            api_service("v1.x.io", service=served_by("s"), insecureSkipTLSVerify=True, caBundle="QQ=="),
            "it can be only one of them",
        ),
        (api_service("v1.x.io", versionPriority="high"), "spec.versionPriority is no number"),
        (api_service("v1.x.io", groupPriorityMinimum=-1), "spec.groupPriorityMinimum is no number"),
    ],
)
def test_malformed_object_is_a_problem_that_names_it_and_the_rest_stands(item: Any, fault: str) -> None:
    services, problems = read_api_services([item, METRICS])
    assert [service.name for service in services] == ["v1beta1.metrics.k8s.io"]
    (problem,) = problems
    assert fault in problem
    assert problem.startswith("APIService ")


def test_what_is_noted_makes_the_same_backends_after_a_restart() -> None:
    note = write_note([METRICS, APPS, OF_A_CRD, {"metadata": None}])
    services, problems = read_api_services(recall(note))
    assert [service.name for service in services] == ["v1.apps", "v1beta1.metrics.k8s.io"]
    assert problems == ()
    assert services[1].service == read(METRICS)[0].service
    assert list_shadowed(services) == list_shadowed(read(METRICS, APPS))
    beaten = {**METRICS, "status": {"conditions": []}, "metadata": {**METRICS["metadata"], "uid": "u"}}
    assert write_note([beaten]) == write_note([METRICS])


def deep() -> Any:
    nested: Any = {}
    for _ in range(900):
        nested = {"a": nested}
    return nested


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 70_000) | st.text(max_size=5) | st.builds(deep),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(data=st.data())
@examples(300)
def test_whatever_stands_in_an_object_it_is_understood_or_a_problem(data: st.DataObject) -> None:
    item = orjson.loads(orjson.dumps(METRICS))
    for _ in range(data.draw(st.integers(1, 3))):
        place = item
        while True:
            key = data.draw(st.sampled_from(sorted(place))) if isinstance(place, dict) and place else None
            if key is None:
                break
            if not isinstance(place[key], dict) or key == "a" or data.draw(st.booleans()):
                place[key] = data.draw(JSON)
                break
            place = place[key]
    services, problems = read_api_services([item, APPS])
    assert len(services) + len(problems) == 2
    again, _ = read_api_services(recall(write_note([item, APPS])))
    assert {service.name for service in again} <= {service.name for service in services}
    cluster_backends(KUBERNETES, services, settings=KubernetesSettings(), has_custom_resources=True)
    (definition,) = definitions({"x": keep_definition(item)})
    assert isinstance(definition.name, str)


@pytest.mark.parametrize("note", [b"", b"{", b"{}", b"null", b"[1, null]"])
def test_note_that_is_none_of_ours_is_nothing(note: bytes) -> None:
    assert recall(note) == []
