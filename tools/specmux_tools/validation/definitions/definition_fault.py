"""A DefinitionFault is a reason for which an apiserver rejects a definition; which of them an update may keep
(apiextensions, validationOptions)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any, Final

from specmux_converters.json_values import array, mapping
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
    return [mapping(each) for each in array(value)]


class FaultFamily(Enum):
    """If the stored definition has a fault of a family, the update may have others of the same family. The
    value is part of their texts."""

    TYPE = ".type: Unsupported value"
    STRUCTURE = ""
    """Checked separately; if allowed, structure, defaults and rules are not checked."""
    UNKNOWN_IN_DEFAULT = "must not have unknown fields"
    COMPOUND_IN_SET = "must be atomic as item of a list with x-kubernetes-list-type=set"
    NULL_ITEM = "Forbidden: cannot be nullable when x-kubernetes-list-type is"
    KEY = "this property is in x-kubernetes-list-map-keys, so it"


_KEYS: Final = frozenset((FaultFamily.NULL_ITEM, FaultFamily.KEY))


@dataclass(frozen=True, slots=True)
class Allowances:
    """The faults that an update may keep; none for a new definition."""

    families: frozenset[FaultFamily] = frozenset()
    rules: frozenset[str] = frozenset()
    """Existing rules and messages, which may use features of the next release."""
    unchanged: frozenset[str] = frozenset()
    """Versions with unchanged schemas, whose rules may individually exceed the cost limit."""
    selectable: frozenset[str] = frozenset()
    """Versions, and "" for all together, that may exceed the limit on selectable fields."""
    no_schema: bool = False
    unknown_review: bool = False
    any_bundle: bool = True

    def left(self, faults: Iterable[DefinitionFault]) -> list[DefinitionFault]:
        """The faults that are not allowed."""
        texts = [each.value for each in self.families if each.value]
        return [fault for fault in faults if not any(text in fault.text for text in texts)]


NO_ALLOWANCES: Final = Allowances()


def families_of(faults: Iterable[DefinitionFault]) -> frozenset[FaultFamily]:
    texts = [fault.text for fault in faults]
    found = {each for each in FaultFamily if each.value and any(each.value in text for text in texts)}
    return frozenset(found | _KEYS if found & _KEYS else found)
