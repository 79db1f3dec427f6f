"""Parse the configuration file: from YAML text to values. Pure; the keys are the fields of Settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

import yaml

from specmux_aggregator.config.backend import read_backend
from specmux_aggregator.config.setting_fields import SettingField, scalar, setting_fields
from specmux_aggregator.errors import InvalidConfig
from specmux_aggregator.model.backend import Backend
from specmux_cache.access.yaml_nodes import YAMLReader

BACKENDS: Final = "backends"


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """The content of a file; keys that it omits are not in ``values``."""

    values: Mapping[str, object]
    """By key, such as "listen.port"."""
    backends: tuple[Backend, ...]
    lists_backends: bool = False
    """Whether it has a list of backends, possibly empty."""


def parse_config_file(text: str, path: Path) -> ConfigFile:
    """The configuration in ``text``; relative paths in it start at the folder of ``path``.

    Raises InvalidConfig with one line per fault: "FILE:LINE: KEY: what is wrong".
    """
    reader = YAMLReader(path, InvalidConfig)
    groups: dict[str, list[SettingField]] = {}
    for setting in setting_fields():
        groups.setdefault(setting.group, []).append(setting)
    members = reader.members(reader.compose(text), "", [*groups, BACKENDS])
    folder = path.absolute().parent
    values: dict[str, object] = {}
    for group, settings in groups.items():
        switched_on = _switch(members.get(group), settings)
        if switched_on is not None:
            values[switched_on.key] = True
            continue
        inner = reader.members(members.get(group), group, [setting.name for setting in settings])
        for setting in settings:
            if setting.name in inner and setting.is_list:
                values[setting.key] = _texts(reader, inner[setting.name], setting.key)
            elif setting.name in inner:
                value = reader.scalar(
                    inner[setting.name], setting.key, setting.type, setting.read, words=setting.choices
                )
                values[setting.key] = folder / value if setting.type is Path and value is not None else value
    backends = _backends(reader, members.get(BACKENDS), folder)
    reader.finish()
    lists_backends = isinstance(members.get(BACKENDS), yaml.SequenceNode)
    return ConfigFile(MappingProxyType(values), backends, lists_backends)


def _switch(node: yaml.Node | None, settings: list[SettingField]) -> SettingField | None:
    """The switch for which a group's short form stands: ``proxy: resources``."""
    if not isinstance(node, yaml.ScalarNode):
        return None
    return next((item for item in settings if item.type is bool and item.name == node.value), None)


def _texts(reader: YAMLReader, node: yaml.Node, key: str) -> tuple[str, ...]:
    nodes = reader.items(node, key)
    if isinstance(node, yaml.SequenceNode) and not nodes:
        reader.fault(node, key, "lists nothing; omit the key for the default")
    read = [
        reader.scalar(item, f"{key}[{index}]", str, lambda text: scalar(text, str))
        for index, item in enumerate(nodes)
    ]
    return tuple(text for text in read if text is not None)


def _backends(reader: YAMLReader, node: yaml.Node | None, folder: Path) -> tuple[Backend, ...]:
    backends: dict[str, Backend] = {}
    for index, item in enumerate(reader.items(node, BACKENDS)):
        key = f"{BACKENDS}[{index}]"
        backend = read_backend(reader, item, key, folder=folder)
        if backend is None:
            continue
        if backend.name in backends:
            reader.fault(item, f"{key}.name", f"{backend.name} is the name of another backend")
        backends[backend.name] = backend
    return tuple(backends.values())
