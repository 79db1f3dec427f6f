"""Pieces as JSON: a Swagger 2.0 document is joined from bytes, so a changed document costs only its own
part."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

import orjson

from specmux_converters.document import DEFAULT_LIMITS, Document, Limits, canonical
from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.to_swagger2.conversion import ReleaseMemo, join_pieces, one_definition, piece_of


@dataclass(frozen=True, slots=True)
class EncodedPiece:
    """Canonical JSON of the part of a Swagger 2.0 document that comes from one v3 document."""

    frame: Document = field(repr=False)
    members: Mapping[str, Mapping[str, bytes]] = field(repr=False)
    """``paths``, ``definitions`` and ``parameters``: by name, the name and its value."""
    losses: int

    @property
    def size(self) -> int:
        return sum(len(text) for members in self.members.values() for text in members.values())


_MEMBERS = ("definitions", "parameters", "paths")


def encode_piece(
    document: Document, *, limits: Limits = DEFAULT_LIMITS, memo: ReleaseMemo | None = None
) -> EncodedPiece:
    """Encodes for the ``kubernetes`` profile. ``memo``: results of earlier documents. Raises InvalidDocument,
    LimitExceeded."""
    memo = memo or ReleaseMemo()
    piece = piece_of(document, limits=limits, memo=memo)
    made = join_pieces({"": piece}, known=memo.parameters)
    frame = {key: value for key, value in made.document.items() if key not in _MEMBERS}
    members = {
        key: {name: _member(name, value) for name, value in made.document.get(key, {}).items()}
        for key in ("parameters", "paths")
    }
    definitions = {}
    for name, value in piece.definitions.items():
        text = memo.texts.get(id(value))
        if text is None:
            text = memo.texts[id(value)] = _member(name, value)
        definitions[name] = text
    return EncodedPiece(frame, {"definitions": definitions, **members}, len(made.losses))


def join_json(pieces: Mapping[str, EncodedPiece]) -> bytes:
    """The canonical JSON of ``conversion.join_pieces`` for the same documents, without its losses."""
    frame: Document = {}
    found: dict[str, dict[str, bytes]] = {key: {} for key in _MEMBERS}
    for _, piece in sorted(pieces.items()):
        frame = {**piece.frame, **frame}
        for key, members in piece.members.items():
            into = found[key]
            for name, text in members.items():
                first = into.setdefault(name, text)
                if first != text and key == "definitions":
                    into[name] = _member(name, one_definition(_value(first, name), _value(text, name)))
    parts = {key: [_member(key, value)] for key, value in {**_EMPTY, **frame}.items()}
    parts |= {key: _members(key, members) for key, members in found.items() if members or key != "parameters"}
    # A single join: a whole release has megabytes, and every intermediate join would copy them.
    texts = [text for key in sorted(parts) for text in parts[key]]
    texts[0] = b"{" + texts[0]
    texts[-1] += b"}"
    return b",".join(texts)


_EMPTY = {"swagger": "2.0", "info": {"title": "", "version": ""}}


def _member(name: str, value: Any) -> bytes:
    return canonical(name) + b":" + canonical(value)


def _value(member: bytes, name: str) -> Document:
    value: Document = orjson.loads(b"{" + member + b"}")[name]
    return value


def _members(key: str, members: Mapping[str, bytes]) -> list[bytes]:
    """The members of an object, to be joined by commas."""
    texts = [members[name] for name in sorted(members)]
    if not texts:
        return [_member(key, {})]
    texts[0] = canonical(key) + b":{" + texts[0]
    texts[-1] += b"}"
    return texts
