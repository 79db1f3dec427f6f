"""A cluster that allows the chart's account what the chart asks for and nothing else, and a pod of it.

    async with world(folder, default_chart()) as made: ... made.pod.started()

Callers: the tokens alice (what every authenticated user has), bob (nothing), prometheus (/metrics).
"""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import trustme
import yaml

from fakes.apiserver import document, swagger
from fakes.cluster import API_SERVICES, FakeCluster, api_service
from fakes.discovery import resource
from fakes.guarded_cluster import GuardedCluster
from fakes.role_based_access import DISCOVERY, Account, service_account
from running.chart_pod import NAME, Pod, made, secret_data
from running.cluster_service import APPS, METRICS, WIDGETS, accept_definition, builtin, definition
from running.helm_chart import HELM, NAMESPACE, configuration, container, objects, one
from running.image import ImageRoot
from running.namespaces import require_own_mounts

OURS = service_account(NAMESPACE, "release-specmux")
PROMETHEUS = service_account("monitoring", "prometheus-k8s")
EXTENSION = "metrics.kube-system.svc"
PER_GROUP = {"get /api/*", "get /apis/*"}
"""Used only where a server has not the aggregated form of discovery."""

PROMETHEUS_VALUES = (
    "--set=rbac.metricsReader.subjects[0].kind=ServiceAccount",
    "--set=rbac.metricsReader.subjects[0].name=prometheus-k8s",
    "--set=rbac.metricsReader.subjects[0].namespace=monitoring",
)

BY_HAND = f"""
data:
  specmux.yaml: |
    auth: {{mode: kubernetes}}
    kubernetes: {{api_services: true, apiserver: true, crds: true, in_cluster: true}}
    listen:
      address: 0.0.0.0
      port: 8443
      tls_cert_file: /etc/specmux-tls/tls.crt
      tls_key_file: /etc/specmux-tls/tls.key
    log: {{format: json}}
    state: {{directory: /var/cache/specmux/state}}
arguments: [serve, --config, /etc/specmux/specmux.yaml]
places: [/etc/specmux, /etc/specmux-tls, /tmp, /var/cache/specmux]
objects:
- kind: ClusterRole
  metadata: {{name: "{NAMESPACE}:release-specmux"}}
  rules:
  - apiGroups: [apiregistration.k8s.io]
    resources: [apiservices]
    verbs: [list, watch]
  - apiGroups: [apiextensions.k8s.io]
    resources: [customresourcedefinitions]
    verbs: [list, watch]
  - apiGroups: [discovery.k8s.io]
    resources: [endpointslices]
    verbs: [list, watch]
  - nonResourceURLs: [/openapi/*, /api, /api/*, /apis, /apis/*, /version]
    verbs: [get]
  - apiGroups: [authentication.k8s.io]
    resources: [tokenreviews]
    verbs: [create]
  - apiGroups: [authorization.k8s.io]
    resources: [subjectaccessreviews]
    verbs: [create]
- kind: ClusterRoleBinding
  roleRef: {{name: "{NAMESPACE}:release-specmux"}}
  subjects: [{{kind: ServiceAccount, name: release-specmux, namespace: {NAMESPACE}}}]
- kind: ClusterRole
  metadata: {{name: "{NAMESPACE}:release-specmux-metrics-reader"}}
  rules:
  - nonResourceURLs: [/metrics]
    verbs: [get]
- kind: ClusterRoleBinding
  roleRef: {{name: "{NAMESPACE}:release-specmux-metrics-reader"}}
  subjects: [{{kind: ServiceAccount, name: prometheus-k8s, namespace: monitoring}}]
"""
"""What the chart renders with PROMETHEUS_VALUES, for machines without Helm."""


@dataclass(frozen=True)
class Chart:
    """What of it a pod and its cluster need."""

    config: str
    arguments: tuple[str, ...]
    places: tuple[str, ...]
    access: list[dict[str, Any]]
    secret: dict[str, bytes]


