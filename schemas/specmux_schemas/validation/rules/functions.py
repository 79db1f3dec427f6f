"""Functions that Kubernetes adds to CEL (apiserver, pkg/cel/library): lists, regular expressions, texts,
URLs, addresses, quantities, versions. Methods are functions whose first argument is the receiver.

A quantity, a URL, an address is an object with one key here, since the library passes plain values only.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from itertools import pairwise
from typing import Any, Final
from urllib.parse import parse_qs, unquote, urlsplit

from specmux_schemas.validation.schema.formats import find_format
from specmux_schemas.validation.schema.scalars import quantity_fault

_QUANTITY, _URL, _IP, _CIDR, _SEMVER = "quantity()", "url()", "ip()", "cidr()", "semver()"
_SUFFIX: Final = re.compile(r"([+-]?[0-9.]*)(.*)")
_DECIMAL: Final = ("n", "u", "m", "", "k", "M", "G", "T", "P", "E")
_BINARY: Final = ("Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_POWERS: Final = {
    **{suffix: Decimal(1000) ** (index - 3) for index, suffix in enumerate(_DECIMAL)},
    **{suffix: Decimal(1024) ** index for index, suffix in enumerate(_BINARY, 1)},
}
_MOST_SEARCHED: Final = 256
_REPEATED_GROUP: Final = re.compile(r"\)[*+{]")
_VERSION: Final = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?(?:\+[0-9A-Za-z.-]+)?"
)


def _quantity(text: str) -> dict[str, str]:
    if quantity_fault(text) is not None:
        raise ValueError("no quantity")
    number, suffix = _SUFFIX.fullmatch(text).groups()  # type: ignore[union-attr]
    power = Decimal(10) ** int(suffix[1:]) if suffix[:1] in "eE" and suffix[1:] else _POWERS[suffix]
    return {_QUANTITY: str(Decimal(number or 0) * power)}


def _number(value: Mapping[str, str]) -> Decimal:
    return Decimal(value[_QUANTITY])


def _is(reader: Callable[[str], Any]) -> Callable[[Any], bool]:
    def accepts(text: Any) -> bool:
        try:
            reader(text)
        except (ValueError, KeyError, ArithmeticError):
            return False
        return True

    return accepts


def _url(text: str) -> dict[str, str]:
    uri = find_format("uri")
    if uri is None or not uri.accepts(text):
        raise ValueError("no URL")
    return {_URL: text}


def _ip(text: str) -> dict[str, str]:
    if "%" in text or text.lower().startswith("::ffff:"):
        raise ValueError("no address")
    return {_IP: str(ipaddress.ip_address(text))}


def _cidr(text: str) -> dict[str, str]:
    if "/" not in text or "%" in text:
        raise ValueError("no CIDR")
    return {_CIDR: str(ipaddress.ip_interface(text))}


def _semver(text: str) -> dict[str, str]:
    if not _VERSION.fullmatch(text):
        raise ValueError("no version")
    return {_SEMVER: text}


def _version_key(text: str) -> tuple[Any, ...]:
    major, minor, patch, before = _VERSION.fullmatch(text).groups()  # type: ignore[union-attr]
    parts = tuple(
        (0, int(each), "") if each.isdigit() else (1, 0, each) for each in (before or "").split(".")
    )
    return int(major), int(minor), int(patch), before is None, parts


def _compare(left: Mapping[str, str], right: Mapping[str, str]) -> int:
    if _SEMVER in left:
        first, second = _version_key(left[_SEMVER]), _version_key(right[_SEMVER])
    else:
        first, second = (_number(left),), (_number(right),)
    return (first > second) - (first < second)


def _added(left: Mapping[str, str], right: Any, sign: int) -> dict[str, str]:
    other = Decimal(right) if isinstance(right, int) else _number(right)
    return {_QUANTITY: str(_number(left) + sign * other)}


def _network(value: Mapping[str, str]) -> Any:
    return ipaddress.ip_interface(value[_CIDR]).network


def _contains_address(value: Mapping[str, str], other: Any) -> bool:
    address = other[_IP] if isinstance(other, Mapping) else _ip(other)[_IP]
    return ipaddress.ip_address(address) in _network(value)


def _contains_network(value: Mapping[str, str], other: Any) -> bool:
    inner = _network(other if isinstance(other, Mapping) else _cidr(other))
    outer = _network(value)
    return bool(inner.version == outer.version and inner.subnet_of(outer))


def _family(value: Mapping[str, str]) -> int:
    return int(ipaddress.ip_interface(value.get(_CIDR) or value[_IP]).version)


def _address(value: Mapping[str, str]) -> Any:
    return ipaddress.ip_address(value[_IP])


def _index(value: Any, item: Any, start: int = 0) -> int:
    if isinstance(value, str):
        return value.find(item, start)
    return next((index for index, each in enumerate(value) if each == item), -1)


def _last_index(value: Any, item: Any, start: int | None = None) -> int:
    if isinstance(value, str):
        return value.rfind(item) if start is None else value.rfind(item, 0, start + len(item))
    return max((index for index, each in enumerate(value) if each == item), default=-1)


def _substring(text: str, start: int, end: int | None = None) -> str:
    end = len(text) if end is None else end
    if not 0 <= start <= end <= len(text):
        raise ValueError("index out of range")
    return text[start:end]


def _split(text: str, separator: str, most: int = -1) -> list[str]:
    if most in (0, 1):
        return [text] if most else []
    return list(text) if not separator else text.split(separator, most - 1 if most > 0 else -1)


def _replace(text: str, old: str, new: str, most: int = -1) -> str:
    return text.replace(old, new, most)


def _found(text: str, pattern: str) -> re.Pattern[str]:
    """Python's expressions backtrack: only those that cannot for long, on texts that are short."""
    if len(text) > _MOST_SEARCHED or _REPEATED_GROUP.search(pattern):
        raise ValueError("the expression may take long here")
    return re.compile(pattern, re.ASCII)


