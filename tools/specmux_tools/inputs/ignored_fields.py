"""Fields that are taken out of manifests before they are judged, such as those that sops adds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.losses import unescape
from specmux_tools.validation.decoding.body import Body
from specmux_tools.validation.decoding.json_reader import Repeats, pairs_of


@dataclass(frozen=True, slots=True)
class IgnoredField:
    """A field of every object, or with ``kind`` (``Secret``, ``v1/Secret``) of those alone."""

    kind: str
    path: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> IgnoredField:
        """The field that ``[KIND:]/POINTER`` names. Raises ValueError."""
        kind, _, pointer = text.rpartition(":") if not text.startswith("/") else ("", "", text)
        first, *parts = pointer.split("/")
        if first or not parts or not all(parts):
            raise ValueError(f"{text!r} is no field: write /sops, or Secret:/sops")
        return cls(kind, tuple(map(unescape, parts)))

    def is_of(self, value: dict[str, Any]) -> bool:
        return self.kind in ("", value.get("kind"), f"{value.get('apiVersion')}/{value.get('kind')}")


def without_fields(body: Body, fields: Sequence[IgnoredField]) -> Body:
    """The body as if the object were written without the fields."""
    value = body.value
    if not fields or not isinstance(value, dict):
        return body
    for field in fields:
        if field.is_of(value):
            value = _without_path(value, field.path)
    return replace(body, value=value)


def _without_path(value: Any, path: tuple[str, ...]) -> Any:
    """Values of YAML may be shared: nothing is written into them."""
    name, *below = path
    match value:
        case list() if name.isdecimal() and int(name) < len(value):
            index = int(name)
            inner = [_without_path(value[index], tuple(below))] if below else []
            return [*value[:index], *inner, *value[index + 1 :]]
        case dict() if name in value:
            if below:
                return _with(value, name, _without_path(value[name], tuple(below)))
            return _like(value, [pair for pair in pairs_of(value) if pair[0] != name])
    return value


def _with(value: dict[str, Any], name: str, item: Any) -> dict[str, Any]:
    return _like(value, [(key, item if key == name else each) for key, each in pairs_of(value)])


def _like(value: dict[str, Any], pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    return Repeats(pairs) if type(value) is Repeats else dict(pairs)
