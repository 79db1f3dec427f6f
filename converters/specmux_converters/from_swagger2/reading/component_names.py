"""Names of components in v3, which allows letters, digits, ``.``, ``-`` and ``_`` (OpenAPI 3.0.3, 4.7.7.1).
Swagger 2.0 allows any: generators write ``Page«User»`` and ``List[T]``.

In the ``kubernetes`` profile names are unchanged: its clients follow references, whatever they contain.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import field
from hashlib import sha256
from typing import Any, Final, TypeAlias

from specmux_converters.errors import cut
from specmux_converters.json_values import array, mapping
from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.losses import tokens_of

_OTHERS: Final = re.compile(r"[^A-Za-z0-9._-]+")
_ALLOWED: Final = re.compile(r"[A-Za-z0-9._-]*")
_VALUES: Final = ("x-ms-discriminator-value", "x-discriminator-value")
"""AutoRest's extension, and the form in which other generators adopted it."""

_DIGITS: Final = 12
"""Digits of the hash appended to an ambiguous name: it must not depend on which came first."""

Place: TypeAlias = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class ComponentNames:
    """Names that v3 does not allow -> their replacements, by section of the Swagger document.

    ``children``: the place of a schema -> the definitions with it in their ``allOf``. ``values``: a
    definition's value in a discriminator, if an extension sets one that differs from its name.
    """

    definitions: Mapping[str, str] = field(default_factory=dict)
    parameters: Mapping[str, str] = field(default_factory=dict)
    responses: Mapping[str, str] = field(default_factory=dict)
    security: Mapping[str, str] = field(default_factory=dict)
    children: Mapping[Place, tuple[str, ...]] = field(default_factory=dict)
    values: Mapping[str, str] = field(default_factory=dict)

    def mapping(self, place: Place) -> dict[str, str]:
        """The ``mapping`` of the discriminator there: its values are the names in Swagger 2.0, while unmapped
        values would be those in v3."""
        if not self.children:
            return {}
        found: set[str] = set()
        names = [*self.children.get(place, ())]
        if len(place) == 2 and place[0] == "definitions":
            names.append(str(place[1]))
        while names:
            name = names.pop()
            if name not in found:
                found.add(name)
                names += self.children.get(("definitions", name), ())
        return {
            self.values.get(name, name): f"#/components/schemas/{self.definitions.get(name, name)}"
            for name in sorted(found & (self.definitions.keys() | self.values.keys()))
        }


def choose_names(
    definitions: Mapping[str, Any],
    parameters: Iterable[str],
    responses: Iterable[str],
    security: Iterable[str],
) -> ComponentNames:
    new = allowed_names(definitions)
    values = {
        name: value
        for name, node in definitions.items()
        if isinstance(node, dict)
        for value in [node.get(_VALUES[0], node.get(_VALUES[1]))]
        if isinstance(value, str) and value != name
    }
    return ComponentNames(
        definitions=new,
        parameters=allowed_names(parameters),
        responses=allowed_names(responses),
        security=allowed_names(security),
        children=_children(definitions) if new or values else {},
        values=values,
    )


def allowed_names(names: Iterable[str]) -> dict[str, str]:
    """A unique name in v3 for each that is not allowed there."""
    taken = {*names}
    wanted = {name: _OTHERS.sub("_", name).strip("_") for name in taken if not is_allowed(name)}
    uses = Counter(wanted.values())
    chosen: dict[str, str] = {}
    for name, plain in sorted(wanted.items()):
        digest = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
        new, digits = plain, _DIGITS
        if not plain or uses[plain] > 1 or plain in taken:
            new = f"{plain}.{digest[:digits]}".lstrip(".")
        while new in taken:
            digits += 1
            new = f"{plain}.{digest[:digits]}" if digits <= len(digest) else f"{new}_"
        taken.add(new)
        chosen[name] = new
    return chosen


def are_allowed(names: Iterable[str]) -> bool:
    """Whether all names are allowed; cached."""
    listed = [*names]
    return all(listed) and _ALLOWED.fullmatch("".join(listed)) is not None


def is_allowed(name: str) -> bool:
    return bool(name) and not _OTHERS.search(name)


def reason_of_rename(new: str | None) -> str:
    """The reported reason for a name that became ``new`` or, if None, is unchanged."""
    if new is None:
        return "OpenAPI 3.0 has no such character in a name; kept, as apiservers publish it"
    return f"OpenAPI 3.0 has no such character in a name; called {cut(new)}"


def _children(definitions: Mapping[str, Any]) -> dict[Place, tuple[str, ...]]:
    found: dict[Place, list[str]] = {}
    for name, node in definitions.items():
        for parent in array(mapping(node).get("allOf")):
            ref = mapping(parent).get("$ref")
            if isinstance(ref, str) and ref.startswith("#/"):
                found.setdefault(tuple(tokens_of(ref)), []).append(name)
    return {place: tuple(names) for place, names in found.items()}
