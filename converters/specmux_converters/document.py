"""Parse and hash documents. A Document is the plain JSON tree of one OpenAPI or Swagger document."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import suppress
from enum import Enum
from typing import Any, Final, TypeAlias

import orjson

from specmux_converters.errors import ConverterError, InvalidDocument, LimitExceeded, cut
from specmux_converters.json_text import (
    POINTER_MAX_BYTES,
    count_strings,
    deep_pointer,
    duplicate_pointer,
    escape_for_go,
    find_rounded_integers,
    is_deeper,
    may_be_go_escaped,
    may_have_more_values,
    pointer_at,
    with_characters,
)
from specmux_converters.json_values import within
from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.losses import Loss, pointer_to

Document: TypeAlias = dict[str, Any]

_WHITE: Final = b" \t\r\n"

WRITABLE_DEPTH: Final = 254
"""Deepest nesting of containers that orjson serializes."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The resources that an untrusted document may take."""

    max_bytes: int = 64 * 1024 * 1024
    max_depth: int = 200
    """At most WRITABLE_DEPTH."""
    max_values: int = 3_000_000
    """Objects, arrays, scalars and, in CBOR and Protobuf, names: an empty one takes two bytes in the input
    and one or two hundred in memory. 64 MiB of a real document contain 1.1 million, as CBOR or Protobuf
    2.6."""
    max_expanded_bytes: int = 256 * 1024 * 1024
    """JSON of all documents made from one: expanded references and shared components multiply it."""

    def check_bytes(self, data: bytes) -> None:
        """Raises LimitExceeded for more than ``max_bytes``."""
        if len(data) > self.max_bytes:
            raise LimitExceeded(f"{len(data)} bytes, more than the {self.max_bytes} allowed")

    def check_values(self, data: bytes) -> None:
        """Raises LimitExceeded if the JSON can contain more than ``max_values``; called before parsing."""
        if may_have_more_values(data, self.max_values):
            raise LimitExceeded(f"more than the {self.max_values} values allowed")


CRD_TITLE: Final = "Kubernetes CRD Swagger"
"""The title of documents by apiextensions-apiserver (pkg/controller/openapi/builder)."""

DEFAULT_LIMITS: Final = Limits()


def parse(data: bytes, *, limits: Limits = DEFAULT_LIMITS, losses: list[Loss] | None = None) -> Document:
    """The JSON object in ``data``, with its key order.

    Raises InvalidDocument if it is not one JSON object (including duplicate keys, numbers beyond a double and
    lone surrogates), and LimitExceeded beyond ``limits``. Integers beyond 64 bits become floats; if that
    changes their value, they are added to ``losses``.
    """
    limits.check_bytes(data)
    limits.check_values(data)
    try:
        document = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise _refusal(error) from error
    if not isinstance(document, dict):
        raise InvalidDocument("not a JSON object")
    if not _is_as_written(data, document, limits) and losses is not None:
        losses += _rounding_losses(data)
    return document


def rounding_loss(number: int, pointer: str) -> Loss:
    """The loss of an integer that was rounded to a double."""
    return Loss(pointer, "number", f"{cut(str(number))} is beyond 64 bits; now {float(number)}")


def _rounding_losses(data: bytes) -> list[Loss]:
    named, count = find_rounded_integers(data)
    losses = [rounding_loss(number, pointer) for pointer, number in named]
    if count > len(named):
        losses.append(Loss("", "number", f"{count - len(named)} more are beyond 64 bits; now doubles"))
    return losses


def _is_as_written(data: bytes, document: Document, limits: Limits) -> bool:
    """Check depth and duplicate keys by serializing the document again, since a walk in Python would cost
    more than the parser.

    If the text is reproduced, nothing was lost; otherwise strings are counted.
    """
    written = _serialize_document(document, limits, indented=data.startswith(b"{\n"))
    if _is_same(data, written):
        return True
    if may_be_go_escaped(data) and _is_same(data, escape_for_go(written)):
        return True
    if _is_same(with_characters(data), written):
        return True
    if count_strings(data) != count_strings(written):
        raise InvalidDocument("the key is there twice", pointer=duplicate_pointer(data.decode()))
    return False


def _is_same(data: bytes, written: bytes) -> bool:
    """Whether they are equal apart from trailing white space."""
    return data.startswith(written) and not data[len(written) :].strip(_WHITE)


def _serialize_document(document: Document, limits: Limits, *, indented: bool) -> bytes:
    """The document as JSON. Raises LimitExceeded if it is too deep."""
    if not indented:
        # What orjson serializes inside that many arrays is not too deep. The converse is false, since it
        # counts an empty container like a full one.
        margin = max(WRITABLE_DEPTH - limits.max_depth, 0)
        nest: Any = document
        for _ in range(margin):
            nest = [nest]
        with suppress(orjson.JSONEncodeError):
            written = orjson.dumps(nest)
            return written[margin : len(written) - margin]
    try:
        written = orjson.dumps(document, option=orjson.OPT_INDENT_2)
    except orjson.JSONEncodeError as error:
        raise _too_deep(document, limits) from error
    if is_deeper(written, limits.max_depth):
        raise _too_deep(document, limits)
    return written


def _too_deep(document: Document, limits: Limits) -> LimitExceeded:
    pointer = deep_pointer(document, limits.max_depth)
    return LimitExceeded(f"nested more than {limits.max_depth} deep", pointer=pointer)


def canonical(value: Any, *path: str | int) -> bytes:
    """The canonical JSON: keys sorted, no white space. ``path``: the place of the value.

    Raises InvalidDocument or LimitExceeded for a value that no parsed document contains.
    """
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except orjson.JSONEncodeError as error:
        kind = LimitExceeded if "Recursion" in str(error) else InvalidDocument
        raise kind(f"not JSON: {error}", pointer=pointer_to(*path)) from error


def canonical_pieces(document: Document, *, levels: int = 3) -> Iterator[bytes]:
    """The bytes of ``canonical``, one path or component at a time, for output that is not kept in memory."""
    if levels == 0 or type(document) is not dict or not document:
        yield canonical(document)
        return
    before = b"{"
    for name in sorted(document):
        yield before + orjson.dumps(name) + b":"
        yield from canonical_pieces(document[name], levels=levels - 1)
        before = b","
    yield b"}"


def content_hash(canonical_json: bytes) -> str:
    """Upper-case hex SHA-512 of ``canonical()``: equal content has equal hashes on every replica."""
    return hashlib.sha512(canonical_json).hexdigest().upper()


def _refusal(error: orjson.JSONDecodeError) -> ConverterError:
    pointer = pointer_at(error.doc, error.pos) if error.pos <= POINTER_MAX_BYTES else ""
    if "depth" in error.msg:
        return LimitExceeded("nested too deeply", pointer=pointer)
    return InvalidDocument(
        f"not JSON: {error.msg} at line {error.lineno}, column {error.colno}", pointer=pointer
    )


SWAGGER_VERSIONS: Final = ("2.0", 2.0)
"""The number is what YAML makes of an unquoted 2.0."""


class DocumentKind(Enum):
    SWAGGER_2 = "Swagger 2.0"
    OPENAPI_3 = "OpenAPI 3.0"
    CRDS = "CustomResourceDefinitions"


def kind_of(document: Document) -> DocumentKind | None:
    if document.get("swagger") in SWAGGER_VERSIONS:
        return DocumentKind.SWAGGER_2
    version = document.get("openapi")
    return DocumentKind.OPENAPI_3 if isinstance(version, str) and version.startswith("3.") else None


def is_of_custom_resources(document: Document) -> bool:
    return within(document, "info").get("title") == CRD_TITLE
