"""Algorithm A: unions as KEP-1027 defines them since 2022. A changed discriminator clears the members it does
not select; any other inconsistency is reported, and nothing is guessed."""

from __future__ import annotations

from enum import StrEnum

from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.unions import Object, Union, without


class Reason(StrEnum):
    REQUIRED = "Required value"
    INVALID = "Invalid value"
    NOT_SUPPORTED = "Unsupported value"


@dataclass(frozen=True, slots=True)
class Fault:
    reason: Reason
    field: str
    """"" for the object itself."""
    detail: str


def normalize(union: Union, old: Object | None, new: Object) -> Object:
    """Returns ``new`` without the members that a changed discriminator does not select. Idempotent.

    Does not change an object at creation (``old`` is None).
    """
    said = union.said(new)
    if old is None or union.discriminator is None or union.said(old) == said:
        return new
    if new.get(union.discriminator) is None and "" not in (union.allowed or ()):
        return new  # omitted means "" only if "" is one of its values
    selected = union.member(said) if said else None
    dropped = union.fields - ({selected.field} if selected else set())
    return without(new, dropped) if dropped & new.keys() else new


def validate(union: Union, new: Object, old: Object | None = None) -> tuple[Fault, ...]:
    """Returns the faults of a normalized object: none if an update keeps the union as stored, as in
    Kubernetes' declarative validation."""
    if union.is_unchanged(old, new):
        return ()
    if union.discriminator is None:
        return _check_undiscriminated(union, new)
    name, said, present = union.discriminator, union.said(new), sorted(union.set_fields(new))
    if union.allowed is not None and said not in union.allowed:
        listed = ", ".join(f'"{value}"' for value in sorted(union.allowed))
        return (Fault(Reason.NOT_SUPPORTED, name, f"supported values: {listed}"),)
    if len(present) > 1:
        listed = ", ".join(present)
        detail = f'multiple union members set ({listed}) without a change of discriminator "{name}"'
        return (Fault(Reason.INVALID, "", detail),)
    return tuple(_check_discriminated(union, name, said, present))


def _check_discriminated(union: Union, name: str, said: str, present: list[str]) -> list[Fault]:
    faults = []
    selected = union.member(said)
    if selected is not None and not selected.is_optional and selected.field not in present:
        faults.append(Fault(Reason.REQUIRED, selected.field, f'must be specified when `{name}` is "{said}"'))
    for field in present:
        if selected is None or field != selected.field:
            value = union.value_of(field)
            faults.append(Fault(Reason.INVALID, field, f'may only be specified when `{name}` is "{value}"'))
    return faults


def _check_undiscriminated(union: Union, new: Object) -> tuple[Fault, ...]:
    """Uses the words of Kubernetes' declarative validation (apimachinery, pkg/api/validate/union.go)."""
    present = union.set_fields(new)
    if len(present) == 1 or (union.takes_none and not present):
        return ()
    names = ", ".join(f"`{member.field}`" for member in union.members)
    kind = "must specify exactly one of" if present else "must specify one of"
    return (Fault(Reason.INVALID, "", f"{kind}: {names}"),)
