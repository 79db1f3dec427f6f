"""Compiled schema of a custom resource: the checks of kube-openapi's SchemaValidator, in its order.

Each check returns how many of its parts matched: for anyOf and oneOf the errors of the branch that matched
best are reported (schema_props.go). Errors are appended to a list; paths are built only for them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any

from specmux_converters.go.regexp import Pattern, UndecidedMatch
from specmux_converters.go.text import INT64_MAX, json_text
from specmux_converters.lazy.dataclasses import dataclass
from specmux_tools.validation.report import MOST_VIOLATIONS
from specmux_tools.validation.schema import errors
from specmux_tools.validation.schema.errors import SchemaError
from specmux_tools.validation.schema.formats import StringFormat
from specmux_tools.validation.schema.numeric_formats import IsWhole, NumericType, is_whole


@dataclass(slots=True)
class Walk:
    """``path`` is the current place; ``undecided`` are patterns that could not be matched."""

    path: list[str | int] = field(default_factory=list)
    found: list[SchemaError] = field(default_factory=list)
    undecided: list[tuple[tuple[str | int, ...], str]] = field(default_factory=list)
    most: int = MOST_VIOLATIONS
    left_out: int = 0
    """Number of errors beyond ``most``."""

    @property
    def has_failed(self) -> bool:
        return bool(self.found or self.left_out)

    def add(self, error: Callable[..., SchemaError], *told: Any) -> None:
        """Adds an error of the value at ``path``."""
        if len(self.found) < self.most:
            self.found.append(error(tuple(self.path), *told))
        else:
            self.left_out += 1

    def add_branch(self, inner: Walk) -> None:
        """Adds the results of another walk that started here."""
        listed = inner.found[: self.most - len(self.found)]
        self.found += errors.of_branches(listed, len(self.path))
        self.left_out += inner.left_out + len(inner.found) - len(listed)

    def cannot_tell(self, reason: str) -> None:
        """Reports that the value at ``path`` cannot be checked."""
        if len(self.undecided) < self.most:
            self.undecided.append((tuple(self.path), reason))


@dataclass(slots=True, eq=False)
class SchemaNode:
    types: tuple[str, ...] = ()
    format: str = ""
    is_nullable: bool = False
    enum: Sequence[Any] = ()
    text: TextLimits | None = None
    number: NumberLimits | None = None
    items: ListLimits | None = None
    fields: ObjectLimits | None = None
    branches: Branches | None = None
    is_whole: IsWhole = is_whole

    def check(self, value: Any, walk: Walk) -> int:
        if value is None:
            return self._check_null(walk)
        kind = type(value)
        # One for the value itself, one for the validator of enums; two for that of branches.
        matched = 4 + (self._check_type(value, walk) if self.types or self.format else 0)
        if self.branches is not None:
            matched += self.branches.check(value, walk)
        if kind is str or isinstance(value, str):
            matched += 1 if self.text is None else self.text.check(value, walk)
        elif kind is dict or isinstance(value, dict):
            matched += 1 if self.fields is None else self.fields.check(value, walk)
        elif kind is list:
            matched += 2 if self.items is None else self.items.check(value, walk)
        elif kind is not bool:
            matched += 2 if self.number is None else self.number.check(value, walk)
        if self.enum:
            self._check_enum(value, walk)
        return matched

    def _check_null(self, walk: Walk) -> int:
        matched = 0
        if self.types and not self.is_nullable:
            walk.add(errors.wrong_type, ",".join(self.types), "null")
        else:
            matched = 1
        if self.enum:
            walk.add(errors.not_in_enum, None, self.enum)
        return matched

    def _check_type(self, value: Any, walk: Walk) -> int:
        """Follows type.go, including formats: a text passes where another type has a format."""
        found, found_format = _type_of(value)
        types = self.types
        fits = found in types or (found == "number" and "integer" in types and self.is_whole(value))
        fits = fits or (found == "integer" and "number" in types)
        if self.format and found not in ("string", "array"):
            if not fits and found_format != self.format:
                walk.add(errors.wrong_type, self.format, found_format)
                return 1
        elif self.format and "number" not in types and "integer" not in types:
            return 2
        if not fits:
            walk.add(errors.wrong_type, ",".join(types), found)
            return 1
        return 2

    def _check_enum(self, value: Any, walk: Walk) -> None:
        for choice in self.enum:
            if _is_choice(value, choice):
                return
        walk.add(errors.not_in_enum, value, self.enum)


def _type_of(value: Any) -> tuple[str, str]:
    match value:
        case bool():
            return "boolean", ""
        case str():
            return "string", ""
        case int():
            return "integer", "int64"
        case float():
            return "number", "float64"
        case list():
            return "array", ""
        case _:
            return "object", ""


def _is_choice(value: Any, choice: Any) -> bool:
    """Converts numbers to the choice's type (validator.go); true does not equal 1."""
    if isinstance(value, bool) or isinstance(choice, bool):
        return value is choice
    if isinstance(choice, int) and isinstance(value, float):
        return int(value) == choice
    return (
        (type(value) is type(choice) and value == choice)
        or (isinstance(value, int | float) and isinstance(choice, int | float) and value == choice)
        or (isinstance(value, dict) and isinstance(choice, dict) and value == choice)
    )


