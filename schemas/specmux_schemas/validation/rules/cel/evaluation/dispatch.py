"""Which overload a call is when its values are known, and what it says where none is."""

from __future__ import annotations

from typing import Any

from specmux_schemas.validation.rules.cel.checking.declarations import Apply, Overload
from specmux_schemas.validation.rules.cel.values.types import DYN_KIND, PARAM_KIND, CelType
from specmux_schemas.validation.rules.cel.values.values import CelError, type_name


def bound(function: str, overloads: tuple[Overload, ...]) -> Apply:
    """Operators look at their values themselves."""
    if function[0] in "_!-@":
        apply = overloads[0].apply
        assert apply is not None
        return apply
    choices = [(tuple(map(_guard, each.arguments)), each.apply) for each in overloads]

    def call(*arguments: Any) -> Any:
        names = [type_name(each) for each in arguments]
        for guards, apply in choices:
            if apply is not None and all(
                guard is None or guard == name for guard, name in zip(guards, names, strict=True)
            ):
                return apply(*arguments)
        raise CelError(f"no such overload: {function}({', '.join(names)})")

    return call


def _guard(of: CelType) -> str | None:
    return None if of.kind in (DYN_KIND, PARAM_KIND) else of.name
