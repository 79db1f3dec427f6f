"""YAML as its readers take it: the core schema of YAML 1.2, Kubernetes' (go-yaml v2, then JSON), gnostic's.

A Dialect says what scalars and keys mean, and what becomes of aliases and merges.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import Enum
from math import isfinite
from typing import Any, Final, TypeAlias

from specmux_converters.deferred_dataclasses import dataclass
from specmux_converters.go.scalars import key_text, read_plain, resolve, resolve_tagged
from specmux_converters.go.text import INT64_MAX, Number, float_text, general_text

_TAG: Final = "tag:yaml.org,2002:"
_TEXT_TAGS: Final = frozenset({"!", f"{_TAG}str", f"{_TAG}binary", f"{_TAG}timestamp"})
_PLAIN_TAGS: Final = frozenset(
    {f"{_TAG}{name}" for name in ("int", "float", "bool", "null", "value", "merge")}
)
_CONTAINER_TAGS: Final = frozenset({"!", f"{_TAG}map", f"{_TAG}seq", f"{_TAG}omap", f"{_TAG}set"})
_SHORT: Final = 40
"""Characters of a plain scalar that is remembered; names and types are shorter, descriptions are longer."""
_MOST_KNOWN: Final = 10_000
_DOUBLE_DIGITS: Final = 300
"""Characters of an integer: a double takes one more digit or two, and Python's int() takes quadratic time."""
_INTEGER: Final = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NO_NUMBER: Final = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_NUMERIC: Final = frozenset("+-.0123456789")
_WORDS: Final = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}


class Merging(Enum):
    """The meaning of a plain ``<<`` key."""

    NONE = "a key as any other"
    WRITTEN_WINS = "yaml.org/type/merge: keys that are written, and earlier sources, win"
    IN_ORDER = "go-yaml v2: a merge overwrites what stands before it"


class ScalarMemo(dict[str, Any]):
    """Meanings of short plain scalars, each resolved once: manifests repeat some hundreds."""

    def __init__(self, read: Callable[[str], Any]) -> None:
        super().__init__()
        self._read = read

    def __missing__(self, text: str) -> Any:
        value = self._read(text)
        if len(text) <= _SHORT:
            if len(self) >= _MOST_KNOWN:
                self.clear()
            self[text] = value
        return value


@dataclass(frozen=True, slots=True)
class YamlDialect:
    """All functions raise ValueError, with the reason, for what has no JSON."""

    values: ScalarMemo
    """Plain scalars."""
    keys: ScalarMemo
    """Plain scalars as keys: the name in JSON, and a mark of its value where it is no text."""
    tagged: Callable[[str, str, bool], Any]
    """A scalar's text, its tag, and whether it is plain."""
    merging: Merging
    container_tags: frozenset[str] | None = None
    """None: any."""
    scalar_keys: bool = True
    """Keys are scalars, of whatever tag; else aliases and tags mean there what they do in values."""
    has_aliases: bool = True
    sorts_keys: bool = False


def _core(text: str) -> Any:
    """The core schema of YAML 1.2 (yaml.org/spec/1.2.2, 10.3.2)."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _NUMERIC:
        return text
    if _INTEGER.fullmatch(text):
        if len(text) > _DOUBLE_DIGITS:
            raise ValueError("the number is infinite as a double")
        number = int(text, {"0o": 8, "0x": 16}.get(text[:2], 10))
        return number if -(2**63) <= number < 2**64 else _finite(float(number))
    if _FLOAT.fullmatch(text):
        return _finite(float(text))
    if _NO_NUMBER.fullmatch(text):
        raise ValueError("JSON has no such number")
    return text


def _finite(number: float) -> float:
    if not isfinite(number):
        raise ValueError("the number is infinite as a double")
    return number


def _own_text(text: str) -> tuple[str, None]:
    return text, None


def _core_tagged(text: str, tag: str, is_plain: bool) -> Any:
    if tag in _TEXT_TAGS:
        return text
    if is_plain or tag in _PLAIN_TAGS:
        return CORE.values[text]
    raise ValueError(f"the tag {tag!a} is not known")


def _no_tag(text: str, tag: str, is_plain: bool) -> Any:
    raise ValueError("a tag")


def _gnostic(text: str) -> Any:
    value = read_plain(text)
    if isinstance(value, float) and not isfinite(value):
        raise ValueError("a number that is not finite")
    return value


Mark: TypeAlias = tuple[type, Any]
"""The value of a key that is no text, with its type: Python's 1, 1.0 and True are one key, Go's are three."""


def refused_key(mark: Mark | None) -> str | None:
    """What sigs.k8s.io/yaml says of a key that JSON cannot have: its type and its text."""
    match mark:
        case (_, None):
            return "%!s(<nil>), key: <nil>"
        case (_, int(key)) if key > INT64_MAX:
            return f"uint64, key: {key:#x}"
    return None


def kubernetes_key(value: Any) -> tuple[str, Mark | None]:
    """The name that a decoded key gets in JSON, and its mark."""
    return (value, None) if type(value) is str else (key_text(value), (type(value), value))


def _json(value: Any) -> Any:
    """A scalar as it comes out of Go's JSON: whole floats are integers."""
    if type(value) is not float:
        return value
    if not isfinite(value):
        raise ValueError(f"json: unsupported value: {general_text(value)}")
    if not value.is_integer() or abs(value) > INT64_MAX:
        return value
    number = int(float_text(value))  # the digits that Go writes: of -2^63 they are beyond an int64
    return number if -INT64_MAX - 1 <= number <= INT64_MAX else value


def _exact(value: Any) -> Any:
    """As ``_json``; numbers beyond int64, and fractions, keep their text."""
    value = _json(value)
    if type(value) is float:
        return Number(float_text(value))
    return Number(str(value)) if type(value) is int and not -INT64_MAX - 1 <= value <= INT64_MAX else value


def _kubernetes(json: Callable[[Any], Any], *, sorts_keys: bool) -> YamlDialect:
    return YamlDialect(
        ScalarMemo(lambda text: json(resolve(text))),
        ScalarMemo(lambda text: kubernetes_key(resolve(text))),
        lambda text, tag, _: json(resolve_tagged(text, tag)),
        Merging.IN_ORDER,
        scalar_keys=False,
        sorts_keys=sorts_keys,
    )


CORE: Final = YamlDialect(
    ScalarMemo(_core),
    ScalarMemo(_own_text),
    _core_tagged,
    Merging.WRITTEN_WINS,
    container_tags=_CONTAINER_TAGS,
)
"""YAML 1.2, with merges: what people write Swagger files in."""

KUBERNETES: Final = _kubernetes(_json, sorts_keys=False)
"""As kubectl, Helm and apiservers read manifests (sigs.k8s.io/yaml)."""

KUBERNETES_EXACT: Final = _kubernetes(_exact, sorts_keys=True)
"""The same with keys sorted and the text of numbers, which messages of apiservers repeat."""

GNOSTIC: Final = YamlDialect(
    ScalarMemo(_gnostic),
    ScalarMemo(_own_text),
    _no_tag,
    Merging.NONE,
    container_tags=frozenset(),
    has_aliases=False,
)
"""What Go's gnostic writes into ``Any{yaml}`` (go-yaml v3): data alone, since aliases make small texts expand
without bound."""


def is_plain_text(text: str) -> bool:
    """Whether an unquoted scalar of this text is that string in YAML 1.2."""
    try:
        return isinstance(_core(text), str)
    except ValueError:
        return False
