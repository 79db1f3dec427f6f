"""The backends that a cluster has: its apiserver, its extension apiservers, its definitions. Pure.

None of our own credentials goes to an extension apiserver unless the settings say so: whoever runs one could
use them as ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from specmux_aggregator.config.settings import KubernetesSettings
from specmux_aggregator.kubernetes.api_services import APIService, ServiceReference
from specmux_aggregator.kubernetes.endpoint_slices import ServerAddress, ServiceName
from specmux_aggregator.model.backend import Backend, BackendKind, BackendName, ClusterFacts, group_of
from specmux_cache.access.server_access import Credentials, ServerTLS
from specmux_converters.group_versions import GroupVersion

APISERVER: Final = BackendName("kubernetes")
CUSTOM_RESOURCES: Final = BackendName("kubernetes-crds")
"""Names of APIServices contain a dot, so these two never clash with them."""

APISERVER_SERVICE: Final[ServiceName] = ("default", "kubernetes")

CRD_PRIORITIES: Final = (1000, 100)
"""The priorities with which an apiserver registers CustomResourceDefinitions
(crdregistration_controller.go)."""


def cluster_backends(
    apiserver: Backend,
    services: Iterable[APIService],
    *,
    settings: KubernetesSettings,
    has_custom_resources: bool,
    withdrawn: frozenset[GroupVersion] = frozenset(),
    defined: frozenset[GroupVersion] = frozenset(),
    servers: Mapping[ServiceName, tuple[ServerAddress, ...]] = MappingProxyType({}),
) -> tuple[Backend, ...]:
    """The apiserver itself, each extension apiserver, and the watched CustomResourceDefinitions.

    How extension apiservers are reached is known from ``settings`` alone, not from the cluster's objects.

    ``withdrawn``: what definitions no longer serve, or no APIService names any more. The apiserver must not
    stand in for these: its own documents lag, and keep a disabled version until its restart. What it serves
    through an APIService exists, whatever its root says while it starts.

    ``defined``: what definitions serve. In their groups the apiserver stands in only for what they or an
    APIService name: a version removed from a definition stays in its root until its restart.

    ``servers``: of Services whose servers are known individually.
    """
    known = tuple(services)
    elsewhere = list_shadowed(known)
    priorities = _priorities(known)
    fallback = ClusterFacts(
        cluster=apiserver.url,
        is_fallback=True,
        excluded=withdrawn - elsewhere,
        existing=elsewhere,
        priorities=priorities,
        versions=_versions(defined, (item.group_version for item in known)),
        servers=servers.get(APISERVER_SERVICE, ()),
    )
    backends = (
        [replace(apiserver, name=APISERVER, kind=BackendKind.AUTO, found=fallback)]
        if settings.apiserver
        else []
    )
    if has_custom_resources:
        group_priority, version_priority = CRD_PRIORITIES
        found = ClusterFacts(cluster=apiserver.url, excluded=elsewhere, priorities=priorities)
        backends.append(
            Backend(
                name=CUSTOM_RESOURCES,
                kind=BackendKind.CRDS,
                group_priority=group_priority,
                version_priority=version_priority,
                found=found,
            )
        )
    backends += [
        _backend(item, item.service, settings, cluster=apiserver.url, servers=servers)
        for item in known
        if item.service is not None
    ]
    return tuple(backends)


def list_shadowed(services: Iterable[APIService]) -> frozenset[GroupVersion]:
    """The group-versions that an apiserver serves from elsewhere, regardless of CustomResourceDefinitions."""
    return frozenset(item.group_version for item in services if item.is_builtin or item.service is not None)


def _versions(
    defined: frozenset[GroupVersion], served: Iterable[GroupVersion]
) -> Mapping[str, frozenset[GroupVersion]]:
    """By group of a definition, all versions that are named for it."""
    found: dict[str, set[GroupVersion]] = {group_of(key): set() for key in defined}
    for key in (*defined, *served):
        if group_of(key) in found:
            found[group_of(key)].add(key)
    return MappingProxyType({group: frozenset(keys) for group, keys in found.items()})


def _priorities(services: Iterable[APIService]) -> Mapping[GroupVersion, tuple[int, int]]:
    """Priorities of what the apiserver serves itself, except those that it creates for definitions, which
    equal the defaults."""
    return MappingProxyType(
        {
            item.group_version: item.priorities
            for item in services
            if item.service is None and (item.is_builtin or item.priorities != CRD_PRIORITIES)
        }
    )


def _backend(
    item: APIService,
    service: ServiceReference,
    settings: KubernetesSettings,
    *,
    cluster: str,
    servers: Mapping[ServiceName, tuple[ServerAddress, ...]],
) -> Backend:
    group_priority, version_priority = item.priorities
    url = (
        settings.service_url.replace("{name}", service.name)
        .replace("{namespace}", service.namespace)
        .replace("{port}", str(service.port))
    )
    return Backend(
        name=BackendName(item.name),
        url=url,
        group_versions=frozenset({item.group_version}),
        group_priority=group_priority,
        version_priority=version_priority,
        tls=_tls(service, settings) if url.startswith("https:") else ServerTLS(),
        credentials=Credentials(
            token_file=settings.service_token_file, remote_user=settings.service_remote_user
        ),
        found=ClusterFacts(cluster=cluster, servers=servers.get((service.namespace, service.name), ())),
    )


def _tls(service: ServiceReference, settings: KubernetesSettings) -> ServerTLS:
    """TLS for the DNS name that the aggregator verifies, independent of the address."""
    return ServerTLS(
        ca_data=service.ca_data,
        cert_file=settings.service_cert_file,
        key_file=settings.service_key_file,
        server_name=f"{service.name}.{service.namespace}.svc",
        insecure_skip_verify=service.insecure_skip_verify,
    )
