"""Formats of texts that an apiserver checks in custom resources (kube-openapi, pkg/validation/strfmt).

Others it does not know, and passes over. A dash in a name does not matter.
"""

from __future__ import annotations

import ipaddress
import re
import unicodedata
from collections.abc import Callable, Mapping
from typing import Any, Final

from specmux_converters.go.text import size_of
from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.lazy.patterns import pattern
from specmux_converters.releases import NAME_FORMATS, ReleaseDifference
from specmux_tools.validation.schema.scalars import date_is_real
from specmux_tools.validation.schema.urls import url_fault

# isVchar without the specials of RFC 5322 3.2.3, and without the dot.
_ATEXT: Final = r"[^\x00-\x20\x7f()<>\[\]:;@\\,\".]"
_DOTTED: Final = rf"{_ATEXT}++(?:\.{_ATEXT}++)*+"
_QUOTED: Final = r'"(?:[^\x00-\x08\x0a-\x1f\x7f"\\]|\\[^\x00-\x08\x0a-\x1f\x7f])*+"'
_SPACE: Final = r"[ \t]*+"
_COMMENTS: Final = r"(?:[ \t]|\(\))*+"
_SPEC: Final = rf'{_SPACE}(?:(?!""){_QUOTED}|{_DOTTED})@{_SPACE}(?:{_DOTTED}|\[([!-Z^-~]*+)\])'
_WORD: Final = rf"(?:{_QUOTED}|(?:{_ATEXT}|\.)++){_COMMENTS}"
_MAILBOX: Final = rf"{_SPACE}(?:{_SPEC}|(?:{_WORD})*+<{_SPEC}>){_COMMENTS}"
_ADDRESS: Final = pattern(rf"{_MAILBOX}|{_SPACE}(?:{_WORD})++:{_MAILBOX};{_COMMENTS}")
"""An address as Go's net/mail reads it, with empty comments; the groups are literals of domains."""
_BEFORE_COMMENT: Final = re.compile(r'"(?:[^"\\]|\\.)*+"?|\(', re.DOTALL)
_IN_COMMENT: Final = re.compile(r"\\.|[()]", re.DOTALL)


@dataclass(frozen=True, slots=True)
class StringFormat:
    name: str
    """The name as the schema writes it."""
    accepts: Callable[[str], bool]
    since: ReleaseDifference | None = None
    """None if every release checks it."""


def find_format(name: Any) -> StringFormat | None:
    """None for what is not checked."""
    if not isinstance(name, str):
        return None
    normalized = name.replace("-", "")
    accepts = FORMATS.get(normalized)
    return None if accepts is None else StringFormat(name, accepts, _SINCE.get(normalized))


def _matching(pattern: str) -> Callable[[str], bool]:
    compiled = re.compile(pattern, re.ASCII)
    return lambda text: compiled.fullmatch(text) is not None


_DATE: Final = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_TIME: Final = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))")
_GO_DURATION: Final = re.compile(r"[-+]?(?:0|(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h))+)")
# Digits are read from their first on: what does not match there does not match within them.
_DURATION_PART: Final = re.compile(r"(?<![0-9])([0-9]++)[\t\n\f\r ]*+([A-Za-zµ]++)")
_SECOND: Final = 1_000_000_000
_UNITS: Final[tuple[tuple[frozenset[str], str, int], ...]] = (
    (frozenset(("ns",)), "nano", 1),
    (frozenset(("us", "µs")), "micro", 1_000),
    (frozenset(("ms",)), "milli", 1_000_000),
    (frozenset(("s",)), "sec", _SECOND),
    (frozenset(("m",)), "min", 60 * _SECOND),
    (frozenset(("h", "hr")), "hour", 3_600 * _SECOND),
    (frozenset(("d",)), "day", 86_400 * _SECOND),
    (frozenset(("w", "wk")), "week", 7 * 86_400 * _SECOND),
)
"""Short names, the beginning of long ones, and nanoseconds."""
_INT64_DIGITS: Final = 18
_LABEL: Final = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_MAC: Final = re.compile(
    r"(?:[0-9a-fA-F]{2}([:-])(?:[0-9a-fA-F]{2}\1){4}[0-9a-fA-F]{2}"
    r"|[0-9a-fA-F]{2}([:-])(?:[0-9a-fA-F]{2}\2){6}[0-9a-fA-F]{2}"
    r"|[0-9a-fA-F]{2}([:-])(?:[0-9a-fA-F]{2}\3){18}[0-9a-fA-F]{2}"
    r"|(?:[0-9a-fA-F]{4}\.){2}[0-9a-fA-F]{4}|(?:[0-9a-fA-F]{4}\.){3}[0-9a-fA-F]{4}"
    r"|(?:[0-9a-fA-F]{4}\.){9}[0-9a-fA-F]{4})"
)


