"""Checks whether a webhook's caBundle contains a readable certificate (client-go, transport: rootCertPool;
Go, encoding/pem, crypto/x509). Parses the frame of a certificate like Go, but no key or extension."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from typing import Final

_BLOCK: Final = re.compile(
    rb"^-----BEGIN ([^\n]*)-----[ \t\r]*\n(.*?)^-----END \1-----[ \t\r]*(?:\n|\Z)", re.MULTILINE | re.DOTALL
)
_CERTIFICATE: Final = b"CERTIFICATE"
_MALFORMED: Final = "x509: malformed "
_SEQUENCE: Final = 0x30
_INTEGER: Final = 0x02
_VERSION: Final = 0xA0
_FIELDS: Final = (
    (_INTEGER, "serial number"),
    (_SEQUENCE, "signature algorithm identifier"),
    (_SEQUENCE, "issuer"),
    (_SEQUENCE, "validity"),
    (_SEQUENCE, "issuer"),  # also the subject
    (_SEQUENCE, "spki"),
)


class _MalformedElement(ValueError):
    pass


def bundle_fault(text: str) -> str:
    """Why a caBundle yields no certificate, in upstream's words; "" if it yields one."""
    try:
        data = base64.b64decode(text)
    except ValueError:
        return "unable to parse bytes as PEM block"
    blocks = list(_blocks(data))
    faults = [_certificate_fault(der) for kind, der, _ in blocks if kind == _CERTIFICATE]
    if "" in faults:
        return ""
    if faults:
        return f"failed to parse certificate: {faults[0]}"
    is_read = bool(blocks) and blocks[-1][2] == len(data)
    return "no valid certificate authority data seen" if is_read else "unable to parse bytes as PEM block"


def _blocks(data: bytes) -> Iterator[tuple[bytes, bytes, int]]:
    """Yields the type, the content and the end of each block."""
    for block in _BLOCK.finditer(data):
        if b":" in block[2]:  # a block with headers, which upstream skips
            yield b"", b"", block.end()
            continue
        try:
            yield block[1], base64.b64decode(b"".join(block[2].split()), validate=True), block.end()
        except ValueError:
            continue


def _certificate_fault(der: bytes) -> str:
    what = "certificate"
    try:
        content, rest = _element(der, _SEQUENCE)
        what = "tbs certificate"
        fields, outer = _element(content, _SEQUENCE)
        what = "version"
        if fields[:1] == bytes([_VERSION]):
            version, fields = _element(fields, _VERSION)
            if _element(version, _INTEGER)[1]:
                raise _MalformedElement
        algorithm = b""
        for tag, what in _FIELDS:
            value, fields = _element(fields, tag)
            if what.startswith("signature"):
                algorithm = value
                what = "algorithm identifier"
                if _element(outer, _SEQUENCE)[0] != algorithm:
                    return "x509: inner and outer signature algorithm identifiers don't match"
    except _MalformedElement:
        return f"{_MALFORMED}{what}"
    return "x509: trailing data" if rest else ""


def _element(data: bytes, tag: int) -> tuple[bytes, bytes]:
    """The content of a DER element, and what follows it."""
    if len(data) < 2 or data[0] != tag:
        raise _MalformedElement
    start, size = 2, data[1]
    if size & 0x80:
        start += size & 0x7F
        size = int.from_bytes(data[2:start], "big")
        if not 0x80 <= size < 2**32 or data[2] == 0 or start > 6:
            raise _MalformedElement
    if len(data) < start + size:
        raise _MalformedElement
    return data[start : start + size], data[start + size :]
