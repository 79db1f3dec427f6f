"""What a file or an answer holds, told from its bytes alone: names and media types lie."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from specmux_converters import codecs, media_types
from specmux_converters.codecs import protobuf_v2
from specmux_converters.document import DEFAULT_LIMITS, Document, Limits, parse
from specmux_converters.errors import InvalidDocument
from specmux_converters.swagger2.source import SWAGGER_VERSIONS
from specmux_converters.yaml.reader import parse_yaml_stream

_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_CRD: Final = "CustomResourceDefinition"
_CRD_LIST: Final = "CustomResourceDefinitionList"


class Kind(Enum):
    SWAGGER_2 = "Swagger 2.0"
    OPENAPI_3 = "OpenAPI 3.0"
    CRDS = "CustomResourceDefinitions"


@dataclass(frozen=True, slots=True)
class Recognised:
    """``documents`` is one for the two specifications, any number of manifests for CRDS."""

    kind: Kind
    documents: tuple[Document, ...]


def recognise(data: bytes, *, limits: Limits = DEFAULT_LIMITS) -> Recognised:
    """Swagger 2.0 as JSON, YAML or Protobuf; OpenAPI 3.0 as JSON, YAML, CBOR or Protobuf; CRD manifests as
    JSON or YAML, a stream or a List of them too.

    Raises InvalidDocument for anything else, and for what breaks off or lies about what it is.
    """
    documents = _read(data, limits)
    if not documents:
        raise InvalidDocument("0 documents: there is nothing in it")
    manifests = [item for document in documents for item in _items(document)]
    crds = tuple(item for item in manifests if item.get("kind") == _CRD)
    if crds:
        return Recognised(Kind.CRDS, crds)
    if len(documents) != 1:
        raise InvalidDocument(f"{len(documents)} documents, and none is a CustomResourceDefinition")
    kind = kind_of(documents[0])
    if kind is None:
        raise InvalidDocument("neither Swagger 2.0, OpenAPI 3.0 nor CustomResourceDefinitions")
    return Recognised(kind, documents)


def kind_of(document: Document) -> Kind | None:
    if document.get("swagger") in SWAGGER_VERSIONS:
        return Kind.SWAGGER_2
    version = document.get("openapi")
    return Kind.OPENAPI_3 if isinstance(version, str) and version.startswith("3.") else None


def _read(data: bytes, limits: Limits) -> tuple[Document, ...]:
    data = data.removeprefix(_BYTE_ORDER_MARK)
    media_type = codecs.recognise(data)
    if media_type == media_types.JSON:
        return _read_json(data, limits)
    if media_type == media_types.PROTOBUF_V2:
        return (protobuf_v2.decode(data, limits=limits),)
    if media_type is not None and media_type in codecs.CODECS:
        return (codecs.decode(data, media_type, limits=limits),)
    if media_type is not None:
        raise InvalidDocument(f"a {media_type}, which is no OpenAPI document")
    return parse_yaml_stream(data, limits=limits)


def _read_json(data: bytes, limits: Limits) -> tuple[Document, ...]:
    """A YAML flow mapping begins with a brace too; the JSON error is the one worth telling."""
    try:
        return (parse(data, limits=limits),)
    except InvalidDocument as refusal:
        try:
            return parse_yaml_stream(data, limits=limits)
        except InvalidDocument:
            raise refusal from None


def _items(document: Document) -> list[Document]:
    """The manifests in one. In a list that an apiserver answers with, the items do not say what they are."""
    items, kind = document.get("items"), document.get("kind")
    if not isinstance(items, list) or kind not in ("List", _CRD_LIST):
        return [document]
    said = {"apiVersion": document.get("apiVersion"), "kind": _CRD} if kind == _CRD_LIST else {}
    return [{**said, **item} for item in items if isinstance(item, dict)]