@dataclass(frozen=True, slots=True)
class TextLimits:
    most: int | None = None
    least: int | None = None
    pattern: Pattern | None = None
    format: StringFormat | None = None
    types_least: bool = False

    def check(self, value: str, walk: Walk) -> int:
        self._check_text(value, walk)
        if self.format is not None:
            if not self.format.accepts(value):
                walk.add(errors.wrong_type, self.format.name, value)
            return 2
        return 1

    def _check_text(self, value: str, walk: Walk) -> None:
        if self.most is not None and len(value) > self.most:
            walk.add(errors.too_long, self.most)
        elif self.least is not None and len(value) < self.least:
            if self.types_least:
                walk.add(errors.too_short, self.least)
            else:
                walk.add(errors.body_error, value, f"should be at least {self.least} chars long")
        elif self.pattern is not None:
            try:
                if not self.pattern.matches(value):
                    detail = f"should match '{self.pattern.text}'"
                    walk.add(errors.body_error, value, detail)
            except UndecidedMatch as undecided:
                walk.cannot_tell(str(undecided))


@dataclass(frozen=True, slots=True)
class NumberLimits:
    multiple_of: float | None = None
    most: float | None = None
    least: float | None = None
    excludes_most: bool = False
    excludes_least: bool = False
    numeric: NumericType | None = None
    is_whole: IsWhole = is_whole

    def check(self, value: int | float, walk: Walk) -> int:
        if self.numeric is not None:
            self._in_range(self.numeric, value, "Checked", walk)
        if self.multiple_of is not None:
            is_integer = self._is_native(value, self.multiple_of, "MultipleOf", walk)
            self._check_multiple(_compare(value, is_integer), self.multiple_of, is_integer, walk)
        if self.least is not None:
            is_integer = self._is_native(value, self.least, "Minimum boundary", walk)
            least = _int64(self.least) if is_integer else self.least
            if value < least or (self.excludes_least and value == least):
                words = "greater than" if self.excludes_least else "greater than or equal to"
                self._refuse(_compare(value, is_integer), words, least, is_integer, walk)
        if self.most is not None:
            is_integer = self._is_native(value, self.most, "Maximum boundary", walk)
            most = _int64(self.most) if is_integer else self.most
            if value > most or (self.excludes_most and value == most):
                words = "less than" if self.excludes_most else "less than or equal to"
                self._refuse(_compare(value, is_integer), words, most, is_integer, walk)
        return 2

    def _is_native(self, value: int | float, bound: float, what: str, walk: Walk) -> bool:
        """Whether both are compared as integers. A value of another type than the schema's is a double."""
        fits = self.numeric is None or self._in_range(self.numeric, bound, what, walk)
        return fits and isinstance(value, int)

    def _in_range(self, numeric: NumericType, value: int | float, what: str, walk: Walk) -> bool:
        fault = numeric.fault(value, what, errors.name_of(tuple(walk.path)))
        if fault is not None:
            walk.add(errors.out_of_range, fault)
        return fault is None

    def _check_multiple(self, value: int | float, factor: float, is_integer: bool, walk: Walk) -> None:
        """Follows values.go: MultipleOfInt, MultipleOf."""
        factor = _int64(factor) if is_integer else factor
        if factor <= 0:
            walk.add(errors.no_factor, factor)
        elif not self._is_multiple(value, factor):
            shown = errors.bound_text(factor, is_integer=is_integer)
            walk.add(errors.body_error, value, f"should be a multiple of {shown}")

    def _is_multiple(self, value: int | float, factor: float) -> bool:
        if isinstance(value, int):
            return value % factor == 0
        return self.is_whole(1 / factor * value if factor < 1 else value / factor)

    def _refuse(self, value: Any, words: str, bound: float, is_integer: bool, walk: Walk) -> None:
        shown = errors.bound_text(bound, is_integer=is_integer)
        walk.add(errors.body_error, value, f"should be {words} {shown}")


def _compare(value: int | float, is_integer: bool) -> int | float:
    return value if is_integer else float(value)


def _int64(bound: float) -> int:
    """Converts a double as Go does: beyond 64 bits it becomes the least integer (amd64's cvttsd2si)."""
    whole = int(bound)
    return whole if -INT64_MAX - 1 <= whole <= INT64_MAX else -INT64_MAX - 1


