"""Documents as lists of shared parts, whatever was converted; joined on demand.

A document is a join of dicts, or of bytes encoded once. A part, a path or a component, *is* its canonical
JSON. The tree is parsed from it on demand: its keys are sorted whatever the order of the input, it shares
nothing with the input, and users of JSON never pay for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from typing import Any, Self

import orjson

from specmux_converters.document import Document, canonical
from specmux_converters.group_versions import GroupVersion
from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.losses import Loss
from specmux_converters.memory import in_own_memory

ENTRY_COST = 64
"""Bytes of a component in a document beside its own JSON: its name and its place in a dict."""


@dataclass(slots=True)
class DocumentPart:
    """A path or component as canonical JSON. ``refs``: the components that it refers to ("schemas/Pod")."""

    json: bytes
    refs: frozenset[str]
    losses: tuple[Loss, ...]
    tree: dict[str, Any] | None = field(default=None, repr=False, compare=False)

    @classmethod
    def of(
        cls,
        value: Any,
        *path: str | int,
        refs: frozenset[str] = frozenset(),
        losses: tuple[Loss, ...] = (),
    ) -> Self:
        """The part of a value. ``path``: its place. Raises as ``canonical``."""
        return cls(in_own_memory(canonical(value, *path)), refs, losses)

    def value(self) -> dict[str, Any]:
        """The part as a tree; the same dict every time, so read-only."""
        if self.tree is None:
            self.tree = orjson.loads(self.json)
        return self.tree


def parts_of(values: Mapping[str, Any], *path: str | int) -> dict[str, DocumentPart]:
    """Parts without references and losses. ``path``: the place that all of them have."""
    return {name: DocumentPart.of(value, *path) for name, value in values.items()}


@dataclass(frozen=True, slots=True)
class Outline:
    """A document as its parts. ``components``: by kind, then by name."""

    frame: Document
    paths: Mapping[str, DocumentPart]
    components: Mapping[str, Mapping[str, DocumentPart]]

    def json(self) -> bytes:
        return orjson.dumps(
            self._join_parts(lambda part: orjson.Fragment(part.json)), option=orjson.OPT_SORT_KEYS
        )

    def document(self) -> Document:
        return self._join_parts(DocumentPart.value)

    def _join_parts(self, form: Callable[[DocumentPart], Any]) -> Document:
        result = {**self.frame, "paths": {path: form(part) for path, part in self.paths.items()}}
        components = dict(self.frame.get("components", {}))
        for kind, parts in self.components.items():
            components[kind] = {name: form(part) for name, part in parts.items()}
        if components:
            result["components"] = components
        return result


class Documents(Mapping[GroupVersion, Document]):
    """The documents of a conversion, each joined when first requested."""

    def __init__(self, outlines: Mapping[GroupVersion, Outline]) -> None:
        self._outlines = outlines
        self._made: dict[GroupVersion, Document] = {}

    def __getitem__(self, key: GroupVersion) -> Document:
        if key not in self._made:
            self._made[key] = self._outlines[key].document()
        return self._made[key]

    def __iter__(self) -> Iterator[GroupVersion]:
        return iter(self._outlines)

    def __len__(self) -> int:
        return len(self._outlines)
