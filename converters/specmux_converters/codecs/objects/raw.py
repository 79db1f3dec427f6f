"""Values embedded in an object as bytes of another encoding (runtime.RawExtension, runtime.Unknown).

The encoding is stated by a content type, or recognized by the first byte, as in apimachinery
(pkg/runtime/extension.go); a value in another encoding than requested is converted.
"""

from __future__ import annotations

from typing import Any, Final

import orjson

from specmux_converters.codecs.objects import cbor
from specmux_converters.document import DEFAULT_LIMITS, Limits, parse
from specmux_converters.errors import InvalidDocument, cut
from specmux_converters.media_types import CBOR, JSON, SELF_DESCRIBED_CBOR, MediaType, essence

_JSON_BEGINNINGS: Final = b'\t\r\n {[ntf"-0123456789'


def guess_content_type(raw: bytes) -> MediaType:
    """Raises InvalidDocument if ``raw`` starts neither as JSON nor as self-described CBOR."""
    if raw.startswith(SELF_DESCRIBED_CBOR):
        return CBOR
    if raw[:1] and raw[:1] in _JSON_BEGINNINGS:
        return JSON
    raise InvalidDocument("neither JSON nor self-described CBOR")


def read_raw(raw: bytes, *, content_type: str = "", limits: Limits = DEFAULT_LIMITS) -> Any:
    """The value in ``raw``; without a ``content_type`` its first byte decides. Raises InvalidDocument for
    types other than JSON and CBOR, LimitExceeded."""
    match essence(content_type) or guess_content_type(raw):
        case media_type if media_type == CBOR:
            return cbor.decode_object(raw, limits=limits)
        case media_type if media_type == JSON:
            whole = parse(b'{"":' + raw + b"}", limits=limits)  # any value is accepted, not just an object
            if len(whole) == 1:
                return whole[""]
            raise InvalidDocument("not JSON: a comma follows the value")
    raise InvalidDocument(f"the content type {cut(content_type)} is neither {JSON} nor {CBOR}")


def rewrite_raw(
    raw: bytes, media_type: MediaType, *, content_type: str = "", limits: Limits = DEFAULT_LIMITS
) -> bytes:
    """``raw`` in ``media_type``, JSON or CBOR; unchanged if it already has that encoding. Raises
    ConverterError."""
    if (content_type or guess_content_type(raw)) == media_type:
        return raw
    value = read_raw(raw, content_type=content_type, limits=limits)
    if media_type == CBOR:
        return cbor.encode_object(value)
    return orjson.dumps(cbor.without_bytes(value))
