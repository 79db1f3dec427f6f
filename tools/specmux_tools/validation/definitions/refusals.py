"""Definitions that an apiserver rejects, by kind: objects of that kind cannot be validated."""

from __future__ import annotations

from collections.abc import Iterable

from specmux_converters.document import Document
from specmux_converters.releases import NEWEST
from specmux_converters.resources import GroupVersionKind
from specmux_tools.validation.decoding.manifests import defined_kind


class RefusedDefinitions:
    """Checks a definition when the first object of its kind is validated."""

    def __init__(self, definitions: Iterable[Document] = (), *, minor: int = NEWEST) -> None:
        self._minor = minor
        self._waiting: dict[tuple[str, str], Document] = {}
        for definition in definitions:
            kind = defined_kind(definition)
            if kind is not None:
                self._waiting[kind] = definition
        self._found: dict[tuple[str, str], str | None] = {}

    def reason(self, kind: GroupVersionKind) -> str | None:
        """Why objects of the kind are not validated; None if they can be."""
        key = (kind.group, kind.kind)
        if key in self._waiting:
            from specmux_tools.validation.definitions.faults import definition_faults

            definition = self._waiting.pop(key)
            faults = definition_faults(definition, minor=self._minor)
            if faults:
                more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
                self._found[key] = f"not checked: its definition is refused: {faults[0].text}{more}"
        return self._found.get(key)
