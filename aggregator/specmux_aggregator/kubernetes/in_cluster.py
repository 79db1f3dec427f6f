"""A pod's own way to its cluster: the service account that is mounted into it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from specmux_aggregator.config.bad_value import BadValue
from specmux_aggregator.config.urls import backend_url
from specmux_aggregator.errors import InvalidConfig
from specmux_aggregator.kubernetes.access import Access, environment_proxy
from specmux_aggregator.model.backend import Backend, BackendName, BackendTLS, Credentials

SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")


def read(*, environ: Mapping[str, str], name: BackendName, directory: Path = SERVICE_ACCOUNT) -> Access:
    """The apiserver as the kubelet names it, under ``name``. Raises InvalidConfig outside a cluster.

    Token and CA stay files: the kubelet exchanges them.
    """
    host, port = environ.get("KUBERNETES_SERVICE_HOST"), environ.get("KUBERNETES_SERVICE_PORT")
    if not host or not port:
        raise InvalidConfig("not inside a cluster: KUBERNETES_SERVICE_HOST and _PORT are not set")
    try:
        url = backend_url(f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}")
    except BadValue as bad:
        raise InvalidConfig(str(bad), where="KUBERNETES_SERVICE_HOST, KUBERNETES_SERVICE_PORT") from bad
    token_file, ca_file = directory / "token", directory / "ca.crt"
    if not token_file.is_file():
        raise InvalidConfig("no such file: the pod has no service account", where=str(token_file))
    server = Backend(
        name=name,
        url=url,
        tls=BackendTLS(ca_file=ca_file if ca_file.is_file() else None),
        credentials=Credentials(token_file=token_file),
        proxy_url=environment_proxy(url, environ),
    )
    return Access(server=server, context="in-cluster", namespace=_namespace(directory / "namespace"))


def _namespace(path: Path) -> str:
    try:
        return path.read_text("utf-8").strip() or "default"
    except (OSError, ValueError):
        return "default"
