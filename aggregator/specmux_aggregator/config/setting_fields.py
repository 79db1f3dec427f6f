"""Each field of Settings with its key, flag and environment variable, and how its text is parsed. Pure."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from dataclasses import Field, dataclass, fields, is_dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Final, get_args, get_origin, get_type_hints

from specmux_aggregator.config.settings import Settings
from specmux_cache.errors import BadValue as BadValue
from specmux_converters.errors import cut
from specmux_converters.lazy.patterns import pattern

VARIABLE_PREFIX: Final = "SPECMUX_"

_UNITS: Final = {
    "": 1,
    "B": 1,
    "kB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
    # The syntax of Kubernetes' quantities.
    "k": 10**3,
    "M": 10**6,
    "G": 10**9,
    "Ki": 2**10,
    "Mi": 2**20,
    "Gi": 2**30,
}
_TOKEN: Final = pattern(r"(?i:bearer )|eyJ[\w-]+\.[\w-]+\.")  # a JWT, as used for service accounts
_BYTES: Final = pattern(r"([0-9]{1,15}(?:\.[0-9]{1,6})?) ?([A-Za-z]{0,3})")
_WHOLE: Final = pattern(r"[+-]?[0-9]{1,15}")
_TRUTHS: Final = {
    "true": True,
    "yes": True,
    "on": True,
    "1": True,
    "false": False,
    "no": False,
    "off": False,
    "0": False,
}


@dataclass(frozen=True, slots=True)
class SettingField:
    """A scalar setting."""

    group: str
    name: str
    type: type
    """str, int, float, bool, Path, or tuple: a list of strings."""
    default: object
    doc: str
    at_least: float | None = None
    at_most: float | None = None
    choices: tuple[str, ...] = ()
    short: str | None = None
    """A shorter flag by which users know the setting."""

    @property
    def key(self) -> str:
        """Its key in the file: "listen.port"."""
        return f"{self.group}.{self.name}"

    @property
    def variable(self) -> str:
        """Its environment variable: "SPECMUX_LISTEN_PORT"."""
        return f"{VARIABLE_PREFIX}{self.group}_{self.name}".upper()

    @property
    def flag(self) -> str:
        """Its command-line flag: "--listen-port"."""
        return f"--{self.group}-{self.name}".replace("_", "-")

    @property
    def is_bytes(self) -> bool:
        """Whether it is a number of bytes, which may have a unit."""
        return self.type is int and self.name.endswith("bytes")

    @property
    def is_list(self) -> bool:
        """Whether it is a list of strings: a list in the file, separated by commas elsewhere."""
        return self.type is tuple

    def read(self, text: str) -> object:
        """Parse ``text``. Raises BadValue."""
        if self.is_list:
            return tuple(scalar(item.strip(" "), str) for item in text.split(","))
        value = scalar(text, self.type, is_bytes=self.is_bytes)
        if self.choices and value not in self.choices:
            raise BadValue(f'"{cut(text)}" is not one of {", ".join(self.choices)}')
        if isinstance(value, int | float):
            if self.at_least is not None and value < self.at_least:
                raise BadValue(f"{plain(value)} is less than {plain(self.at_least)}")
            if self.at_most is not None and value > self.at_most:
                raise BadValue(f"{plain(value)} is more than {plain(self.at_most)}")
        return value


@functools.cache
def setting_fields() -> tuple[SettingField, ...]:
    """All scalar settings, in the order of their classes."""
    return tuple(_setting_fields())


def scalar(text: str, wanted: type, *, is_bytes: bool = False) -> object:
    """Parse ``text`` as a str, int, float, bool or Path. Raises BadValue; the caller checks bounds."""
    if wanted is bool:
        return _truth(text)
    if wanted is int:
        return byte_count(text) if is_bytes else _whole(text)
    if wanted is float:
        return _number(text)
    if not text or not text.isprintable():
        raise BadValue("empty, or not printable")
    if wanted is Path:
        # A key, certificate or token given instead of its path would be quoted by every later error.
        if "-----BEGIN" in text:
            raise BadValue("holds PEM text where the path of a file is wanted")
        if _TOKEN.match(text):
            raise BadValue("holds a token where the path of a file with one is wanted")
        return Path(text)
    return text


def plain(value: object) -> str:
    """A value as written in the file."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return ",".join(value)
    return f"{value:.12g}" if isinstance(value, float) else str(value)


def _setting_fields() -> Iterator[SettingField]:
    for group, group_type in get_type_hints(Settings).items():
        if not is_dataclass(group_type):
            continue
        hints = get_type_hints(group_type)
        for item in fields(group_type):
            yield _setting_field(group, item, hints[item.name])


def _setting_field(group: str, item: Field[Any], annotation: Any) -> SettingField:
    if isinstance(annotation, UnionType):  # X | None
        (annotation,) = (member for member in get_args(annotation) if member is not NoneType)
    return SettingField(group, item.name, get_origin(annotation) or annotation, item.default, **item.metadata)


def _truth(text: str) -> bool:
    truth = _TRUTHS.get(text.lower())
    if truth is None:
        raise BadValue(f'"{cut(text)}" is neither true nor false')
    return truth


def _whole(text: str) -> int:
    if not _WHOLE.fullmatch(text):
        raise BadValue(f'"{cut(text)}" is not a whole number')
    return int(text)


def _number(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        raise BadValue(f'"{cut(text)}" is not a number') from None
    if not math.isfinite(number):
        raise BadValue(f'"{cut(text)}" is not a finite number')
    return number


def byte_count(text: str) -> int:
    """``256MiB``. Raises BadValue."""
    match = _BYTES.fullmatch(text)
    unit = _UNITS.get(match[2]) if match else None
    if match is None or unit is None:
        raise BadValue(f'"{cut(text)}" is not a number of bytes, such as 1048576 or 256MiB')
    count = float(match[1]) * unit if "." in match[1] else int(match[1]) * unit
    if count != int(count):
        raise BadValue(f'"{cut(text)}" is not a whole number of bytes')
    return int(count)
