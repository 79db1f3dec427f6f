"""The paths of a catalogue: what each asks for, and which a kind has. All lower case.

Layouts are those that programs have built in: ``<group>/<kind>_<version>`` of CRDs-catalog, flux-schema and
yaml-language-server, ``<release>-standalone[-strict]/<kind>[-<label>]-<version>`` of kubeconform and
kubernetes-json-schema, ``openshift/<release>-strict/<kind>_<group>_<version>`` of yaml-language-server.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final, TypeAlias

from specmux_converters.group_versions import GroupVersion, split
from specmux_converters.json_schema.forms import OPEN, STRICT, Dialect, ModelForm, SchemaForm
from specmux_converters.lazy.dataclasses import dataclass

if TYPE_CHECKING:  # paths need no documents
    from specmux_converters.json_schema.kinds import Kind

MASTER: Final = "master"
BUNDLE: Final = SchemaForm(is_named=True)
PARTIAL: Final = SchemaForm(is_partial=True)

_RELEASE: Final = rf"(?P<release>{MASTER}|v[0-9]+\.[0-9]+\.[0-9]+)"
_GROUPED: Final = re.compile(
    r"(?:(?P<section>bundle|partial)/)?(?P<group>[a-z0-9.-]+)/(?P<kind>[a-z0-9]+)_(?P<version>[a-z0-9]+)\.json"
)
_STANDALONE: Final = re.compile(
    rf"{_RELEASE}-standalone(?P<strict>-strict)?"
    r"/(?P<kind>[a-z0-9]+)(?:-(?P<label>[a-z0-9-]+))?-(?P<version>[a-z0-9]+)\.json"
)
_OPENSHIFT: Final = re.compile(
    r"openshift/[a-z0-9.-]+-strict/(?P<kind>[a-z0-9]+)_(?P<group>[a-z0-9.-]+)_(?P<version>[a-z0-9]+)\.json"
)
_WHOLE: Final = re.compile(
    rf"(?:{_RELEASE}(?P<layout>-local|-standalone|-standalone-strict)?/)?(?P<what>_definitions|all)\.json"
)
_MODELS: Final = re.compile(
    r"(?P<partial>partial-)?models/(?P<group>[a-z0-9.-]+)_(?P<version>[a-z0-9]+)(?P<openapi>\.openapi)?\.json"
)
_LISTS: Final = {"index.json": "index", "catalog.json": "catalog", "crds.yaml": "crds"}
_SECTIONS: Final = {"bundle": BUNDLE, "partial": PARTIAL, None: STRICT}

CORE: Final = ("core", "v1")
_CORE_V1: Final = GroupVersion("api/v1")
"""The folder of the core group in layouts with a folder per group."""


@dataclass(frozen=True, slots=True)
class OneFile:
    """A kind, or with a label a component; ``name`` and ``label`` are in lower case."""

    form: SchemaForm
    name: str
    version: str
    group: str | None = None
    label: str = ""
    """The first label of the group, if only that is known; "" is core."""
    release: str | None = None

    def documents(self, keys: Iterable[GroupVersion]) -> tuple[GroupVersion, ...]:
        """The documents that may contain the kind."""
        return tuple(sorted(key for key in keys if self._may_be_in(key)))

    def _may_be_in(self, key: GroupVersion) -> bool:
        found = split(key)
        if found is None or found[1] != self.version:
            return False
        return found[0] == self.group if self.group is not None else label_of(found[0]) == self.label


@dataclass(frozen=True, slots=True)
class WholeFile:
    """A file made from all documents: "all", "_definitions", "index", "catalog", "crds"."""

    what: str
    form: SchemaForm = STRICT
    release: str | None = None


@dataclass(frozen=True, slots=True)
class ModelsFile:
    """A bundle of one group-version."""

    form: ModelForm
    group: str
    version: str
    release: None = None

    def documents(self, keys: Iterable[GroupVersion]) -> tuple[GroupVersion, ...]:
        return tuple(key for key in keys if split(key) == (self.group, self.version))


Wanted: TypeAlias = OneFile | WholeFile | ModelsFile


def file_wanted_at(path: str) -> Wanted | None:
    """The file at a path below ``/schemas``; None if it is not a catalogue path."""
    if path in _LISTS:
        return WholeFile(_LISTS[path])
    if match := _WHOLE.fullmatch(path):
        is_strict = match["release"] is None or match["layout"] == "-standalone-strict"
        return WholeFile(match["what"], STRICT if is_strict else OPEN, match["release"])
    if match := _STANDALONE.fullmatch(path):
        form = STRICT if match["strict"] else OPEN
        return OneFile(
            form, match["kind"], match["version"], label=match["label"] or "", release=match["release"]
        )
    if match := _OPENSHIFT.fullmatch(path):
        return OneFile(STRICT, match["kind"], match["version"], _group(match["group"]))
    if match := _MODELS.fullmatch(path):
        dialect: Dialect = "openapi" if match["openapi"] else "json-schema"
        is_partial = match["partial"] is not None
        return ModelsFile(ModelForm(dialect, is_partial), _group(match["group"]), match["version"])
    if match := _GROUPED.fullmatch(path):
        return OneFile(_SECTIONS[match["section"]], match["kind"], match["version"], _group(match["group"]))
    return None


def is_of_release(wanted_release: str | None, version: str | None) -> bool:
    """Whether the release in a path is that of a cluster ("v1.35.2"), ignoring the patch level. A cluster of
    unknown version matches only "master"."""
    if wanted_release is None or wanted_release == MASTER:
        return True
    return version is not None and _minor(wanted_release) == _minor(version)


def label_of(group: str) -> str:
    return group.partition(".")[0]


def grouped_path(kind: Kind, group: str | None = None) -> str:
    """The path for readers that know the whole group."""
    return f"{group or kind.group or 'core'}/{kind.kind}_{kind.version}.json".lower()


def standalone_path(kind: Kind, form: SchemaForm, release: str = MASTER) -> str:
    """The default location of kubeconform."""
    label = f"-{label_of(kind.group)}" if kind.group else ""
    strict = "-strict" if form.is_strict else ""
    return f"{release}-standalone{strict}/{kind.kind}{label}-{kind.version}.json".lower()


def models_path(kind: Kind, form: ModelForm) -> str:
    """The bundle of its group-version."""
    folder = "partial-models" if form.is_partial else "models"
    end = ".openapi.json" if form.dialect == "openapi" else ".json"
    return f"{folder}/{kind.group or 'core'}_{kind.version}{end}"


def component_stem(component: str) -> str | None:
    """The name in kubernetes-json-schema of a component that is not a kind; None for a name of fewer than
    three words."""
    words = component.lower().split(".")
    if len(words) < 3 or not re.fullmatch(r"[a-z0-9-]+", "".join(words[-3:])):
        return None
    group, version, name = words[-3:]
    return f"{name}-{version}" if group in ("core", "api") else f"{name}-{group}-{version}"


def paths_of(kind: Kind, release: str) -> Iterator[tuple[str, SchemaForm]]:
    """Every path of a kind, each once."""
    for group in (kind.group,) if kind.group else CORE:
        yield grouped_path(kind, group), STRICT
        yield f"bundle/{grouped_path(kind, group)}", BUNDLE
        yield f"partial/{grouped_path(kind, group)}", PARTIAL
    for form in (STRICT, OPEN):
        for name in dict.fromkeys((MASTER, release)):
            yield standalone_path(kind, form, name), form


def _group(text: str) -> str:
    return "" if text in CORE else text


def _minor(release: str) -> tuple[str, str]:
    major, _, rest = release.removeprefix("v").partition(".")
    return major, re.split(r"[^0-9]", rest, maxsplit=1)[0]


def documents_needed(file: Wanted, keys: Iterable[GroupVersion]) -> tuple[GroupVersion, ...]:
    """The documents from which the file is made; all of them for a file about all kinds."""
    if isinstance(file, WholeFile):
        return tuple(sorted(keys))
    held = set(keys)
    found = file.documents(held)
    if isinstance(file, OneFile) and file.group is None and _CORE_V1 in held and _CORE_V1 not in found:
        # Components of the core group and meta/v1 are in every document; this one represents them.
        return (*found, _CORE_V1)
    return found
