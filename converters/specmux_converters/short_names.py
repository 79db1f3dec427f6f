"""Names of schemas without package paths (KEP-2896): ``Deployment`` for ``io.k8s.api.apps.v1.Deployment``.

Schemas that would share a name all take more of the path, so names do not depend on order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final
from urllib.parse import unquote

from specmux_converters.document import Document
from specmux_converters.json_values import mapping
from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.losses import pointer_to, unescape
from specmux_converters.references import PREFIX, Rename, rewrite

QUALIFIED: Final = 3
"""Parts of a name that includes group and version: ``apps.v1.Deployment``."""

_HEAD: Final = f"{PREFIX}schemas/"


@dataclass(frozen=True, slots=True)
class NameCollision:
    """Schemas with the same last part."""

    word: str
    names: Mapping[str, str]
    """The short names by the original name."""


@dataclass(frozen=True, slots=True)
class ShortNames:
    """The document with renamed schemas."""

    document: Document
    collisions: tuple[NameCollision, ...]


def with_short_names(document: Document) -> ShortNames:
    """Raises InvalidDocument if it is nested too deeply."""
    components = document.get("components")
    schemas = mapping(components).get("schemas")
    if not isinstance(components, dict) or not isinstance(schemas, dict):
        return ShortNames(document, ())
    names = short_names(schemas)
    renamed = rewrite(document, "document", renaming(names))
    sections = renamed["components"]
    members = sorted((names[name], node) for name, node in sections["schemas"].items())
    result = {**renamed, "components": {**sections, "schemas": dict(members)}}
    return ShortNames(result, tuple(_collisions(names)))


def short_names(names: Iterable[str], joined: Callable[[list[str]], str] = ".".join) -> dict[str, str]:
    """A unique name for each. ``joined``: combines parts of the path to a name."""
    found: dict[str, str] = {}
    every = set(names)
    waiting, length = sorted(every), 1
    while waiting:
        shared: dict[str, list[str]] = {}
        for name in waiting:
            shared.setdefault(joined(name.split(".")[-length:]), []).append(name)
        taken = set(found.values())
        for word, members in shared.items():
            if len(members) == 1 and word not in taken and word not in every - set(members):
                found[members[0]] = word
            else:
                found.update((name, name) for name in members if name.count(".") < length)
        waiting = [name for name in waiting if name not in found]
        length = max(QUALIFIED, length + 1)
    return found


def renaming(names: Mapping[str, str]) -> Rename:
    """Rename references to schemas, and into them."""

    def rename(ref: str) -> str:
        if not ref.startswith(_HEAD):
            return ref
        token, slash, rest = ref.removeprefix(_HEAD).partition("/")
        for name in (unescape(token), unescape(unquote(token))):
            if name in names:
                return f"{_HEAD[:-1]}{pointer_to(names[name])}{slash}{rest}"
        return ref

    return rename


def _collisions(names: Mapping[str, str]) -> list[NameCollision]:
    by_word: dict[str, dict[str, str]] = {}
    for name, new in sorted(names.items()):
        by_word.setdefault(name.rpartition(".")[2], {})[name] = new
    return [NameCollision(word, members) for word, members in sorted(by_word.items()) if len(members) > 1]
