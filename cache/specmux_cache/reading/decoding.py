"""Documents from bytes: checked, decoded, read-only, and the last few cached.

Invariant: a returned document cannot be modified, since later callers get the same object.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NoReturn

import orjson

from specmux_cache.http.media_types import CBOR, JSON, JSON_SCHEMAS, PROTOBUF
from specmux_converters.document import DEFAULT_LIMITS, Document
from specmux_converters.errors import ConverterError, LimitExceeded

LIMITS: Final = DEFAULT_LIMITS
DEPTH_MAX: Final = LIMITS.max_depth


class ReadOnlyDict(dict[str, Any]):
    """A dict that raises TypeError when modified; ``copy.deepcopy`` returns an ordinary one."""

    __slots__ = ()

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("this document is shared: copy what you want to change")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[type[dict[str, Any]], tuple[dict[str, Any]]]:
        return dict, (dict(self),)  # any copy is an ordinary dict


class ReadOnlyList(list[Any]):
    """A list that raises TypeError when modified; ``copy.deepcopy`` returns an ordinary one."""

    __slots__ = ()

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("this document is shared: copy what you want to change")

    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = clear = extend = insert = pop = remove = reverse = sort = _refuse

    def __reduce__(self) -> tuple[type[list[Any]], tuple[list[Any]]]:
        return list, (list(self),)


def check_document(body: bytes, media_type: str) -> None:
    """Raises ValueError for a body that is not an object of this media type. Protobuf is checked
    superficially."""
    if media_type == PROTOBUF:
        if not body:
            raise ValueError("the document is empty")
        return
    decode(body, media_type)


def decode(body: bytes, media_type: str) -> Document:
    """The JSON tree. Raises ValueError; always for Protobuf, whose schema this package does not have."""
    if media_type in (JSON, JSON_SCHEMAS):
        try:
            LIMITS.check_values(body)
            tree = orjson.loads(body)
        except LimitExceeded as error:
            raise ValueError(f"the document has {error.reason}") from error
        except orjson.JSONDecodeError as error:
            raise ValueError("the document is not JSON") from error
    elif media_type == CBOR:
        from specmux_converters.codecs import cbor

        try:
            tree = cbor.decode_value(body, limits=LIMITS)
        except ConverterError as error:
            raise ValueError(f"the document is not CBOR as Kubernetes writes it: {error}") from error
    else:
        raise ValueError("only JSON and CBOR are decoded")
    if not isinstance(tree, dict):
        raise ValueError("the document is not an object")
    return tree


def read_document(body: bytes, media_type: str) -> Document:
    """``decode``, read-only. Raises ValueError, also beyond DEPTH_MAX levels."""
    document: Document = _read_only(decode(body, media_type), DEPTH_MAX)
    return document


def _read_only(tree: Any, depth: int) -> Any:
    if isinstance(tree, dict):
        kind: Callable[[Any], Any] = ReadOnlyDict
    elif isinstance(tree, list):
        kind = ReadOnlyList
    else:
        return tree
    if depth == 0:
        raise ValueError("the document is nested too deeply")
    if kind is ReadOnlyDict:
        return kind({name: _read_only(value, depth - 1) for name, value in tree.items()})
    return kind([_read_only(value, depth - 1) for value in tree])
