"""The cluster that the settings select, if any."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from specmux_aggregator.config.settings import KubernetesSettings
from specmux_aggregator.errors import InvalidConfig
from specmux_aggregator.kubernetes.cluster_backends import APISERVER
from specmux_aggregator.model.backend import Backend, BackendName
from specmux_cache.access import in_cluster, kubeconfig
from specmux_cache.access.server_access import ServerAccess
from specmux_cache.errors import AccessError


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """A way to access one cluster."""

    server: Backend
    context: str
    """The name of the kubeconfig context; "in-cluster" for a pod's own."""
    namespace: str = "default"


def choose_access(settings: KubernetesSettings, environ: Mapping[str, str]) -> Access | None:
    """The selected access. ``environ``: the whole environment of the process. Raises InvalidConfig;
    blocks."""
    if not settings.is_meant:
        return None
    try:
        if settings.in_cluster:
            access = in_cluster.read(environ)
        else:
            access = kubeconfig.read(settings.kubeconfig, environ, context=settings.context)
    except AccessError as error:
        raise InvalidConfig(error.reason, where=error.where) from error
    server = backend_of(access, APISERVER)
    return Access(server=server, context=access.context, namespace=access.namespace)


def backend_of(access: ServerAccess, name: BackendName) -> Backend:
    """The server as a backend."""
    return Backend(
        name=name, url=access.url, tls=access.tls, credentials=access.credentials, proxy_url=access.proxy
    )