def _find(text: str, pattern: str) -> str:
    found = _found(text, pattern).search(text)
    return found[0] if found else ""


def _find_all(text: str, pattern: str, most: int = -1) -> list[str]:
    found = [match[0] for match in _found(text, pattern).finditer(text)]
    return found if most < 0 else found[:most]


def _equivalent(value: list[Any], other: list[Any]) -> bool:
    return all(each in value for each in other) and all(each in other for each in value)


def _ip_of(value: Any) -> dict[str, str]:
    """Of a text, or the address in a CIDR."""
    return {_IP: str(ipaddress.ip_interface(value[_CIDR]).ip)} if isinstance(value, dict) else _ip(value)


def _is_link_local_multicast(value: Mapping[str, str]) -> bool:
    return _address(value).is_multicast and str(_address(value)).startswith(("224.0.0.", "ff02:"))


def _is_global_unicast(value: Mapping[str, str]) -> bool:
    """As Go has it, where private addresses are global."""
    address = _address(value)
    is_local = address.is_unspecified or address.is_loopback or address.is_multicast or address.is_link_local
    return not is_local and str(address) != "255.255.255.255"


FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "isSorted": lambda value: all(left <= right for left, right in pairwise(value)),
    "sum": lambda value: sum(value),
    "min": lambda *values: min(values[0] if len(values) == 1 else values),
    "max": lambda *values: max(values[0] if len(values) == 1 else values),
    "indexOf": _index,
    "lastIndexOf": _last_index,
    "find": _find,
    "findAll": _find_all,
    "charAt": lambda text, index: _substring(text, index, min(index + 1, len(text))),
    "join": lambda parts, separator="": separator.join(parts),
    "lowerAscii": lambda text: re.sub("[A-Z]+", lambda found: found[0].lower(), text),
    "upperAscii": lambda text: re.sub("[a-z]+", lambda found: found[0].upper(), text),
    "replace": _replace,
    "split": _split,
    "substring": _substring,
    "trim": lambda text: text.strip(),
    "reverse": lambda value: value[::-1],
    "distinct": lambda value: [each for index, each in enumerate(value) if each not in value[:index]],
    "sets.contains": lambda value, other: all(each in value for each in other),
    "sets.equivalent": _equivalent,
    "sets.intersects": lambda value, other: any(each in value for each in other),
    "isQuantity": _is(_quantity),
    "quantity": _quantity,
    "isGreaterThan": lambda left, right: _compare(left, right) > 0,
    "isLessThan": lambda left, right: _compare(left, right) < 0,
    "compareTo": _compare,
    "sign": lambda value: (_number(value) > 0) - (_number(value) < 0),
    "isInteger": lambda value: _number(value) == _number(value).to_integral_value(),
    "asInteger": lambda value: int(_number(value)),
    "asApproximateFloat": lambda value: float(_number(value)),
    "add": lambda left, right: _added(left, right, 1),
    "sub": lambda left, right: _added(left, right, -1),
    "isURL": _is(_url),
    "url": _url,
    "getScheme": lambda value: urlsplit(value[_URL]).scheme,
    "getHost": lambda value: urlsplit(value[_URL]).netloc.rpartition("@")[2],
    "getHostname": lambda value: urlsplit(value[_URL]).hostname or "",
    "getPort": lambda value: str(urlsplit(value[_URL]).port or ""),
    "getEscapedPath": lambda value: urlsplit(value[_URL]).path,
    "getQuery": lambda value: parse_qs(unquote(urlsplit(value[_URL]).query), keep_blank_values=True),
    "isIP": _is(_ip),
    "ip": _ip_of,
    "ip.isCanonical": lambda text: _ip(text)[_IP] == text,
    "family": _family,
    "isUnspecified": lambda value: _address(value).is_unspecified,
    "isLoopback": lambda value: _address(value).is_loopback,
    "isLinkLocalMulticast": _is_link_local_multicast,
    "isLinkLocalUnicast": lambda value: _address(value).is_link_local,
    "isGlobalUnicast": _is_global_unicast,
    "isCIDR": _is(_cidr),
    "cidr": _cidr,
    "containsIP": _contains_address,
    "containsCIDR": _contains_network,
    "prefixLength": lambda value: _network(value).prefixlen,
    "masked": lambda value: {_CIDR: str(_network(value))},
    "isSemver": _is(_semver),
    "semver": _semver,
    "major": lambda value: _version_key(value[_SEMVER])[0],
    "minor": lambda value: _version_key(value[_SEMVER])[1],
    "patch": lambda value: _version_key(value[_SEMVER])[2],
}
"""By the name they are called by."""
