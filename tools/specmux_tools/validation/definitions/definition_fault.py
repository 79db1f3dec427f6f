"""A DefinitionFault is a reason for which an apiserver rejects a definition."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.resources import GroupVersionKind
from specmux_tools.validation.field_errors import field_path
from specmux_tools.validation.report import Path

DEFINITION: Final = GroupVersionKind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")


@dataclass(frozen=True, slots=True)
class DefinitionFault:
    path: Path
    """Place in the manifest; an apiserver's text may name another."""
    text: str
    schema_path: Path | None = None
    """The path of the schema that has the fault, where a part below it is named."""


def fault(path: Path, text: str) -> DefinitionFault:
    """A fault whose text names its place in the manifest."""
    return DefinitionFault(path, f"{field_path(path)}: {text}")


def objects(value: Any) -> list[Mapping[str, Any]]:
    """The objects of a list; null counts as an empty object, as in Go."""
    return [each if isinstance(each, Mapping) else {} for each in value] if isinstance(value, list) else []
