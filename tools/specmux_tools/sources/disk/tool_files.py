"""Files of other tools that lie among manifests and never reach an API server: of Helm charts, of Skaffold,
of kustomize, and OpenAPI documents. They are skipped where a folder is read, and never where a file is named
itself.

A template is skipped for what it has, not for where it lies: one without ``{{`` is a manifest. A stream that
has a manifest beside another tool's document is read whole.

kustomize's are a kustomization, the configuration of its transformers, and patches, which are parts of
objects. A patch is told by the kustomization that names it, be it among the files or above them on disk. A
patch of a definition, which pre-commit may give alone, is told by what it lacks.
"""

from __future__ import annotations

import os.path
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path, PurePath
from typing import Any, Final

from specmux_aggregator.console import warn
from specmux_converters.counted_nouns import counted, list_first
from specmux_converters.errors import ConverterError, cut
from specmux_converters.json_values import array, mapping
from specmux_tools.sources.input import Input
from specmux_tools.sources.options import say_once
from specmux_tools.sources.source import FileRefused

_VALUES: Final = re.compile(r"(?:values[^/]*|ci/[^/]*-values)\.(?:ya?ml|json)|values\.schema\.json")
_SKAFFOLD: Final = re.compile(rb"^apiVersion:[ \t]*[\"']?skaffold/", re.MULTILINE)
_DOCUMENT: Final = re.compile(rb"\A\s*(?:\{\s*)?(?:#[^\n]*\n\s*)*\"?(?:swagger|openapi)\"?[ \t]*:")
"""A member that stands first: a manifest that has one is a manifest."""
_SEPARATOR: Final = re.compile(rb"^---.*$", re.MULTILINE)
_CONTENT: Final = re.compile(rb"^[ \t]*[^#\s]", re.MULTILINE)
"""A line that is more than a comment."""

ADVICE: Final = {
    "a Helm chart": "render it: helm template CHART | specmux validate -",
    "OpenAPI": "specmux check validates documents",
}
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


def without_tool_files(inputs: Iterable[Input], *, by_name: bool = False) -> list[Input]:
    """The inputs that are not other tools'; one line for each tool names those that are. ``inputs`` are in
    memory. ``by_name``: skip files that were named themselves, too. Raises FileRefused."""
    given = tuple(inputs)
    charts = {PurePath(each.name).parent for each in given if PurePath(each.name).name == "Chart.yaml"}
    kept: list[Input] = []
    skipped: dict[str, list[str]] = {}
    for each in given:
        tool = _tool_of(PurePath(each.name), each.read(), charts) if each.relative or by_name else None
        if tool is None:
            kept.append(each)
        else:
            skipped.setdefault(tool, []).append(cut(each.name))
    for tool, names in skipped.items():
        advice = f" ({ADVICE[tool]})" if tool in ADVICE else ""
        warn(f"{counted(len(names), 'file')} of {tool} skipped: {list_first(names, _SHOWN)}{advice}")
    return kept


def _tool_of(path: PurePath, data: bytes, charts: Collection[PurePath]) -> str | None:
    chart = next((folder for folder in path.parents if folder in charts), None)
    if chart is not None:
        inside = path.relative_to(chart).as_posix()
        is_template = inside.startswith("templates/") and b"{{" in data
        if is_template or inside == "Chart.yaml" or _VALUES.fullmatch(inside):
            return "a Helm chart"
    documents = [each for each in _SEPARATOR.split(data) if _CONTENT.search(each)]
    if not documents:
        return None
    if all(map(_SKAFFOLD.search, documents)):
        return "Skaffold"
    return "OpenAPI" if all(map(_DOCUMENT.match, documents)) else None


def report_skipped(names: Iterable[str]) -> None:
    skipped = [cut(name) for name in sorted(names)]
    if skipped:
        files = counted(len(skipped), "file")
        text = f"{files} of kustomize (kustomizations, patches) skipped: {list_first(skipped, _SHOWN)}"
        say_once(warn, text)


class KustomizeFiles:
    """Kustomize's among some inputs. Kustomizations are read here, other files only by their owner."""

    def __init__(self, inputs: Iterable[Input]) -> None:
        """A kustomization that cannot be read names no patch."""
        self._patches: set[str] = set()
        folders: dict[Path, None] = {}
        for each in inputs:
            if Path(each.name).name in NAMES:
                self._add_kustomization(each)
            if each.is_on_disk and each.name.endswith(_SUFFIXES):
                folders[Path(each.name).absolute().parent] = None
        for kustomization in _above(folders):
            self._add_kustomization(Input.at(kustomization))

    def has(self, file: Input) -> bool:
        if Path(file.name).name in NAMES or _place(Path(file.name)) in self._patches:
            return True
        data = file.read()
        may_be_patch = b"CustomResourceDefinition" in data and b"openAPIV3Schema" not in data
        may_be_configuration = b"Reference" in data and b"apiVersion:" not in data
        may_be_kustomization = _GROUP.encode() in data
        if not (may_be_patch or may_be_configuration or may_be_kustomization) or len(data) > _MOST:
            return False
        documents = _documents(data)
        return bool(documents) and all(
            _is_patch_of_definition(each) or _is_configuration(mapping(each)) for each in documents
        )

    def _add_kustomization(self, file: Input) -> None:
        try:
            documents = _documents(file.read())
        except FileRefused:
            return
        folder = Path(file.name).parent
        self._patches |= {_place(folder / path) for each in documents for path in _paths(each)}


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
    from specmux_converters.yaml import parse_yaml_stream  # where there is something to read

    try:
        return tuple(parse_yaml_stream(data, is_manifest=True))
    except ConverterError:
        return ()
