"""A kubeconfig read, or refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from specmux_cache.access import kubeconfig
from specmux_cache.access.server_access import ServerAccess
from specmux_cache.errors import AccessError


def config(*, user: Any = None, **cluster: Any) -> dict[str, Any]:
    cluster.setdefault("server", "https://10.0.0.1:6443")
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "preferences": {},
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u", "namespace": "ns"}}],
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": user}],
    }


def read(folder: Path, content: Any, *, context: str | None = None, **environ: str) -> ServerAccess:
    path = folder / "config"
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return kubeconfig.read(path, environ, context=context)


def refusal(folder: Path, content: Any, **more: Any) -> str:
    with pytest.raises(AccessError) as refused:
        read(folder, content, **more)
    return str(refused.value)


EXEC = {"apiVersion": "client.authentication.k8s.io/v1", "command": "plugin", "interactiveMode": "Never"}
