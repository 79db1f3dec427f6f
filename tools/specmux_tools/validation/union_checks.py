"""Check the unions (KEP-1027) of an object, at every place where its schema declares one.

Only on request: no current apiserver enforces ``x-kubernetes-unions``. An object is first normalized against
the stored one, and fields cleared by that are not checked. ``oneOf`` and rules are checked here only for
built-in kinds, since elsewhere an apiserver does. A malformed declaration is reported if an object has a
value there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from specmux_converters.json_values import array, mapping
from specmux_converters.references import component_of, resolve_schema, schemas_of
from specmux_tools.kinds import KindSchema
from specmux_tools.unions import (
    Fault,
    Union,
    UnionConflict,
    UnionForm,
    normalize,
    normalize_update,
    read_unions,
    validate,
)
from specmux_tools.unions.seed import Reason
from specmux_tools.validation.field_errors import (
    field_path,
    invalid,
    not_supported,
    required,
    show_value,
)
from specmux_tools.validation.report import Check, Path, Severity, UnionAlgorithm, Violation

_Object: TypeAlias = Mapping[str, Any]
_Judge: TypeAlias = Callable[
    [Sequence[Union], _Object | None, _Object, Path], tuple[_Object, Sequence[Violation]]
]


def judge_unions(
    described: KindSchema, value: _Object, old: Any, algorithm: UnionAlgorithm, *, is_custom: bool
) -> tuple[_Object, list[Violation]]:
    """The object with normalized unions, and violations. ``value``: decoded; ``old``: the stored object, None
    on create.

    Items of lists are matched with stored ones by ``x-kubernetes-list-map-keys``; items of other lists count
    as new.
    """
    has_all = algorithm is UnionAlgorithm.SEED and not is_custom
    forms = frozenset(UnionForm) if has_all else _DECLARED
    walk = _Walk(schemas_of(described.document), _JUDGES[algorithm], forms)
    return walk.of_object(described.schema, described.component, value, old, ()), walk.found


class _Walk:
    """Descends into the value, with its schema and the stored value."""

    def __init__(self, schemas: Mapping[str, Any], judge: _Judge, forms: frozenset[UnionForm]) -> None:
        self._schemas = schemas
        self._judge = judge
        self._forms = forms
        self.found: list[Violation] = []

    def of_object(
        self, schema: Mapping[str, Any], component: str, value: _Object, old: Any, path: Path
    ) -> _Object:
        before = old if isinstance(old, dict) else None
        declared = read_unions(schema, component)
        unions = [union for union in declared.unions if union.form in self._forms]
        if unions:
            value, violations = self._judge(unions, before, value, path)
            self.found += violations
        for fault in declared.faults:
            text = f"{field_path(path)}: not checked: {fault}"
            self.found.append(Violation(Severity.NOTE, Check.NOT_CHECKED, path, text))
        described, others = mapping(schema.get("properties")), schema.get("additionalProperties")
        changed = {}
        for name, item in value.items():
            inner = described.get(name, others)
            made = self._of_any(inner, item, before.get(name) if before else None, (*path, name))
            if made is not item:
                changed[name] = made
        return {**value, **changed} if changed else value

    def _of_any(self, schema: Any, value: Any, old: Any, path: Path) -> Any:
        if not isinstance(schema, dict) or not isinstance(value, dict | list):
            return value
        component = component_of(schema) or ""
        schema = resolve_schema(self._schemas, schema)
        if isinstance(value, dict):
            return self.of_object(schema, component, value, old, path)
        stored = _by_keys(schema, old)
        made = [
            self._of_any(schema.get("items"), item, stored.get(_keys_of(schema, item)), (*path, index))
            for index, item in enumerate(value)
        ]
        return made if any(new is not item for new, item in zip(made, value, strict=True)) else value


def _by_keys(schema: Mapping[str, Any], old: Any) -> dict[tuple[str, ...], Any]:
    return {keys: item for item in array(old) if (keys := _keys_of(schema, item))}


def _keys_of(schema: Mapping[str, Any], item: Any) -> tuple[str, ...]:
    """The keys that identify an item of a map list; () if there are none."""
    names = schema.get("x-kubernetes-list-map-keys")
    if not isinstance(names, list) or not isinstance(item, dict):
        return ()
    return tuple(show_value(item.get(name)) for name in names if isinstance(name, str))


def _seed(
    unions: Sequence[Union], old: _Object | None, new: _Object, path: Path
) -> tuple[_Object, list[Violation]]:
    for union in unions:
        new = normalize(union, old, new)
    return new, [
        _violation(union, fault, new, path) for union in unions for fault in validate(union, new, old)
    ]


def _legacy(
    unions: Sequence[Union], old: _Object | None, new: _Object, path: Path
) -> tuple[_Object, list[Violation]]:
    try:
        return normalize_update(unions, old, new), []
    except UnionConflict as conflict:
        if all(union.is_unchanged(old, new) for union in unions):
            return new, []
        text = f"{field_path(path)}: {conflict.text}"
        return new, [Violation(Severity.ERROR, Check.UNION, path, text)]


def _violation(union: Union, fault: Fault, value: _Object, path: Path) -> Violation:
    """The faults as field errors, like Kubernetes' declarative validation."""
    place = (*path, fault.field) if fault.field else path
    match fault.reason:
        case Reason.REQUIRED:
            text = required(place, fault.detail)
        case Reason.NOT_SUPPORTED:
            text = not_supported(place, union.read_discriminator(value), sorted(union.allowed or ()))
        case Reason.INVALID:
            text = invalid(field_path(place), "" if fault.field else _set(union, value), fault.detail)
    return Violation(Severity.ERROR, Check.UNION, place, text)


def _set(union: Union, value: _Object) -> str:
    present = union.set_fields(value)
    names = ", ".join(member.field for member in union.members if member.field in present)
    return f"{{{names}}}" if names else ""


_DECLARED: Final = frozenset((UnionForm.EXTENSION,))

_JUDGES: Final[Mapping[UnionAlgorithm, _Judge]] = {
    UnionAlgorithm.SEED: _seed,
    UnionAlgorithm.LEGACY: _legacy,
}
