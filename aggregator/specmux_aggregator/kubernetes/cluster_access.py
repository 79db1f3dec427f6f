"""The cluster that the settings mean, if they mean one."""

from __future__ import annotations

from collections.abc import Mapping

from specmux_aggregator.config.settings import Kubernetes
from specmux_aggregator.kubernetes import in_cluster, kubeconfig
from specmux_aggregator.kubernetes.access import Access
from specmux_aggregator.kubernetes.cluster_backends import APISERVER


def chosen(settings: Kubernetes, environ: Mapping[str, str]) -> Access | None:
    """The way into it. ``environ``: the whole environment of the process. Raises InvalidConfig; blocks."""
    if settings.in_cluster:
        return in_cluster.read(environ=environ, name=APISERVER)
    if not settings.is_meant:
        return None
    return kubeconfig.read(settings.kubeconfig, context=settings.context, environ=environ, name=APISERVER)
