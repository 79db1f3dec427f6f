"""The media types of documents, each with the spelling used in answers, and the forms of a document in one
table, which negotiation, answers, the client and ``specmux convert`` read.

A new form is a media type, a codec module, a row of FORMS, and a decoder of the client
(``specmux_cache.reading.decoding``).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NewType

from specmux_converters.lazy.dataclasses import dataclass

MediaType = NewType("MediaType", str)

JSON: Final = MediaType("application/json")
JSON_SCHEMAS: Final = MediaType("application/json;profile=schemas")
JSON_COMPONENTS: Final = MediaType("application/json;profile=components")
"""Reduced forms of JSON (``profiles``)."""

CBOR: Final = MediaType("application/cbor")
PROTOBUF: Final = MediaType("application/com.github.proto-openapi.spec.v3.v1.0+protobuf")

PROTOBUF_V2: Final = MediaType("application/com.github.proto-openapi.spec.v2.v1.0+protobuf")
"""Swagger 2.0 as gnostic's openapi.v2.Document, served by old apiservers at /openapi/v2."""

KUBERNETES_PROTOBUF: Final = MediaType("application/vnd.kubernetes.protobuf")
"""Objects in an envelope that states their kind (``codecs.object_envelope``)."""

ENVELOPE_MAGIC: Final = b"k8s\0"
"""The first bytes of such an envelope."""

SELF_DESCRIBED_CBOR: Final = b"\xd9\xd9\xf7"
"""The first bytes of self-described CBOR (RFC 8949 3.4.6)."""

ALIASES: Final = {
    # A media type may not contain "@" (RFC 6838 4.2): Kubernetes renamed it, clients still send the old one.
    "application/com.github.proto-openapi.spec.v3@v1.0+protobuf": PROTOBUF,
    "application/com.github.proto-openapi.spec.v2@v1.0+protobuf": PROTOBUF_V2,
}
"""Other spellings, accepted but never sent."""


def essence(media_type: str) -> str:
    """Type and subtype in lower case, without parameters (RFC 9110 8.3.1)."""
    return media_type.partition(";")[0].strip().lower()


@dataclass(frozen=True, slots=True)
class DocumentForm:
    """A row. The codec is a module with ``encode`` and ``decode``, imported when it is used."""

    name: str
    """Short name: of options, of metric labels, and in ETags."""
    media_type: MediaType
    suffix: str
    """Suffix of files, with its dot."""
    codec: str
    is_text: bool = False
    is_of_roots: bool = True
    """Whether the root of discovery has this form too."""


FORMS: Final[Mapping[MediaType, DocumentForm]] = MappingProxyType(
    {
        form.media_type: form
        for form in (
            DocumentForm("json", JSON, ".json", "specmux_converters.codecs.plain_json", is_text=True),
            DocumentForm(
                "protobuf", PROTOBUF, ".pb", "specmux_converters.codecs.protobuf_v3", is_of_roots=False
            ),
            DocumentForm("cbor", CBOR, ".cbor", "specmux_converters.codecs.cbor"),
        )
    }
)
"""The forms by media type, the preferred one first."""