def _is_date(text: str) -> bool:
    match = _DATE.fullmatch(text)
    return match is not None and date_is_real(int(match[1]), int(match[2]), int(match[3]))


def _is_date_time(text: str) -> bool:
    if text[10:11] not in ("t", "T") or not _is_date(text[:10]):
        return False
    match = _TIME.fullmatch(text[11:].lower().partition("t")[0])
    return match is not None and match[1] <= "23" and match[2] <= "59" and match[3] <= "59"


def _is_duration(text: str) -> bool:
    return _GO_DURATION.fullmatch(text) is not None or read_long_duration(text) is not None


def read_long_duration(text: str) -> int | None:
    """Nanoseconds in units that Go does not have: days, weeks, and words for all of them. What is no part is
    skipped; None where no part is a duration, or one has a number beyond 64 bits."""
    total: int | None = None
    for part in _DURATION_PART.finditer(text):
        if len(part[1].lstrip("0")) > _INT64_DIGITS:
            return None
        unit = part[2].lower()
        size = next((size for short, long, size in _UNITS if unit in short or unit.startswith(long)), None)
        if size is not None:
            total = (total or 0) + int(part[1]) * size
    return total


def _is_ip(text: str, mark: str) -> bool:
    """Leading zeros are tolerated, as before Go 1.17; a zone is not."""
    if mark not in text or "%" in text:
        return False
    try:
        ipaddress.ip_address(_without_zeros(text))
    except ValueError:
        return False
    return True


def _without_zeros(text: str) -> str:
    head, colon, tail = text.rpartition(":")
    parts = (part.lstrip("0") or "0" if part.isdigit() else part for part in tail.split("."))
    return head + colon + ".".join(parts)


def _is_cidr(text: str) -> bool:
    address, slash, bits = text.partition("/")
    if not slash or not bits.isascii() or not bits.isdigit() or "%" in address:
        return False
    try:
        found = ipaddress.ip_address(_without_zeros(address) if "." in address else address)
    except ValueError:
        return False
    return len(bits) <= 3 and int(bits) <= found.max_prefixlen


def _is_host_character(character: str) -> bool:
    """``[a-zA-Z0-9\\p{S}\\p{L}]`` of strfmt's HostnamePattern."""
    return (character.isascii() and character.isalnum()) or unicodedata.category(character)[0] in "LS"


def _is_letter(character: str) -> bool:
    return unicodedata.category(character)[0] == "L"


def _is_hostname(text: str) -> bool:
    parts = text.split(".")
    if len(text) > 255 or size_of(text) > 255 or any(size_of(part) > 63 for part in parts):
        return False
    if len(parts) == 1:
        rest = text[1:].removeprefix("-")
        return text != "" and len(rest) <= 62 and all(map(_is_host_character, text[0] + rest))
    *labels, last = parts
    return len(last) >= 2 and all(map(_is_letter, last)) and all(map(_is_host_label, labels))


def _is_host_label(label: str) -> bool:
    return (
        label != ""
        and _is_host_character(label[0])
        and _is_host_character(label[-1])
        and all(character == "-" or _is_host_character(character) for character in label[1:-1])
    )


def is_mail_address(text: str) -> bool:
    """One address, which may have a name or be alone in a group."""
    found = _ADDRESS.fullmatch(_empty_comments(text))
    return found is not None and all(literal is None or _is_literal(literal) for literal in found.groups())


def _empty_comments(text: str) -> str:
    """The text with nothing in its comments, which may be in each other. One without an end stays open."""
    kept: list[str] = []
    at = depth = 0
    while (mark := (_IN_COMMENT if depth else _BEFORE_COMMENT).search(text, at)) is not None:
        if depth == 0:
            kept.append(text[at : mark.end()])
        depth += {"(": 1, ")": -1}.get(mark[0], 0)
        if depth == 0 and mark[0] == ")":
            kept.append(")")
        at = mark.end()
    return "".join(kept) + (text[at:] if depth == 0 else "")


