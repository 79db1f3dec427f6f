"""Files of kustomize that lie among manifests, as kubebuilder lays them out, and that are no manifests.

A kustomization, the configuration of its transformers, and patches, which are parts of objects. A patch is
told by the kustomization that names it, be it among the files or above them on disk. A patch of a definition,
which pre-commit may give alone, is told by what it lacks.
"""

from __future__ import annotations

import os.path
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import click

from specmux_aggregator.console import warn
from specmux_converters.counted_nouns import counted, listed
from specmux_converters.errors import ConverterError, cut
from specmux_converters.json_values import array, mapping

NAMES: Final = frozenset(("kustomization.yaml", "kustomization.yml", "Kustomization"))
_GROUP: Final = "kustomize.config.k8s.io/"
_SUFFIXES: Final = (".yaml", ".yml", ".json")
_SHOWN: Final = 5
_MOST: Final = 256 * 1024
"""Bytes of a patch that no kustomization names; a larger file is read as what it is."""
_ABOVE_MAX: Final = 8
"""Folders above a file in which a kustomization is looked for."""
_IDENTITY: Final = ("group", "names", "scope", "versions", "version", "validation")
"""Members of which a definition's spec has some, and a patch of it has none."""
_TRANSFORMED: Final = frozenset((
    "namePrefix", "nameSuffix", "namespace", "commonLabels", "labels", "commonAnnotations", "nameReference",
    "varReference", "images", "replicas", "templateLabels",
))  # fmt: skip
"""Members of a configuration of transformers (api/internal/plugins/builtinconfig in kustomize)."""


def without_kustomize(files: Mapping[str, bytes], *, are_on_disk: bool = True) -> dict[str, bytes]:
    """Those that are not kustomize's; the others are named in one line."""
    found = KustomizeFiles(files, lambda name: files[name], are_on_disk=are_on_disk)
    skipped = {name for name, data in files.items() if found.has(name, data)}
    report_skipped(skipped)
    return {name: data for name, data in files.items() if name not in skipped}


def report_skipped(names: Iterable[str]) -> None:
    skipped = [cut(name) for name in sorted(names)]
    if skipped:
        files = counted(len(skipped), "file")
        text = f"{files} of kustomize (kustomizations, patches) skipped: {listed(skipped, _SHOWN)}"
        context = click.get_current_context(silent=True)
        # A command may read one folder for several of its arguments.
        said = context.meta.setdefault(__name__, set()) if context is not None else set()
        if text not in said:
            said.add(text)
            warn(text)


class KustomizeFiles:
    """Kustomize's among some files. Kustomizations are read here, other files only by their owner."""

    def __init__(
        self, names: Iterable[str], read: Callable[[str], bytes], *, are_on_disk: bool = True
    ) -> None:
        """``read``: the bytes of one of the names. What cannot be read names no patch."""
        self._named: set[str] = set()
        folders: dict[Path, None] = {}
        for name in names:
            if Path(name).name in NAMES:
                self._add(name, read)
            if name.endswith(_SUFFIXES):
                folders[Path(name).absolute().parent] = None
        for kustomization in _above(folders) if are_on_disk else ():
            self._add(str(kustomization), lambda path: Path(path).read_bytes())

    def has(self, name: str, data: bytes) -> bool:
        if Path(name).name in NAMES or _place(Path(name)) in self._named:
            return True
        may_be_patch = b"CustomResourceDefinition" in data and b"openAPIV3Schema" not in data
        may_be_configuration = b"Reference" in data and b"apiVersion:" not in data
        may_be_kustomization = _GROUP.encode() in data
        if not (may_be_patch or may_be_configuration or may_be_kustomization) or len(data) > _MOST:
            return False
        documents = _documents(data)
        return bool(documents) and all(
            _is_patch_of_definition(each) or _is_configuration(mapping(each)) for each in documents
        )

    def _add(self, name: str, read: Callable[[str], bytes]) -> None:
        try:
            documents = _documents(read(name))
        except OSError:
            return
        self._named |= {_place(Path(name).parent / path) for each in documents for path in _paths(each)}


def _place(path: Path) -> str:
    return os.path.normpath(path.absolute())


def _above(folders: Iterable[Path]) -> Iterator[Path]:
    """Kustomizations on disk in the folders and above them, within their repository."""
    seen: set[Path] = set()
    for folder in folders:
        for above in (folder, *folder.parents)[:_ABOVE_MAX]:
            if above in seen:
                break
            seen.add(above)
            yield from (path for name in sorted(NAMES) if (path := above / name).is_file())
            if (above / ".git").exists():
                break


def _paths(kustomization: Any) -> Iterator[str]:
    """Files that it names and that are no manifests."""
    value = mapping(kustomization)
    yield from (each for each in array(value.get("configurations")) if isinstance(each, str))
    for member in ("patches", "patchesStrategicMerge", "patchesJson6902", "replacements"):
        for each in array(value.get(member)):
            path = mapping(each).get("path") if isinstance(each, dict) else each
            if isinstance(path, str) and "\n" not in path:  # a patch may stand in the list itself
                yield path


def _is_configuration(document: Mapping[str, Any]) -> bool:
    return str(document.get("apiVersion")).startswith(_GROUP) or document.keys() <= _TRANSFORMED


def _is_patch_of_definition(document: Any) -> bool:
    value = mapping(document)
    metadata, spec = mapping(value.get("metadata")), mapping(value.get("spec"))
    if value.get("kind") != "CustomResourceDefinition" or any(name in spec for name in _IDENTITY):
        return False
    return bool(spec) or any(metadata.get(name) for name in ("annotations", "labels"))


def _documents(data: bytes) -> tuple[Any, ...]:
    from specmux_converters.yaml.reader import parse_yaml_stream  # where there is something to read

    try:
        return tuple(parse_yaml_stream(data, is_manifest=True))
    except ConverterError:
        return ()
