"""The answer to a request below ``/schemas``, given a Snapshot. Pure.

It is either complete, or ``Make``: a file whose bytes have to be found or made. The tag follows from the
inputs of the file, so an unchanged file is recognized without making it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from specmux_aggregator.http.messages import Coding, ETag, Request
from specmux_aggregator.http.negotiation import coding_for
from specmux_aggregator.http.prepared_answer import NO_STORE, PreparedAnswer, Representation, prepare
from specmux_aggregator.model.snapshot import DocumentKey, Snapshot
from specmux_converters.errors import cut
from specmux_converters.group_versions import GroupVersion, split
from specmux_converters.json_schema.forms import EDITION
from specmux_converters.json_schema.paths import (
    ModelsFile,
    Wanted,
    WholeFile,
    documents_needed,
    file_wanted_at,
    is_of_release,
)

PREFIX: Final = "/schemas/"
TOKEN_PREFIX: Final = "/schemas/token/"  # noqa: S105  # a path
ROUTE: Final = "schemas"

RETRY: Final = ("Retry-After", "1")

_PINNED: Final = "hash/"
_SCHEMA: Final = "application/schema+json"
_OPENAPI: Final = "application/json"
_YAML: Final = "application/yaml"  # RFC 9512
_TEXT: Final = ("Content-Type", "text/plain; charset=utf-8")
ANY_ORIGIN: Final = ("Access-Control-Allow-Origin", "*")


@dataclass(frozen=True, slots=True)
class Tree:
    """The files of one moment: their documents, and the hash that identifies them."""

    keys: dict[GroupVersion, DocumentKey]
    absent: tuple[str, ...]
    """Backends that have not answered yet."""
    hash: str
    unheard: frozenset[GroupVersion] | None = frozenset()
    """Group-versions that those may have; None: any."""

    def may_yet_have(self, file: Wanted) -> bool:
        """Whether a backend that has not answered may have documents for the file."""
        if self.unheard is None:
            return True
        return bool(self.unheard if isinstance(file, WholeFile) else file.documents(self.unheard))


@dataclass(frozen=True, slots=True)
class Make:
    """A file, its documents, and its header fields."""

    file: Wanted
    keys: tuple[DocumentKey, ...]
    representation: Representation


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaAccess:
    """Who may have the answers and store them, and the URL that they state."""

    is_private: bool = False
    is_anonymous: bool = True
    base: str = ""
    """URL of the files, for the references between them; "" for relative ones."""

    @property
    def fields(self) -> tuple[tuple[str, str], ...]:
        return (ANY_ORIGIN,) if self.is_anonymous else ()


def tree_of(snapshot: Snapshot) -> Tree:
    """Replicas with equal documents have equal hashes."""
    keys = {key: entry.key for key, entry in snapshot.entries.items() if split(key) is not None}
    unheard = {
        name: each.backend.group_versions
        for name, each in snapshot.observations.items()
        if not each.attempted or (each.failure is not None and not each.offers)
    }
    theirs = None if not snapshot.observations or None in unheard.values() else frozenset[GroupVersion]()
    if theirs is not None:
        theirs = theirs.union(*filter(None, unheard.values()))
    digest = _digest(f"{key}={keys[key].hash}" for key in sorted(keys))
    return Tree(keys, tuple(sorted(unheard)), digest, theirs)


def decide(
    tree: Tree, request: Request, path: str, *, release: str | None, access: SchemaAccess
) -> PreparedAnswer | Make:
    """``path``: the part after ``/schemas/``, without a token. ``release``: that of the cluster."""
    is_pinned = path.startswith(_PINNED)
    if is_pinned:
        pinned, _, path = path.removeprefix(_PINNED).partition("/")
        if pinned != tree.hash:
            return plain_answer(
                request, 410, f"that tree is not held; the current one is {tree.hash}", access=access
            )
    file = file_wanted_at(path)
    if file is None or not is_of_release(file.release, release):
        return plain_answer(request, 404, f"no schema has the path {cut(path)}", access=access)
    keys = tuple(tree.keys[key] for key in documents_needed(file, tree.keys))
    if not keys and (not isinstance(file, WholeFile) or tree.may_yet_have(file)):
        return without_kind(tree, file, request, f"no document has a kind for {cut(path)}", access=access)
    coding = coding_for(request.accept_encoding)
    return Make(
        file,
        keys,
        Representation(
            content_type=_content_type(file),
            etag=tag_of(file, keys, tree, coding),
            route=ROUTE,
            format="json",
            coding=coding,
            is_immutable=is_pinned,
            is_private=access.is_private,
            is_head=request.method == "HEAD",
            fields=access.fields,
        ),
    )


def _content_type(file: Wanted) -> str:
    if isinstance(file, ModelsFile) and file.form.dialect == "openapi":
        return _OPENAPI
    return _YAML if file == WholeFile("crds") else _SCHEMA


def without_kind(
    tree: Tree, file: Wanted, request: Request, text: str, *, access: SchemaAccess
) -> PreparedAnswer:
    """404 with ``text``; 503 while a backend that may have the kind has not answered yet. A validator takes a
    404 as a reason to look elsewhere, or to accept the object."""
    if not tree.may_yet_have(file):
        return plain_answer(request, 404, text, access=access)
    text = "a backend that may have the document has not answered yet"
    return plain_answer(request, 503, text, access=access, fields=[RETRY])


def tag_of(file: Wanted, keys: Iterable[DocumentKey], tree: Tree, coding: Coding) -> ETag:
    """The tag of a file, from its inputs: the rules, name and form, its documents and, for a file of all
    documents, what is missing."""
    parts = [repr(file), *(f"{key.group_version}={key.hash}" for key in keys)]
    if isinstance(file, WholeFile):
        parts += [tree.hash, *tree.absent]
    suffix = "" if coding is Coding.IDENTITY else f"-{coding.value}"
    return ETag(f'"{_digest(parts)}{suffix}"')


def plain_answer(
    request: Request,
    code: int,
    text: str,
    *,
    access: SchemaAccess,
    fields: Iterable[tuple[str, str]] = (),
) -> PreparedAnswer:
    """One plain line, since editors show it unchanged."""
    head = [_TEXT, NO_STORE, *access.fields, *fields]
    is_head = request.method == "HEAD"
    return prepare(code, head, f"{text}\n".encode(), is_head=is_head, route=ROUTE, format="text")


def _digest(parts: Iterable[str]) -> str:
    return sha256("\n".join([EDITION, *parts]).encode()).hexdigest()[:40]