@dataclass(frozen=True, slots=True)
class ListLimits:
    item: SchemaNode | None = None
    most: int | None = None
    least: int | None = None
    is_unique: bool = False
    types_least: bool = False

    def check(self, value: list[Any], walk: Walk) -> int:
        matched = 2
        if self.item is not None:
            check, path = self.item.check, walk.path
            for index, item in enumerate(value):
                path.append(index)
                matched += check(item, walk)
                path.pop()
        if self.least is not None and len(value) < self.least:
            _refuse_few(len(value), self.least, "items", walk, is_typed=self.types_least)
        if self.most is not None and len(value) > self.most:
            walk.add(errors.too_many, len(value), self.most, "items")
        if self.is_unique and len(set(map(json_text, value))) < len(value):
            walk.add(errors.body_error, "", "shouldn't contain duplicates")
        return matched


def _refuse_few(count: int, least: int, what: str, walk: Walk, *, is_typed: bool) -> None:
    if is_typed:
        walk.add(errors.too_few, count, least, what)
    else:
        walk.add(errors.body_error, count, f"should have at least {least} {what}")


@dataclass(slots=True, eq=False)
class ObjectLimits:
    properties: Mapping[str, SchemaNode]
    additional: SchemaNode | None = None
    forbids_additional: bool = False
    required: Sequence[str] = ()
    most: int | None = None
    least: int | None = None
    types_least: bool = False

    def check(self, value: Mapping[str, Any], walk: Walk) -> int:
        matched = 1
        path, properties = walk.path, self.properties
        if self.least is not None and len(value) < self.least:
            _refuse_few(len(value), self.least, "properties", walk, is_typed=self.types_least)
        if self.most is not None and len(value) > self.most:
            walk.add(errors.too_many, len(value), self.most, "properties")
        for key, item in value.items():
            node = properties.get(key) or self.additional
            if node is not None:
                path.append(key)
                matched += node.check(item, walk)
                path.pop()
            elif self.forbids_additional and key not in properties:
                walk.add(errors.forbidden_property, key)
        for name in self.required:
            if name not in value:
                walk.add(errors.missing_field, name)
        return matched


@dataclass(frozen=True, slots=True)
class Branches:
    """anyOf, oneOf, allOf and not. The errors of a branch that is not chosen are dropped."""

    any_of: tuple[SchemaNode, ...] = ()
    one_of: tuple[SchemaNode, ...] = ()
    all_of: tuple[SchemaNode, ...] = ()
    forbidden: SchemaNode | None = None

    def check(self, value: Any, walk: Walk) -> int:
        matched = 0
        for check, nodes in ((self._any, self.any_of), (self._one, self.one_of), (self._all, self.all_of)):
            if nodes:
                matched += check(nodes, value, walk)
        if self.forbidden is not None and not self._try(self.forbidden, value, walk)[1].has_failed:
            walk.add(errors.composite, "must not validate the schema (not)")
        return matched

    def _try(self, node: SchemaNode, value: Any, walk: Walk) -> tuple[int, Walk]:
        inner = Walk(walk.path, [], walk.undecided, max(walk.most - len(walk.found), 0))
        return node.check(value, inner), inner

    def _any(self, nodes: Sequence[SchemaNode], value: Any, walk: Walk) -> int:
        best: tuple[int, Walk] | None = None
        for node in nodes:
            result = self._try(node, value, walk)
            if not result[1].has_failed:
                return result[0]
            if best is None or result[0] > best[0]:
                best = result
        walk.add(errors.composite, "must validate at least one schema (anyOf)")
        if best is None:
            return 0
        walk.add_branch(best[1])
        return best[0]

    def _one(self, nodes: Sequence[SchemaNode], value: Any, walk: Walk) -> int:
        results = [self._try(node, value, walk) for node in nodes]
        valid = [result for result in results if not result[1].has_failed]
        if len(valid) == 1:
            return valid[0][0]
        said = f"Found {len(valid)} valid alternatives" if valid else "Found none valid"
        detail = f"must validate one and only one schema (oneOf). {said}"
        walk.add(errors.composite, detail)
        if valid:
            return 0
        matched, inner = max(results, key=lambda result: result[0])
        walk.add_branch(inner)
        return matched

    def _all(self, nodes: Sequence[SchemaNode], value: Any, walk: Walk) -> int:
        results = [self._try(node, value, walk) for node in nodes]
        for _, inner in results:
            walk.add_branch(inner)
        valid = sum(not inner.has_failed for _, inner in results)
        if valid < len(nodes):
            none = "" if valid else ". None validated"
            walk.add(errors.composite, f"must validate all the schemas (allOf){none}")
        return sum(matched for matched, _ in results)
