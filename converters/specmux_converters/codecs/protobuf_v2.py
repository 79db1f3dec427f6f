"""Swagger 2.0 documents as Protobuf: gnostic's openapi.v2.Document, as apiservers serve it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final, cast

from specmux_converters.codecs import Fragments
from specmux_converters.codecs.gnostic import messages_of
from specmux_converters.codecs.protobuf_fields import NAME, RefusedError, Write, message_field, write_types
from specmux_converters.codecs.protobuf_reader import document_reader, read_message
from specmux_converters.codecs.protobuf_writer import MessageCompiler, boolean_or, write_message
from specmux_converters.codecs.wire import LENGTH, key, write_delimited
from specmux_converters.document import Document, Limits

# Selects members of a oneof as gnostic's compiler does: the last that fits.

_LOCATIONS: Final = {
    "header": "HeaderParameterSubSchema",
    "formData": "FormDataParameterSubSchema",
    "query": "QueryParameterSubSchema",
    "path": "PathParameterSubSchema",
}
_SCHEMES: Final = {
    ("basic", None): "BasicAuthenticationSecurity",
    ("apiKey", None): "ApiKeySecurity",
    ("oauth2", "implicit"): "Oauth2ImplicitSecurity",
    ("oauth2", "password"): "Oauth2PasswordSecurity",
    ("oauth2", "application"): "Oauth2ApplicationSecurity",
    ("oauth2", "accessCode"): "Oauth2AccessCodeSecurity",
}

Candidates = Callable[[dict[str, Any]], Sequence[str]]
"""The members of a oneof that may fit an object. gnostic tries all and keeps the last that fits."""


@functools.cache
def _document_writer() -> Write:
    return _CompilerV2(messages_of("v2"), shared={}).writers["Document"]


def _schemes(node: dict[str, Any]) -> Sequence[str]:
    found = _SCHEMES.get((str(node.get("type")), node.get("flow")))
    return (found,) if found else ()


def _locations(node: dict[str, Any]) -> Sequence[str]:
    if "in" not in node:
        return (*_LOCATIONS.values(),)
    found = _LOCATIONS.get(str(node["in"]))
    return (found,) if found else ()


_ONEOFS: Final[dict[str, Candidates]] = {
    "ParametersItem": lambda node: ("JsonReference",) if "$ref" in node else ("Parameter",),
    "Parameter": lambda node: ("BodyParameter",) if node.get("in") == "body" else ("NonBodyParameter",),
    "NonBodyParameter": _locations,
    "ResponseValue": lambda node: ("JsonReference",) if "$ref" in node else ("Response",),
    "SchemaItem": lambda node: ("Schema", "FileSchema") if node.get("type") == "file" else ("Schema",),
    "SecurityDefinitionsItem": _schemes,
}


class _CompilerV2(MessageCompiler):
    by_hand = frozenset({*_ONEOFS, "ItemsItem", "TypeItem", "AdditionalPropertiesItem"})

    def add_by_hand(self) -> None:
        for name, candidates in _ONEOFS.items():
            self.writers[name] = self._one_of(name, candidates)
        in_oneof = message_field(NAME, self.writers["Schema"])
        self.writers["ItemsItem"] = in_oneof  # an array of schemas, too, is read as one
        self.writers["TypeItem"] = write_types
        self.writers["AdditionalPropertiesItem"] = boolean_or(in_oneof)

    def _one_of(self, name: str, candidates: Candidates) -> Write:
        members = {field.type: key(field.number, LENGTH) for field in self.messages[name]}
        writers = self.writers

        def write(value: Any, fragments: Fragments) -> bytes:
            # Not an object: most members have no required keys, and gnostic reads it as an empty one.
            reason = RefusedError(f"no {name}")
            for message in reversed([*(candidates(value) if type(value) is dict else members)]):
                try:
                    return write_delimited(members[message], writers[message](value, fragments))
                except RefusedError as refused:
                    reason = refused
            raise reason

        return write


def encode(document: Document, *, fragments: Fragments | None = None) -> bytes:
    """Raises Unrepresentable for values without a field in gnostic's messages."""
    return write_message(_document_writer(), document, fragments or Fragments())


def decode(data: bytes, *, limits: Limits) -> Document:
    """Raises InvalidDocument for malformed bytes, LimitExceeded past ``limits``."""
    return cast("Document", read_message(data, document_reader("v2"), limits))
