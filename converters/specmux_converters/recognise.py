"""Recognize the content of a file or an answer from its bytes: names and media types are unreliable."""

from __future__ import annotations

from dataclasses import field
from typing import Final

from specmux_converters import media_types
from specmux_converters.document import DEFAULT_LIMITS, Document, Limits, kind_of, parse
from specmux_converters.document import DocumentKind as DocumentKind
from specmux_converters.errors import InvalidDocument, NoDocument, cut
from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.losses import Loss
from specmux_converters.lower_openapi31 import as_openapi_30, is_later_than_30
from specmux_converters.media_types import FORMS

_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_CRD: Final = "CustomResourceDefinition"
_CRD_LIST: Final = "CustomResourceDefinitionList"
_MOST_NESTED: Final = 32
"""Lists within lists."""
COMPOSITE: Final = "CompositeResourceDefinition"
OF_COMPOSITES: Final = (
    "a CompositeResourceDefinition, of which Crossplane makes CustomResourceDefinitions: give those, as "
    '"kubectl get crd NAME -o yaml" prints them, or a --server that has them'
)
_TEMPLATE: Final = "a template? Render it first: helm template CHART"


@dataclass(frozen=True, slots=True)
class RecognisedInput:
    """``documents``: one for the two specifications, any number of manifests for CRDS. ``losses``: changes
    made in parsing, such as integers that no JSON parser preserves, and parts of OpenAPI 3.1 that 3.0
    lacks."""

    kind: DocumentKind
    documents: tuple[Document, ...]
    losses: tuple[Loss, ...] = ()


def recognise(data: bytes, *, limits: Limits = DEFAULT_LIMITS) -> RecognisedInput:
    """Swagger 2.0 as JSON, YAML or Protobuf; OpenAPI 3.0 as JSON, YAML, CBOR or Protobuf, and 3.1 reduced to
    3.0; CRD manifests as JSON or YAML, including streams and Lists. Manifests are parsed as YAML 1.1, as
    kubectl does, everything else as YAML 1.2.

    Raises NoDocument for other content, and InvalidDocument for truncated or inconsistent input.
    """
    data = data.removeprefix(_BYTE_ORDER_MARK)
    reading = _Reading(data, limits)
    try:
        found = _recognise_reading(reading)
        is_manifest = found.kind is DocumentKind.CRDS
        if reading.is_manifest in (None, is_manifest):
            return found
        return _recognise_reading(_Reading(data, limits, is_manifest=is_manifest))
    except NoDocument:
        raise
    except InvalidDocument as error:
        if b"{{" not in data or (data[:1] == b"{" and data[:2] != b"{{"):
            raise
        hinted = InvalidDocument(f"{error.reason}; {_TEMPLATE}", pointer=error.pointer)
        hinted.line = error.line
        raise hinted from error


def _recognise_reading(reading: _Reading) -> RecognisedInput:
    documents, losses = reading.documents(), reading.losses
    if not documents:
        raise NoDocument("0 documents: there is nothing in it")
    manifests = [item for document in documents for item in _items(document)]
    crds = tuple(item for item in manifests if item.get("kind") == _CRD)
    if crds:
        return RecognisedInput(DocumentKind.CRDS, crds, tuple(losses))
    if any(item.get("kind") == COMPOSITE for item in manifests):
        raise NoDocument(OF_COMPOSITES)
    if len(documents) != 1:
        raise NoDocument(f"{len(documents)} documents, and none is a CustomResourceDefinition")
    kind, document = kind_of(documents[0]), documents[0]
    if kind is DocumentKind.OPENAPI_3 and is_later_than_30(document):
        lowered, more = as_openapi_30(document)
        return RecognisedInput(kind, (lowered,), (*losses, *more))
    if kind is None:
        raise NoDocument("neither Swagger 2.0, OpenAPI 3.0 nor CustomResourceDefinitions")
    return RecognisedInput(kind, documents, tuple(losses))


@dataclass(slots=True)
class _Reading:
    """Parses bytes of any form. ``is_manifest`` selects the YAML version: guessed first, and None if the
    bytes are not YAML."""

    data: bytes
    limits: Limits
    is_manifest: bool | None = None
    losses: list[Loss] = field(default_factory=list)

    def documents(self) -> tuple[Document, ...]:
        if self.data[:1] == b"{":
            return self._json()
        # Importing the other encodings takes longer than parsing most JSON documents.
        from specmux_converters import codecs
        from specmux_converters.codecs import protobuf_v2

        media_type = codecs.recognise(self.data)
        if media_type == media_types.JSON:
            return self._json()
        if media_type == media_types.PROTOBUF_V2:
            return (protobuf_v2.decode(self.data, limits=self.limits),)
        if media_type is not None and media_type in FORMS:
            return (codecs.decode(self.data, media_type, limits=self.limits),)
        if media_type is not None:
            return (self._parse_envelope(),)
        return self._yaml()

    def _parse_envelope(self) -> Document:
        """Parse an object in a Protobuf envelope whose content is JSON or CBOR."""
        from specmux_converters.codecs.object_envelope import open_envelope

        envelope = open_envelope(self.data, limits=self.limits)
        if isinstance(envelope.value, dict):
            return envelope.value
        name = f"{envelope.kind} of {envelope.api_version}"
        raise InvalidDocument(f"a Kubernetes object in Protobuf ({cut(name)}), which is no OpenAPI document")

    def _json(self) -> tuple[Document, ...]:
        """A YAML flow mapping also starts with a brace; the JSON error is the more useful one."""
        try:
            return (parse(self.data, limits=self.limits, losses=self.losses),)
        except InvalidDocument as refusal:
            try:
                return self._yaml()
            except InvalidDocument:
                raise refusal from None

    def _yaml(self) -> tuple[Document, ...]:
        from specmux_converters.yaml import parse_yaml_stream

        if self.is_manifest is None:
            self.is_manifest = _CRD.encode() in self.data
        return parse_yaml_stream(
            self.data, limits=self.limits, is_manifest=self.is_manifest, losses=self.losses
        )


def _items(document: Document, depth: int = 0) -> list[Document]:
    """The manifests in a document. Items of an apiserver's list do not state their kind."""
    items, kind = document.get("items"), document.get("kind")
    if not isinstance(items, list) or kind not in ("List", _CRD_LIST) or depth > _MOST_NESTED:
        return [document]
    said = {"apiVersion": document.get("apiVersion"), "kind": _CRD} if kind == _CRD_LIST else {}
    objects = [{**said, **item} for item in items if isinstance(item, dict)]
    return [each for item in objects for each in _items(item, depth + 1)]
