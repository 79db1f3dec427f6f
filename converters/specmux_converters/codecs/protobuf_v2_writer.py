"""Writes Swagger 2.0 documents as gnostic openapi.v2 Protobuf, as apiservers serve ``/openapi/v2``.

Selects members of a oneof as gnostic's compiler does: by ``$ref``, the location of a parameter, the type of a
security scheme.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

from specmux_converters.codecs.fragments import Fragments
from specmux_converters.codecs.gnostic import facts, read_facts
from specmux_converters.codecs.protobuf_fields import NAME, RefusedError, Write, write_string_array
from specmux_converters.codecs.protobuf_writer import MessageCompiler, boolean_or, write_message
from specmux_converters.codecs.wire import LENGTH, key, prefixed
from specmux_converters.document import Document

_LOCATIONS: Final = {
    "header": (1, "HeaderParameterSubSchema"),
    "formData": (2, "FormDataParameterSubSchema"),
    "query": (3, "QueryParameterSubSchema"),
    "path": (4, "PathParameterSubSchema"),
}
_SCHEMES: Final = {
    ("basic", None): (1, "BasicAuthenticationSecurity"),
    ("apiKey", None): (2, "ApiKeySecurity"),
    ("oauth2", "implicit"): (3, "Oauth2ImplicitSecurity"),
    ("oauth2", "password"): (4, "Oauth2PasswordSecurity"),
    ("oauth2", "application"): (5, "Oauth2ApplicationSecurity"),
    ("oauth2", "accessCode"): (6, "Oauth2AccessCodeSecurity"),
}

Choose = Callable[[dict[str, Any]], tuple[int, str] | None]
"""Selects the member of a oneof for an object: its number and message."""


def write_swagger(document: Document, fragments: Fragments) -> bytes:
    """Raises Unrepresentable for values without a field in gnostic's messages."""
    return write_message(_document_writer(), document, fragments)


@functools.cache
def _document_writer() -> Write:
    return _CompilerV2(read_facts(facts("v2")), shared={}).writers["Document"]


_ONEOFS: Final[dict[str, Choose]] = {
    "ParametersItem": lambda node: (2, "JsonReference") if "$ref" in node else (1, "Parameter"),
    "Parameter": lambda node: (1, "BodyParameter") if node.get("in") == "body" else (2, "NonBodyParameter"),
    "NonBodyParameter": lambda node: _LOCATIONS.get(str(node.get("in"))),
    "ResponseValue": lambda node: (2, "JsonReference") if "$ref" in node else (1, "Response"),
    "SchemaItem": lambda node: (2, "FileSchema") if node.get("type") == "file" else (1, "Schema"),
    "SecurityDefinitionsItem": lambda node: _SCHEMES.get((str(node.get("type")), node.get("flow"))),
}


class _CompilerV2(MessageCompiler):
    by_hand = frozenset({*_ONEOFS, "ItemsItem", "TypeItem", "AdditionalPropertiesItem"})

    def add_by_hand(self) -> None:
        for name, choose in _ONEOFS.items():
            self.writers[name] = self._one_of(name, choose)
        write_schema = self.writers["Schema"]

        def write_items(value: Any, fragments: Fragments) -> bytes:
            items = value if type(value) is list else [value]
            return b"".join([prefixed(NAME, write_schema(item, fragments)) for item in items])

        def write_type(value: Any, fragments: Fragments) -> bytes:
            return write_string_array(value if type(value) is list else [value], fragments)

        def write_one(value: Any, fragments: Fragments) -> bytes:
            return prefixed(NAME, write_schema(value, fragments))

        self.writers["ItemsItem"] = write_items
        self.writers["TypeItem"] = write_type
        self.writers["AdditionalPropertiesItem"] = boolean_or(write_one)

    def _one_of(self, name: str, choose: Choose) -> Write:
        writers = self.writers

        def write(value: Any, fragments: Fragments) -> bytes:
            chosen = choose(value) if type(value) is dict else None
            if chosen is None:
                raise RefusedError(f"no {name}")
            number, message = chosen
            return prefixed(key(number, LENGTH), writers[message](value, fragments))

        return write
