"""Every block of Python in the documentation runs, against a server on loopback that a kubeconfig names."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from deadline import DEADLINE
from fakes.openapi_server import Reference, document
from fakes.openapi_thread import serving_in_thread

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs").glob("*.md"))  # that of README.md: test_readme.py
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)

KIND = {"group": "apps", "version": "v1", "kind": "Deployment"}
DEPLOYMENTS = {
    "/apis/apps/v1/deployments/{name}": {
        "patch": {
            "x-kubernetes-group-version-kind": KIND,
            "parameters": [{"in": "query", "name": "fieldValidation"}],
        }
    }
}
MANIFEST = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, kind: Widget}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
"""
GIVEN = f"""\
data = {MANIFEST!r}.encode()
documents, body = {{}}, b"apiVersion: v1\\nkind: Pod\\n"
"""
"""What a page leaves to its reader."""

BLOCKS = [
    pytest.param(block, id=f"{page.stem}-{number}")
    for page in PAGES
    for number, block in enumerate(BLOCK.findall(page.read_text(encoding="utf-8")))
]


def test_there_are_blocks() -> None:
    assert len(BLOCKS) >= 7


@pytest.mark.parametrize("block", BLOCKS)
def test_a_block_runs(block: str, tmp_path: Path) -> None:
    documents = {"api/v1": document("core"), "apis/apps/v1": document("apps", paths=DEPLOYMENTS)}
    with serving_in_thread(Reference(documents)) as server:
        config: dict[str, Any] = {
            "current-context": "here",
            "contexts": [{"name": "here", "context": {"cluster": "c"}}],
            "clusters": [{"name": "c", "cluster": {"server": server.url}}],
        }
        (tmp_path / "config").write_text(yaml.safe_dump(config))
        functions = re.findall(r"^async def (\w+)", block, re.MULTILINE)
        calls = [f"asyncio.run({name}({server.url!r}, 'apps/v1'))" for name in functions]
        code = "\n".join(["import asyncio", GIVEN, block, *calls])
        environment = {
            **os.environ,
            "HOME": str(tmp_path),
            "XDG_CACHE_HOME": str(tmp_path / "cache"),
            "KUBECONFIG": str(tmp_path / "config"),
            "SERVER": server.url,
        }
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", code],
            capture_output=True,
            text=True,
            timeout=DEADLINE,
            env=environment,
        )
    assert done.returncode == 0, done.stderr


def test_a_block_that_is_wrong_is_noticed(tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        test_a_block_runs("from specmux_cache import NoSuchName", tmp_path)
