"""The forms of a document, in one table: negotiation, answers, the client and ``specmux convert`` read it.

A new form is a media type (``media_types``), a codec module, a row here, and a decoder of the client
(``specmux_cache.reading.decoding``).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.media_types import CBOR, JSON, PROTOBUF, MediaType


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
