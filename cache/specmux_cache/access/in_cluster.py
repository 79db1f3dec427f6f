"""Access to the cluster from a pod: the mounted service account."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from specmux_cache.access.server_access import Credentials, ServerAccess, ServerTLS
from specmux_cache.access.urls import backend_url, environment_proxy
from specmux_cache.errors import AccessError, BadValue

SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")


def read(environ: Mapping[str, str], *, directory: Path = SERVICE_ACCOUNT) -> ServerAccess:
    """The apiserver as announced by the kubelet. Raises AccessError outside a cluster.

    Token and CA remain files, since the kubelet renews them.
    """
    host, port = environ.get("KUBERNETES_SERVICE_HOST"), environ.get("KUBERNETES_SERVICE_PORT")
    if not host or not port:
        raise AccessError("not inside a cluster: KUBERNETES_SERVICE_HOST and _PORT are not set")
    try:
        url = backend_url(f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}")
    except BadValue as bad:
        raise AccessError(str(bad), where="KUBERNETES_SERVICE_HOST, KUBERNETES_SERVICE_PORT") from bad
    token_file, ca_file = directory / "token", directory / "ca.crt"
    if not token_file.is_file():
        raise AccessError("no such file: the pod has no service account", where=str(token_file))
    return ServerAccess(
        url=url,
        tls=ServerTLS(ca_file=ca_file if ca_file.is_file() else None),
        credentials=Credentials(token_file=token_file),
        proxy=environment_proxy(url, environ),
        context="in-cluster",
        namespace=_namespace(directory / "namespace"),
    )


def _namespace(path: Path) -> str:
    try:
        return path.read_text("utf-8").strip() or "default"
    except (OSError, ValueError):
        return "default"
