"""The media types that documents have on the wire, each with the one spelling we answer in."""

from __future__ import annotations

from typing import Final, NewType

MediaType = NewType("MediaType", str)

JSON: Final = MediaType("application/json")
JSON_SCHEMAS: Final = MediaType("application/json;profile=schemas")
JSON_COMPONENTS: Final = MediaType("application/json;profile=components")
"""Smaller forms of JSON (``profiles``)."""

CBOR: Final = MediaType("application/cbor")
PROTOBUF: Final = MediaType("application/com.github.proto-openapi.spec.v3.v1.0+protobuf")

PROTOBUF_V2: Final = MediaType("application/com.github.proto-openapi.spec.v2.v1.0+protobuf")
"""Swagger 2.0 as gnostic's openapi.v2.Document; what old apiservers serve at /openapi/v2."""

KUBERNETES_PROTOBUF: Final = MediaType("application/vnd.kubernetes.protobuf")
"""Objects, in an envelope that says their kind (``codecs.objects.envelope``)."""

ENVELOPE_MAGIC: Final = b"k8s\0"
"""What such an envelope begins with."""

SELF_DESCRIBED_CBOR: Final = b"\xd9\xd9\xf7"
"""What CBOR begins with that says so itself (RFC 8949 3.4.6)."""

ALIASES: Final = {
    # A media type may hold no "@" (RFC 6838 4.2): Kubernetes renamed it, clients still send the old one.
    "application/com.github.proto-openapi.spec.v3@v1.0+protobuf": PROTOBUF,
    "application/com.github.proto-openapi.spec.v2@v1.0+protobuf": PROTOBUF_V2,
}
"""Other spellings that are read, never written."""
