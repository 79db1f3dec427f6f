"""Puts files of npm's swagger-ui-dist into the wheel: one archive of the registry, taken with its hash alone.

No file of others is in the repository, and nothing of npm runs: its dependencies are not installed.
"""

from __future__ import annotations

import base64
import hashlib
import io
import os
import tarfile
import urllib.request
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

REGISTRY = "https://registry.npmjs.org"
INTEGRITY = {
    "5.35.0": "U06rpMtW9V3XPGOBeamTUSr0Z09jMX4IJuANpE/EZbAhw0G8CgwrzU4YmXkn/h0wCDNsXdGarTNNHC3sU8yVUQ==",
}
"""SHA-512 as the registry tells it of each version (``npm view swagger-ui-dist@VERSION dist.integrity``)."""
FILES = (
    "LICENSE",
    "NOTICE",
    "swagger-ui-bundle.js",
    "swagger-ui-bundle.js.LICENSE.txt",
    "swagger-ui-standalone-preset.js",
    "swagger-ui-standalone-preset.js.LICENSE.txt",
    "swagger-ui.css",
)
ARCHIVE_MAX = 32 * 1024 * 1024
TIMEOUT = 60


class SwaggerUiHook(BuildHookInterface):  # type: ignore[type-arg]
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Raises ValueError for an archive that is not the pinned one."""
        registry = os.environ.get("NPM_CONFIG_REGISTRY", REGISTRY).rstrip("/")
        archive = fetched(registry, self.metadata.version)
        self._folder = TemporaryDirectory(prefix="specmux-swagger-ui-")
        for name, body in contents(archive).items():
            path = Path(self._folder.name, name)
            path.write_bytes(body)
            build_data["force_include"][str(path)] = f"specmux_swagger_ui/files/{name}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        self._folder.cleanup()


def fetched(registry: str, version: str) -> bytes:
    """The archive. Raises ValueError for one with another hash, OSError where the registry gives none."""
    url = f"{registry}/swagger-ui-dist/-/swagger-ui-dist-{version}.tgz"
    with urllib.request.urlopen(url, timeout=TIMEOUT) as answer:  # noqa: S310  # its hash is what counts
        archive: bytes = answer.read(ARCHIVE_MAX + 1)
    found = base64.b64encode(hashlib.sha512(archive).digest()).decode()
    if found != INTEGRITY[version]:
        raise ValueError(f"{url} is not the archive that is pinned: its hash is {found}")
    return archive


def contents(archive: bytes) -> dict[str, bytes]:
    """What is taken of it, by name."""
    with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as files:
        members = {name: files.extractfile(f"package/{name}") for name in FILES}
        return {name: member.read() for name, member in members.items() if member is not None}