def _is_literal(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return "%" not in text


_ISBN10: Final = re.compile(r"(?:[\s-]*+[0-9]){9}[\s-]*+[0-9X][\s-]*+")
_ISBN13: Final = re.compile(r"(?:[\s-]*+[0-9]){13}[\s-]*+")


def _is_isbn10(text: str) -> bool:
    if not _ISBN10.fullmatch(text):
        return False
    digits = re.sub(r"[\s-]", "", text)
    total = sum((index + 1) * int(digit) for index, digit in enumerate(digits[:9]))
    return (total + 10 * (10 if digits[9] == "X" else int(digits[9]))) % 11 == 0


def _is_isbn13(text: str) -> bool:
    if not _ISBN13.fullmatch(text):
        return False
    digits = re.sub(r"[\s-]", "", text)
    total = sum((1, 3)[index % 2] * int(digit) for index, digit in enumerate(digits[:12]))
    return (10 - total % 10) % 10 == int(digits[12])


_CARD: Final = re.compile(
    "(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|(?:222[1-9]|22[3-9][0-9]|2[3-6][0-9]{2}|27[01][0-9]|2720)[0-9]{12}"
    "|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}"
    r"|(?:2131|1800|35\d{3})\d{11}|6[27][0-9]{14})"
)


_CARD_DIGITS: Final = re.compile("(?:[^0-9]*+[0-9]){13,16}[^0-9]*+")


def _is_credit_card(text: str) -> bool:
    if not _CARD_DIGITS.fullmatch(text):
        return False
    digits = re.sub("[^0-9]+", "", text)
    if not _CARD.fullmatch(digits):
        return False
    doubled = [int(digit) * (2 if index % 2 else 1) for index, digit in enumerate(reversed(digits))]
    return sum(each - 9 if each > 9 else each for each in doubled) % 10 == 0


_HEX: Final = "[0-9a-fA-F]"
_BYTE_TEXT: Final = r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})"
_RGB: Final = r"\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*"


def _uuid(third: str, fourth: str) -> Callable[[str], bool]:
    return _matching(f"{_HEX}{{8}}-?{_HEX}{{4}}-?{third}-?{fourth}-?{_HEX}{{12}}")


_SHORT_NAME: Final = _matching(_LABEL)
_LONG_NAME: Final = _matching(rf"{_LABEL}(?:\.{_LABEL})*")
_ANY4: Final = f"{_HEX}{{4}}"
_VARIANT: Final = f"[89abAB]{_HEX}{{3}}"
FORMATS: Final[Mapping[str, Callable[[str], bool]]] = {
    "bsonobjectid": _matching(f"{_HEX}{{24}}"),
    "uri": lambda text: url_fault(text) is None,
    "email": is_mail_address,
    "hostname": _is_hostname,
    "ipv4": lambda text: _is_ip(text, "."),
    "ipv6": lambda text: _is_ip(text, ":"),
    "cidr": _is_cidr,
    "mac": lambda text: _MAC.fullmatch(text) is not None,
    "uuid": _uuid(_ANY4, _ANY4),
    "uuid3": _uuid(f"3{_HEX}{{3}}", _ANY4),
    "uuid4": _uuid(f"4{_HEX}{{3}}", _VARIANT),
    "uuid5": _uuid(f"5{_HEX}{{3}}", _VARIANT),
    "isbn": lambda text: _is_isbn10(text) or _is_isbn13(text),
    "isbn10": _is_isbn10,
    "isbn13": _is_isbn13,
    "creditcard": _is_credit_card,
    "ssn": _matching(r"\d{3}[- ]\d{2}[- ]\d{4}"),
    "hexcolor": _matching(f"#?({_HEX}{{3}}|{_HEX}{{6}})"),
    "rgbcolor": _matching(rf"rgb\({_RGB},{_RGB},{_RGB}\)"),
    "byte": _matching(_BYTE_TEXT),
    "password": lambda _: True,
    "date": _is_date,
    "duration": _is_duration,
    "datetime": _is_date_time,
    "k8sshortname": lambda text: len(text) <= 63 and _SHORT_NAME(text),
    "k8slongname": lambda text: len(text) <= 253 and _LONG_NAME(text),
}

_SINCE: Final = {"k8sshortname": NAME_FORMATS, "k8slongname": NAME_FORMATS}
