"""A kubeconfig read, or refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from specmux_aggregator.errors import InvalidConfig
from specmux_aggregator.kubernetes import kubeconfig
from specmux_aggregator.kubernetes.access import Access
from specmux_aggregator.model.backend import BackendName

NAME = BackendName("kubernetes")


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


def read(folder: Path, content: Any, *, context: str | None = None, **environ: str) -> Access:
    path = folder / "config"
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return kubeconfig.read(path, context=context, environ=environ, name=NAME)


def refusal(folder: Path, content: Any, **more: Any) -> str:
    with pytest.raises(InvalidConfig) as refused:
        read(folder, content, **more)
    return str(refused.value)


EXEC = {"apiVersion": "client.authentication.k8s.io/v1", "command": "plugin", "interactiveMode": "Never"}
