"""YAML dialects: the core schema of YAML 1.2, Kubernetes' (go-yaml v2, then JSON), gnostic's.

A dialect defines the meaning of scalars, keys, aliases and merges.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from math import isfinite
from typing import Any, Final, TypeAlias

from specmux_converters.go.scalars import key_text, read_plain, resolve, resolve_tagged
from specmux_converters.go.text import INT64_MAX, Number, float_text, general_text
from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.lazy.patterns import pattern

_TAG: Final = "tag:yaml.org,2002:"
_TEXT_TAGS: Final = frozenset({"!", f"{_TAG}str", f"{_TAG}binary", f"{_TAG}timestamp"})
_PLAIN_TAGS: Final = frozenset(
    {f"{_TAG}{name}" for name in ("int", "float", "bool", "null", "value", "merge")}
)
_CONTAINER_TAGS: Final = frozenset({"!", f"{_TAG}map", f"{_TAG}seq", f"{_TAG}omap", f"{_TAG}set"})
_SHORT: Final = 40
"""Longest plain scalar that is cached, in characters: names and types are shorter, descriptions longer."""
_MOST_KNOWN: Final = 10_000
_DOUBLE_DIGITS: Final = 300
"""Most characters of an integer: a double has one more digit or two, and Python's int() takes quadratic
time."""
_INTEGER: Final = pattern(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT: Final = pattern(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NO_NUMBER: Final = pattern(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
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
    """Cache of short plain scalars, each resolved once: manifests repeat some hundreds."""

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
    """All functions raise ValueError with a reason for values outside JSON."""

    values: ScalarMemo
    """Plain scalars as values."""
    keys: ScalarMemo
    """Plain scalars as keys: the JSON name, and the mark of a key that is not a text."""
    tagged: Callable[[str, str, bool], Any]
    """Maps a scalar's text, its tag, and whether it is plain."""
    merging: Merging
    container_tags: frozenset[str] | None = None
    """Accepted tags; None: any."""
    scalar_keys: bool = True
    """Keys are scalars with any tag; if False, aliases and tags in keys mean what they mean in values."""
    has_aliases: bool = True
    sorts_keys: bool = False
    has_go_escapes: bool = False
    """In double quotes ``\\'`` is an escape and ``\\/`` is none, as in go-yaml v2."""


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


def _resolve_core_tag(text: str, tag: str, is_plain: bool) -> Any:
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
"""Type and value of a key that is not a text: in Python 1, 1.0 and True are one key, in Go three."""


def refused_key(mark: Mark | None) -> str | None:
    """sigs.k8s.io/yaml's message for a key outside JSON: its type and its text."""
    match mark:
        case (_, None):
            return "%!s(<nil>), key: <nil>"
        case (_, int(key)) if key > INT64_MAX:
            return f"uint64, key: {key:#x}"
    return None


def kubernetes_key(value: Any) -> tuple[str, Mark | None]:
    """The JSON name of a decoded key, and its mark."""
    return (value, None) if type(value) is str else (key_text(value), (type(value), value))


def _json(value: Any) -> Any:
    """A scalar after Go's JSON: whole floats are integers."""
    if type(value) is not float:
        return value
    if not isfinite(value):
        raise ValueError(f"json: unsupported value: {general_text(value)}")
    if not value.is_integer() or abs(value) > INT64_MAX:
        return value
    number = int(float_text(value))  # Go's digits: for -2^63 they exceed an int64
    return number if -INT64_MAX - 1 <= number <= INT64_MAX else value


def _exact(value: Any) -> Any:
    """Like ``_json``, but numbers beyond int64 and fractions keep their text."""
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
        has_go_escapes=True,
    )


CORE: Final = YamlDialect(
    ScalarMemo(_core),
    ScalarMemo(_own_text),
    _resolve_core_tag,
    Merging.WRITTEN_WINS,
    container_tags=_CONTAINER_TAGS,
)
"""YAML 1.2 with merges: the usual form of hand-written Swagger files."""

KUBERNETES: Final = _kubernetes(_json, sorts_keys=False)
"""The dialect of kubectl, Helm and apiservers for manifests (sigs.k8s.io/yaml)."""

KUBERNETES_EXACT: Final = _kubernetes(_exact, sorts_keys=True)
"""KUBERNETES with sorted keys and the original text of numbers, which an apiserver's messages repeat."""

GNOSTIC: Final = YamlDialect(
    ScalarMemo(_gnostic),
    ScalarMemo(_own_text),
    _no_tag,
    Merging.NONE,
    container_tags=frozenset(),
    has_aliases=False,
)
"""The dialect in which Go's gnostic writes ``Any{yaml}`` (go-yaml v3): data only, since aliases let small
texts expand without bound."""


def is_plain_text(text: str) -> bool:
    """Whether YAML 1.2 reads the unquoted text as that string."""
    try:
        return isinstance(_core(text), str)
    except ValueError:
        return False
