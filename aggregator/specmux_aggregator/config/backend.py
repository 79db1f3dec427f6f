"""The backends of a configuration: parse a mapping of the file, or a flag, into a Backend."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from specmux_aggregator.config.setting_fields import BadValue, scalar
from specmux_aggregator.folders import locate
from specmux_aggregator.model.backend import Backend, BackendKind, BackendName
from specmux_cache.access.server_access import Credentials, ServerTLS
from specmux_cache.access.urls import backend_url, proxy_url
from specmux_converters.errors import cut
from specmux_converters.group_versions import GroupVersion, key_fault
from specmux_converters.lazy.patterns import pattern
from specmux_converters.releases import UnknownRelease, minor_release

if TYPE_CHECKING:  # flags are read without YAML, whose import takes 10 ms
    import yaml

    from specmux_cache.access.yaml_nodes import YAMLReader

SOURCES: Final = ("url", "urls", "directory", "kubernetes")
"""Keys that say where documents come from."""

_NAME: Final = pattern(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,251}[A-Za-z0-9])?")


def read_backend(reader: YAMLReader, node: yaml.Node, key: str, *, folder: Path) -> Backend | None:
    """The backend in a mapping; None if it is invalid. Reports every fault to ``reader``.

    Relative paths start at ``folder``.
    """
    members = reader.members(node, key, [*_BACKEND, "urls", "group_versions", *_GROUPS])
    if not reader.is_mapping(node):
        return None
    values = _scalars(reader, members, key, _BACKEND, folder)
    tls = _group(reader, members, key, "tls", folder)
    credentials = _group(reader, members, key, "credentials", folder)
    if "urls" in members:
        values["urls"] = urls = _urls(reader, members["urls"], f"{key}.urls")
        values["url"] = urls[0] if urls else ""
    if "group_versions" in members:
        values["group_versions"] = _group_versions(reader, members["group_versions"], f"{key}.group_versions")
    if "directory" in members or "kubernetes" in members:
        values.setdefault("kind", BackendKind.DIRECTORY)
    faults = list(_faults(members, values, tls))
    for fault in faults:
        reader.fault(node, key, fault)
    if faults or not members.keys() <= values.keys() | {"tls", "credentials"}:
        return None
    return Backend(**values, tls=ServerTLS(**tls), credentials=Credentials(**credentials))


def flag_backend(text: str) -> Backend:
    """The backend in ``NAME=URL``. Raises BadValue."""
    name, equals, url = text.partition("=")
    if not equals:
        raise BadValue("wants NAME=URL")
    return Backend(name=backend_name(name), url=backend_url(url))


def directory_backends(directories: Iterable[Path], *, taken: Iterable[str]) -> tuple[Backend, ...]:
    """A backend per directory, named after its folder, with a number appended if that name is ``taken``."""
    names = set(taken)
    backends = []
    for directory in directories:
        plain = re.sub(r"[^A-Za-z0-9._-]+", "-", directory.resolve().name).strip("._-")[:200].rstrip("._-")
        name = plain = plain or "directory"
        number = 1
        while name in names:
            number += 1
            name = f"{plain}-{number}"
        names.add(name)
        backends.append(Backend(name=backend_name(name), kind=BackendKind.DIRECTORY, directory=directory))
    return tuple(backends)


def backend_name(text: str) -> BackendName:
    """Raises BadValue. A name is a metric label and part of file names, so the syntax is that of Kubernetes'
    names."""
    if not _NAME.fullmatch(text):
        raise BadValue(f'"{cut(text)}" is not a name: letters, digits, ".", "_" and "-", at most 253')
    return BackendName(text)


def _faults(members: Mapping[str, Any], values: Mapping[str, Any], tls: Mapping[str, Any]) -> Iterable[str]:
    """Faults of a backend as a whole."""
    kind = values.get("kind", BackendKind.AUTO)
    if "name" not in members:
        yield "has no name"
    sources = [name for name in SOURCES if name in members]
    if len(sources) > 1:
        yield f"has a {' and a '.join(sources)}; it can be only one of them"
    elif not sources:
        yield "has neither a url nor a directory, nor a release of kubernetes"
    elif "kubernetes" in members:
        if kind is not BackendKind.DIRECTORY:
            yield f"is of kind {kind}, but its documents are those of a release, as of a directory"
        for name in ("tls", "credentials", "proxy_url"):
            if name in members:
                yield f"asks nobody for Kubernetes' own kinds, so it takes no {name}"
    elif kind.is_directory != ("directory" in members):
        yield f"is of kind {kind}, which needs {'a directory' if kind.is_directory else 'a url'}"
    if tls and str(values.get("url", "https:")).startswith("http:"):
        yield "has tls settings, but its url begins with http://"
    if "directory" in members and (tls or "credentials" in members):
        yield "is a directory, which takes neither tls nor credentials"
    if "directory" in members and "proxy_url" in members:
        yield "is a directory, which takes no proxy_url"
    if "key_file" in tls and "cert_file" not in tls:
        yield "has tls.key_file without tls.cert_file"
    if tls.get("insecure_skip_verify") and "ca_file" in tls:
        # client-go refuses the combination as well: only one of them can be intended.
        yield "has tls.ca_file and tls.insecure_skip_verify; it can be only one of them"


def _group(
    reader: YAMLReader, members: Mapping[str, yaml.Node], key: str, group: str, folder: Path
) -> dict[str, Any]:
    readers = _GROUPS[group]
    inner = reader.members(members.get(group), f"{key}.{group}", readers)
    return _scalars(reader, inner, f"{key}.{group}", readers, folder)


def _scalars(
    reader: YAMLReader,
    members: Mapping[str, yaml.Node],
    key: str,
    readers: Mapping[str, tuple[type, Callable[[str], object]]],
    folder: Path,
) -> dict[str, Any]:
    values = {}
    for name, (wanted, read) in readers.items():
        if name not in members:
            continue
        value = reader.scalar(members[name], f"{key}.{name}", wanted, read)
        if value is not None:
            values[name] = locate(value, folder) if isinstance(value, Path) else value
    return values


def _urls(reader: YAMLReader, node: yaml.Node, key: str) -> tuple[str, ...]:
    nodes = reader.items(node, key)
    if reader.is_list(node) and not nodes:
        reader.fault(node, key, "lists nothing; name the URL of each server of the backend")
    listed = [reader.scalar(item, f"{key}[{index}]", str, backend_url) for index, item in enumerate(nodes)]
    return tuple(dict.fromkeys(url for url in listed if isinstance(url, str)))


def _group_versions(reader: YAMLReader, node: yaml.Node, key: str) -> frozenset[GroupVersion]:
    nodes = reader.items(node, key)
    if reader.is_list(node) and not nodes:
        reader.fault(node, key, "lists nothing; without this key, a backend may publish whatever it offers")
    listed = [reader.scalar(item, f"{key}[{index}]", str, _group_version) for index, item in enumerate(nodes)]
    return frozenset(item for item in listed if item is not None)


def _group_version(text: str) -> GroupVersion:
    fault = key_fault(text)
    if fault is not None:
        raise BadValue(f'"{cut(text)}" {fault}; wanted is a key of /openapi/v3, such as apis/apps/v1')
    return GroupVersion(text)


def _kind(text: str) -> BackendKind:
    for kind in BackendKind:
        if kind == text:
            return kind
    raise BadValue(f'"{cut(text)}" is not one of {", ".join(BackendKind)}')


def _release(text: str) -> str:
    try:
        return f"1.{minor_release(text)}"
    except UnknownRelease as error:
        raise BadValue(str(error)) from error


def _proxy_url(text: str) -> str:
    if "@" in text:
        raise BadValue("holds a user name or password; a proxy that wants them is for a kubeconfig")
    return proxy_url(text)


def _path(text: str) -> object:
    return scalar(text, Path)


def _text(text: str) -> object:
    return scalar(text, str)


_BACKEND: Final[Mapping[str, tuple[type, Callable[[str], object]]]] = {
    "name": (str, backend_name),
    "kind": (str, _kind),
    "url": (str, backend_url),
    "directory": (Path, _path),
    "kubernetes": (str, _release),
    "priority": (int, lambda text: scalar(text, int)),
    "proxy_url": (str, _proxy_url),
    "group_priority": (int, lambda text: scalar(text, int)),
    "version_priority": (int, lambda text: scalar(text, int)),
}
_GROUPS: Final[Mapping[str, Mapping[str, tuple[type, Callable[[str], object]]]]] = {
    "tls": {
        "ca_file": (Path, _path),
        "cert_file": (Path, _path),
        "key_file": (Path, _path),
        "server_name": (str, _text),
        "insecure_skip_verify": (bool, lambda text: scalar(text, bool)),
    },
    "credentials": {"token_file": (Path, _path), "remote_user": (str, _text)},
}
"""By group, the keys of ServerTLS and Credentials that a file may contain: all except inline data and what
only a kubeconfig has (a test compares them)."""


def file_fields() -> tuple[dict[str, type], dict[str, dict[str, type]]]:
    """The keys of a backend in the file with their types: its own, and those of its groups."""
    own = {name: wanted for name, (wanted, _) in _BACKEND.items()}
    return own, {
        name: {key: wanted for key, (wanted, _) in fields.items()} for name, fields in _GROUPS.items()
    }
