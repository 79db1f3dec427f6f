"""A stored document as dictionary for its successor (RFC 9842): what a server permits, what a request says of
it, and what is made of the answer. Pure.

Invariant: what an answer is made into has the hash that was asked for, where hashes of this server follow
from bytes, and the checksum of its frame elsewhere.
"""

from __future__ import annotations

import hashlib
import re
from base64 import b64encode
from dataclasses import replace
from typing import Final

import zstandard

from specmux_cache.access.urls import is_loopback
from specmux_cache.errors import BadAnswer
from specmux_cache.http.answer_reader import ACCEPT_ENCODING, DCZ, ZSTD_WINDOW, unzstd, without_coding
from specmux_cache.http.caching import Answer, Fields, list_members
from specmux_cache.http.media_types import JSON
from specmux_cache.http.server import Server
from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.lazy.patterns import pattern

HEADER: Final = bytes.fromhex("5e2a4d1820000000")
"""The bytes before the SHA-256 of the dictionary in a body (RFC 9842 5)."""
WINDOW_MAX: Final = 128 * 1024 * 1024
ID_MAX: Final = 1024

_STRING: Final = r'"(?:[^"\\]|\\["\\])*"'
_MEMBER: Final = pattern(
    rf'\s*([a-z*][a-z0-9_.*-]*)(?:=({_STRING}|\((?:[^()"]|{_STRING})*\)|[^\s,;"()]+))?'
    rf'(?:\s*;\s*[a-z*][a-z0-9_.*-]*(?:=(?:{_STRING}|[^\s,;"()]+))?)*\s*(?:,|$)'
)
"""A member of a dictionary of RFC 8941, its value, and parameters that mean nothing here."""


@dataclass(frozen=True, slots=True)
class UsableDictionary:
    """A stored document that its server wants to be used for the one that is requested."""

    body: bytes
    digest: str
    """SHA-256 of the body, hexadecimal."""
    hash: str
    """The server's, of this document."""
    media_type: str
    id: str
    """As it is sent; "" if it has none."""
    wanted: str
    """The server's hash of the document that is requested."""

    @property
    def fields(self) -> Fields:
        """The fields of a request that offer it (RFC 9842 2.2, 2.3)."""
        digest = b64encode(bytes.fromhex(self.digest)).decode()
        coding = ("accept-encoding", f"{ACCEPT_ENCODING}, {DCZ}")
        named = (("dictionary-id", self.id),) if self.id else ()
        return coding, ("available-dictionary", f":{digest}:"), *named

    def unpack(self, answer: Answer, limit: int, url: str) -> Answer:
        """The answer with the document, of at most ``limit`` bytes. Raises BadAnswer for ``url``."""
        try:
            return self._unpack(answer, limit)
        except (zstandard.ZstdError, ValueError, OverflowError, EOFError) as error:
            raise BadAnswer(f"its difference from a stored document is unusable: {error}", url=url) from error

    def _unpack(self, answer: Answer, limit: int) -> Answer:
        if list_members(answer.fields, "content-encoding") != (DCZ,):
            raise ValueError("the answer has another coding beside dcz")
        named = HEADER + bytes.fromhex(self.digest)
        if not answer.body.startswith(named):
            raise ValueError("the answer is made with another dictionary")
        packed = answer.body[len(named) :]
        window = min(max(ZSTD_WINDOW, len(self.body) * 5 // 4), WINDOW_MAX)
        body = unzstd(packed, limit, window=window, dictionary=self.body)
        is_proven = self._is_proven(body)
        if not is_proven and not zstandard.get_frame_parameters(packed).has_checksum:
            raise ValueError("nothing proves the document")
        return replace(without_coding(answer, body), is_delta=True, is_proven=is_proven)

    def _is_proven(self, body: bytes) -> bool:
        """Whether the body has the requested hash: Kubernetes' is the SHA-512 of the JSON. Raises ValueError
        if it has another, and the dictionary shows that this server's hashes are of that kind."""
        if self.media_type != JSON:
            return False
        if _sha512(body) == self.wanted.lower():
            return body.startswith(b"{") and body.endswith(b"}")
        if _sha512(self.body) == self.hash.lower():
            raise ValueError("the document has another hash than the requested one")
        return False


def is_secure(server: Server) -> bool:
    """Whether a server is where dictionaries may be used: HTTPS (RFC 9842 8), or this machine."""
    return server.scheme == "https" or is_loopback(server.authority.rpartition(":")[0].strip("[]"))


def permitted_id(field: str, target: str) -> str | None:
    """The id, as it is sent, of a dictionary that may be used for ``target``, a path and query in its
    directory; "" if it has none, None if it may not. ``field``: Use-As-Dictionary."""
    members: dict[str, str] = {}
    at = 0
    while at < len(field):
        member = _MEMBER.match(field, at)
        if member is None:  # RFC 8941 4.2: a malformed field is none
            return None
        members[member[1]] = member[2] or "?1"
        at = member.end()
    match, id_, kind = members.get("match", ""), members.get("id", '""'), members.get("type", "raw")
    if not (match.startswith('"') and id_.startswith('"')) or kind != "raw" or not field.isascii():
        return None
    if len(id_) > ID_MAX + 2 or not _matches(match[1:-1], *target.partition("?")[::2]):
        return None
    return id_ if id_ != '""' else ""


def _matches(match: str, path: str, query: str) -> bool:
    """Whether a URL pattern of letters and at most two wildcards matches. Any other is taken to match
    nothing, which costs no more than the dictionary."""
    if not match or re.search(r"[{}()\\:+#]|\*\?|\*.*\*.*\*", match):
        return False
    pathname, has_search, search = match.partition("?")
    if not pathname.startswith("/"):
        pathname = path[: path.rfind("/") + 1] + pathname
    return _is_like(path, pathname) and (not has_search or _is_like(query, search))


def _is_like(text: str, wild: str) -> bool:
    return re.fullmatch(".*".join(map(re.escape, wild.split("*"))), text) is not None


def _sha512(body: bytes) -> str:
    return hashlib.sha512(body).hexdigest()
