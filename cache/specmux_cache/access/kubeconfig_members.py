"""A mapping in a kubeconfig and its members, with the key and file for error messages."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from specmux_cache.access.yaml_nodes import YAMLReader
from specmux_cache.errors import BadValue
from specmux_converters.lazy.dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class KubeconfigEntry:
    """A mapping of one file, with its context."""

    reader: YAMLReader
    node: yaml.Node | None
    key: str
    folder: Path

    def members(self, known: tuple[str, ...]) -> Members:
        return Members(self, self.reader.members(self.node, self.key, known, is_open=True))


@dataclass(frozen=True, slots=True)
class Members:
    entry: KubeconfigEntry
    nodes: Mapping[str, yaml.Node]

    def inner(self, name: str, known: tuple[str, ...]) -> Members:
        return self._at(name, self.nodes.get(name)).members(known)

    def items(self, name: str) -> list[KubeconfigEntry]:
        nodes = self.entry.reader.items(self.nodes.get(name), self._key(name))
        return [self._at(f"{name}[{index}]", node) for index, node in enumerate(nodes)]

    def text(self, name: str) -> str | None:
        """None if it is absent, empty or invalid."""
        return self._read_member(name, str, str) or None

    def flag(self, name: str) -> bool:
        return self._read_member(name, bool, lambda text: text.lower() in ("true", "yes", "on")) or False

    def file(self, name: str) -> Path | None:
        text = self.text(name)
        return None if text is None else self.entry.folder / text

    def data(self, name: str) -> bytes | None:
        return self._read_member(name, str, _base64) or None

    def checked(self, name: str, read: Any) -> Any:
        """The text converted by ``read``, which raises BadValue."""
        return self._read_member(name, str, lambda text: read(text) if text else None)

    def texts(self, name: str) -> list[str]:
        found = [
            item.reader.scalar(item.node, item.key, str, str)
            for item in self.items(name)
            if item.node is not None
        ]
        return [item for item in found if item is not None]

    def fault(self, name: str, reason: str) -> None:
        node = self.nodes.get(name, self.entry.node)
        if node is not None:
            self.entry.reader.fault(node, self._key(name) if name else self.entry.key, reason)

    def _read_member(self, name: str, wanted: type, read: Any) -> Any:
        node = self.nodes.get(name)
        return None if node is None else self.entry.reader.scalar(node, self._key(name), wanted, read)

    def _at(self, name: str, node: yaml.Node | None) -> KubeconfigEntry:
        return KubeconfigEntry(self.entry.reader, node, self._key(name), self.entry.folder)

    def _key(self, name: str) -> str:
        return f"{self.entry.key}.{name}" if self.entry.key else name


def _base64(text: str) -> bytes:
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        raise BadValue("is not base64") from None
