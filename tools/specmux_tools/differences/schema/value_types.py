"""The types that a schema accepts, and its format, in every spelling: ``type``, branches of types alone,
``x-kubernetes-int-or-string``, Kubernetes' ``format: int-or-string``, lists of types (OpenAPI 3.1)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from specmux_converters.lazy.dataclasses import dataclass
from specmux_tools.differences.findings import Finding
from specmux_tools.differences.schema.views import ComponentSchemas, conjuncts

INT_OR_STRING: Final = "int-or-string"

_EITHER: Final = frozenset({"integer", "string"})
_WIDER: Final = {("int32", "int64"), ("float", "double")}
_NUMERIC: Final = frozenset({"int32", "int64", "float", "double"})
_COMPOSITIONS: Final = ("oneOf", "anyOf")


@dataclass(frozen=True, slots=True)
class ValueType:
    types: frozenset[str] | None
    """None: any type. "number" includes "integer"."""
    format: str | None
    branches_of: str | None
    """The keyword whose branches state types and nothing else."""
    takes_null: bool = False
    """Null is in the list of types."""

    def may_be(self, name: str) -> bool:
        return self.types is None or name in self.types


def value_type(schemas: ComponentSchemas, keywords: Mapping[str, Any]) -> ValueType:
    branches_of, by_branches = _of_branches(schemas, keywords)
    said, text = keywords.get("type"), keywords.get("format")
    if keywords.get("x-kubernetes-int-or-string") is True:
        of_texts = text if isinstance(text, str) and text != INT_OR_STRING else None
        return ValueType(_EITHER, of_texts, branches_of)
    named = said if isinstance(said, list) else [said]
    types = frozenset(name for name in named if isinstance(name, str) and name != "null")
    if text == INT_OR_STRING:
        return ValueType(_EITHER, None, branches_of)
    return ValueType(
        _expand_types(types) if types else by_branches,
        text if isinstance(text, str) else None,
        None if types else branches_of,
        "null" in named,
    )


def type_changes(old: ValueType, new: ValueType, *, is_enforced: bool = False) -> Iterator[Finding]:
    """Yields at most one finding: for the types or, if those are equal, for the format."""
    if old.types == new.types:
        if old.format == new.format:
            return
        before, after = (
            side.format if not is_enforced or _is_checked(side.format) else None for side in (old, new)
        )
        if before != after:
            is_wider = after is None or (before, after) in _WIDER
            is_narrower = before is None or (after, before) in _WIDER
            change = "widened" if is_wider else "narrowed" if is_narrower else "changed"
            yield Finding(f"format-{change}", "", old=before, new=after)
        return
    is_wider = new.types is None or (old.types is not None and old.types < new.types)
    is_narrower = old.types is None or (new.types is not None and new.types < old.types)
    change = "widened" if is_wider else "narrowed" if is_narrower else "changed"
    yield Finding(f"type-{change}", "", old=_describe_type(old), new=_describe_type(new))


def _is_checked(name: str | None) -> bool:
    """Whether an apiserver enforces the format: it ignores unknown ones."""
    from specmux_tools.validation.schema.formats import find_format  # only where a format differs

    return name in _NUMERIC or find_format(name) is not None


def types_alone(schemas: ComponentSchemas, branches: list[Any]) -> frozenset[str] | None:
    """The types of branches that state nothing else; None if any branch does."""
    names = [_only_type(schemas.view(branch).keywords) for branch in branches]
    return _expand_types(frozenset(name for name in names if name)) if names and all(names) else None


def _of_branches(
    schemas: ComponentSchemas, keywords: Mapping[str, Any]
) -> tuple[str | None, frozenset[str] | None]:
    """The keyword whose branches are types alone, and those types."""
    for keyword in _COMPOSITIONS:
        for branches in conjuncts(keywords, keyword):
            types = types_alone(schemas, branches) if isinstance(branches, list) else None
            if types is not None:
                return keyword, types
    return None, None


def _only_type(branch: Mapping[str, Any]) -> str | None:
    said = branch.get("type")
    return said if isinstance(said, str) and branch.keys() <= {"type", "description", "title"} else None


def _expand_types(types: frozenset[str]) -> frozenset[str]:
    return types | {"integer"} if "number" in types else types


def _describe_type(value: ValueType) -> str:
    if value.types is None:
        return "any"
    if value.types == _EITHER:
        return INT_OR_STRING
    return " or ".join(sorted(value.types - {"integer"} if "number" in value.types else value.types))