def rendered(example: str = "default", *values: str) -> Chart:
    values = (*PROMETHEUS_VALUES, *values)
    pod = container(example, *values)
    return Chart(
        config=configuration(example, *values),
        arguments=tuple(pod["args"]),
        places=tuple(sorted(item["mountPath"] for item in pod["volumeMounts"])),
        access=[item for item in objects(example, *values) if item["kind"].startswith("ClusterRole")],
        secret=secret_data(one("Secret", example, *values)),
    )


def by_hand() -> Chart:
    held = yaml.safe_load(BY_HAND)
    authority = trustme.CA()
    issued = authority.issue_cert(NAME)
    return Chart(
        config=held["data"]["specmux.yaml"],
        arguments=tuple(held["arguments"]),
        places=tuple(held["places"]),
        access=held["objects"],
        secret={
            "ca.crt": authority.cert_pem.bytes(),
            "tls.crt": issued.cert_chain_pems[0].bytes(),
            "tls.key": issued.private_key_pem.bytes(),
        },
    )


def default_chart() -> Chart:
    return rendered() if HELM is not None else by_hand()


@dataclass(frozen=True)
class World:
    """A cluster with callers, and a pod in it that was not started."""

    cluster: GuardedCluster
    extension: FakeCluster
    pod: Pod
    loop: asyncio.AbstractEventLoop

    def change_authority(self) -> bytes:
        """Let a stopped cluster's certificate be another CA's, whose own is returned."""
        authority = trustme.CA()
        self.cluster.served_by(_served(authority, "127.0.0.1"))
        return authority.cert_pem.bytes()

    def unused(self) -> set[str]:
        """What the service's account was granted, and did not use."""
        access = self.cluster.access
        return {str(right) for right in access.granted(OURS) - access.used[OURS.name]}

    def do(self, action: Callable[..., object], *arguments: object) -> None:
        """In the cluster's thread, from another one."""
        self.loop.call_soon_threadsafe(action, *arguments)


@asynccontextmanager
async def world(folder: Path, chart: Chart, *, image: ImageRoot | None = None) -> AsyncIterator[World]:
    require_own_mounts()
    authority = trustme.CA()
    cluster = GuardedCluster({APPS: document(APPS)}, swagger(APPS), tls=_served(authority, "127.0.0.1"))
    cluster.discovery.version = {"major": "1", "minor": "33", "gitVersion": "v1.33.0"}
    cluster.discovery.lists = {
        "api/v1": [resource("api/v1", "pods", "Pod")],
        APPS: [resource(APPS, "deployments", "Deployment")],
        WIDGETS: [resource(WIDGETS, "widgets", "Widget")],
    }
    cluster.accounts |= {
        "ours-1": OURS,
        "alice": Account("alice"),
        "bob": Account("bob"),
        "prometheus": PROMETHEUS,
    }
    cluster.access.bind(chart.access)
    cluster.access.grant("User alice", DISCOVERY)
    extension = FakeCluster({METRICS: document(METRICS)}, tls=_served(authority, EXTENSION))
    async with cluster, extension:
        cluster.put(API_SERVICES, builtin("apps", "v1"))
        port = int(extension.url.rpartition(":")[2])
        found = api_service("metrics.k8s.io", "v1beta1", service=("metrics", "kube-system"), port=port)
        found["spec"]["caBundle"] = base64.b64encode(authority.cert_pem.bytes()).decode()
        cluster.put(API_SERVICES, found)
        accept_definition(cluster, definition("Widget"))
        yield World(
            cluster,
            extension,
            made(
                folder,
                config=chart.config,
                places=chart.places,
                secret=chart.secret,
                arguments=chart.arguments,
                apiserver_port=int(cluster.url.rpartition(":")[2]),
                apiserver_ca=authority.cert_pem.bytes(),
                token="ours-1",
                hosts=(EXTENSION,),
                image=image,
            ),
            asyncio.get_running_loop(),
        )


def _served(authority: trustme.CA, name: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(name).configure_cert(context)
    return context
