"""CBOR bodies (KEP-4222), and the index of a field, which an apiserver reports instead of its name."""

from __future__ import annotations

from typing import Any, Final

from specmux_converters.document import Limits
from specmux_converters.errors import ConverterError
from specmux_tools.validation.decoding.json_reader import MOST_DEPTH
from specmux_tools.validation.errors import Undecodable

_LIMITS: Final = Limits(max_depth=MOST_DEPTH)
_ARGUMENT_BYTES: Final = {24: 1, 25: 2, 26: 4, 27: 8}
_ARRAY, _MAP, _TAG = 4, 5, 6
_TEXTS: Final = (2, 3)
_GROUP_VERSION_KIND: Final = "unable to determine group/version/kind: "


def read_cbor(data: bytes) -> Any:
    """Raises Undecodable; duplicate keys have an apiserver's text, other errors our own.

    Each byte that is not UTF-8 becomes U+FFFD, as Go's patterns and lengths see it.
    """
    from specmux_converters.codecs import object_cbor  # imports all codecs, which few bodies need

    try:
        return object_cbor.without_bytes(object_cbor.decode_object(data, limits=_LIMITS))
    except ConverterError as error:
        reason = error.reason if error.reason.startswith("cbor: ") else f"cbor: {error.reason}"
        raise Undecodable(_GROUP_VERSION_KIND + reason) from error


def unknown_field_text(data: bytes, path: tuple[str | int, ...]) -> str:
    """The only error of strict decoding: the index in its map of the field at ``path``, as sent."""
    index = _Scan(data).index_of(path)
    return f"cbor: found unknown field at map element index {index}"


class _Scan:
    """Walks over heads of definite and indefinite length (RFC 8949, section 3); decodes only keys."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def index_of(self, path: tuple[str | int, ...]) -> int:
        """0 if there is no such path."""
        index = 0
        for part in path:
            major, count = self._head()
            while major == _TAG:
                major, count = self._head()
            index = 0
            while count is None or index < count:
                if self._ends(count):
                    return 0
                if part == (self._text() if major == _MAP else index):
                    break
                self._pass()
                index += 1
        return index

    def _pass(self) -> None:
        """Skip an item, which is known to be complete and not too deep."""
        major, count = self._head()
        while major == _TAG:
            major, count = self._head()
        if major in _TEXTS:
            self._pass_text(count)
        index = 0
        while major in (_ARRAY, _MAP) and (count is None or index < count) and not self._ends(count):
            if major == _MAP:
                self._pass()
            self._pass()
            index += 1

    def _ends(self, count: int | None) -> bool:
        if count is None and self._data[self._at] == 0xFF:
            self._at += 1
            return True
        return False

    def _text(self) -> str:
        major, count = self._head()
        if major not in _TEXTS:
            return f"#{major}:{count}"
        start = self._at
        self._pass_text(count)
        return self._data[start : self._at].decode("utf-8", "replace")

    def _pass_text(self, count: int | None) -> None:
        if count is not None:
            self._at += count
            return
        while not self._ends(None):
            self._pass_text(self._head()[1])

    def _head(self) -> tuple[int, int | None]:
        """Major type and argument; None for an indefinite length."""
        byte = self._data[self._at]
        self._at += 1
        info = byte & 0x1F
        if info < 24:
            return byte >> 5, info
        if info == 31:
            return byte >> 5, None
        size = _ARGUMENT_BYTES.get(info, 0)
        argument = int.from_bytes(self._data[self._at : self._at + size], "big")
        self._at += size
        return byte >> 5, argument
