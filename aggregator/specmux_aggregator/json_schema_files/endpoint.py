"""``/schemas``: JSON Schemas of all kinds, made at the first request in a process of their own, and cached.

A kind needs one document, a file of all kinds needs all documents; a document that is unavailable is named.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from specmux_aggregator.auth.token_file import INTERVAL, FollowedTokenFile
from specmux_aggregator.documents.repository import DocumentRepository
from specmux_aggregator.errors import WorkerFailed
from specmux_aggregator.http.messages import Coding, ETag, Request
from specmux_aggregator.http.prepared_answer import PreparedAnswer, deliver, evaluate_preconditions
from specmux_aggregator.json_schema_files.answers import (
    PREFIX,
    RETRY,
    TOKEN_PREFIX,
    Make,
    SchemaAccess,
    Tree,
    decide,
    plain_answer,
    tag_of,
    tree_of,
    without_kind,
)
from specmux_aggregator.model.backend import BackendName
from specmux_aggregator.model.snapshot import Snapshot
from specmux_aggregator.mounts import JSON_SCHEMAS, NamedFunction
from specmux_aggregator.reader.requests import WHOLE_SHARE
from specmux_aggregator.workers.built import FileContext, SchemaSource, Unencodable
from specmux_aggregator.workers.worker import Worker
from specmux_cache.reading.single_flight import SingleFlight
from specmux_converters.document import Limits
from specmux_converters.json_schema.paths import WholeFile
from specmux_converters.media_types import JSON
from specmux_converters.memory import ByteBounded

MISSING_SIZE: Final = 1024
"""Bytes that a file known not to exist counts as, so that their number is bounded."""

_JSON_SCHEMA: Final[NamedFunction[..., bytes | Unencodable | None]] = NamedFunction(JSON_SCHEMAS)

TOKEN_SHORTEST: Final = 16

DECISIONS_MAX: Final = 4096
"""Requests whose answer is cached, without its body."""

DECISION_MAX: Final = 512
"""Characters of the longest cached request."""

_NO_TOKEN: Final = "no schema has that path"  # noqa: S105  # what is told of a wrong one, as of any other path


class _KeptFile(NamedTuple):
    body: bytes | None
    """None for a file known not to exist."""


class _CatalogueRequest(NamedTuple):
    """The parts of a request that determine the decision."""

    method: str
    path: str
    accept_encoding: str | None
    release: str | None


@dataclass(frozen=True, slots=True)
class FileFailure:
    """Why there is no file now."""

    text: str


class SchemaFiles:
    """The endpoint. ``release``: that of the cluster, if known."""

    def __init__(
        self,
        snapshot: Callable[[], Snapshot],
        documents: DocumentRepository,
        worker: Worker,
        *,
        limits: Limits,
        access: SchemaAccess,
        max_bytes: int,
        release: Callable[[], str | None],
        tokens: FollowedTokenFile | None = None,
    ) -> None:
        self._snapshot = snapshot
        self._documents = documents
        self._worker = worker
        self._limits = limits
        self._access = access
        self._release = release
        self.tokens = tokens
        """Reloaded while ``tokens.run`` runs."""
        self.kept: ByteBounded[ETag, _KeptFile] = ByteBounded(
            max_bytes, size=lambda file: MISSING_SIZE if file.body is None else len(file.body)
        )
        self.made = 0
        """Number of files made."""
        self._flights: SingleFlight[ETag, tuple[ETag, bytes | None] | FileFailure] = SingleFlight()
        self._tree: tuple[int, Tree] | None = None
        self._decisions: dict[_CatalogueRequest, PreparedAnswer | Make] = {}
        """Decisions for the current tree, since programs repeat their requests."""

    @property
    def fields(self) -> tuple[tuple[str, str], ...]:
        """Header fields of every answer."""
        return self._access.fields

    def immediate(self, request: Request) -> PreparedAnswer | None:
        found = self._immediate(request)
        return None if found is None else self._limit_lifetime(found, request)

    async def respond(self, request: Request) -> PreparedAnswer:
        return self._limit_lifetime(await self._respond(request), request)

    def _limit_lifetime(self, prepared: PreparedAnswer, request: Request) -> PreparedAnswer:
        """An answer to a path with a token is cached no longer than the token is known to be valid."""
        if self.tokens is None or not request.path.startswith(TOKEN_PREFIX):
            return prepared
        until = time.monotonic() + INTERVAL
        return replace(prepared, good_until=min(until, prepared.good_until or until))

    def _immediate(self, request: Request) -> PreparedAnswer | None:
        decision = self._decide(request)
        if isinstance(decision, PreparedAnswer):
            return decision
        ready = evaluate_preconditions(decision.representation, request)
        return ready or self._recall_file(decision, request)

    async def _respond(self, request: Request) -> PreparedAnswer:
        decision = self._decide(request)
        if isinstance(decision, PreparedAnswer):
            return decision
        ready = evaluate_preconditions(decision.representation, request) or self._recall_file(
            decision, request
        )
        if ready is not None:
            return ready
        etag = decision.representation.etag
        tree = self._current_tree()
        made = await self._flights.run(etag, lambda: self._make(decision, tree))
        if isinstance(made, FileFailure):
            return plain_answer(request, 503, made.text, access=self._access, fields=[RETRY])
        tag, body = made
        if body is None:
            return self._answer_unknown(decision, tree, request)
        # A file that lacks unavailable documents is not the file of the requested tree.
        is_whole = tag == etag
        told_of = (
            decision.representation
            if is_whole
            else replace(decision.representation, etag=tag, is_immutable=False)
        )
        return deliver(told_of, body)

    async def close(self) -> None:
        await self._flights.close()

    def _decide(self, request: Request) -> PreparedAnswer | Make:
        path = request.path
        if path.startswith(TOKEN_PREFIX):
            token, _, path = path.removeprefix(TOKEN_PREFIX).partition("/")
            if self.tokens is None or token not in self.tokens.current:
                return plain_answer(request, 404, _NO_TOKEN, access=self._access)
        else:
            path = path.removeprefix(PREFIX)
        tree = self._current_tree()
        asked = _CatalogueRequest(request.method, path, request.accept_encoding, self._release())
        decision = self._decisions.get(asked)
        if decision is None:
            decision = decide(tree, request, path, release=asked.release, access=self._access)
            self._remember(asked, decision)
        return decision

    def _remember(self, asked: _CatalogueRequest, decision: PreparedAnswer | Make) -> None:
        if len(asked.path) + len(asked.accept_encoding or "") > DECISION_MAX:
            return
        if len(self._decisions) >= DECISIONS_MAX:
            self._decisions.clear()
        self._decisions[asked] = decision

    def _current_tree(self) -> Tree:
        snapshot = self._snapshot()
        if self._tree is None or self._tree[0] != snapshot.generation:
            self._tree = snapshot.generation, tree_of(snapshot)
            self._decisions.clear()
        return self._tree[1]

    def _recall_file(self, decision: Make, request: Request) -> PreparedAnswer | None:
        etag = decision.representation.etag
        kept = self.kept.get(etag)
        if kept is None:
            return None
        if kept.body is None:
            return self._answer_unknown(decision, self._current_tree(), request)
        return deliver(decision.representation, kept.body)

    def _answer_unknown(self, decision: Make, tree: Tree, request: Request) -> PreparedAnswer:
        text = "the documents have no kind of that name"
        return without_kind(tree, decision.file, request, text, access=self._access)

    async def _make(self, decision: Make, tree: Tree) -> tuple[ETag, bytes | None] | FileFailure:
        sources: list[SchemaSource] = []
        without: set[BackendName] = set()
        for key in decision.keys:
            body = await self._documents.obtain(key, JSON, Coding.IDENTITY)
            is_whole = isinstance(decision.file, WholeFile)
            if isinstance(body, bytes) and len(body) > WHOLE_SHARE.max_bytes and not is_whole:
                # A file of all kinds names it, once: this is asked for again and again.
                most = WHOLE_SHARE.max_bytes
                return FileFailure(f"the document has {len(body)} bytes, more than the {most} allowed")
            if isinstance(body, bytes):
                sources.append(SchemaSource(key.group_version, key.hash, body))
            elif is_whole:
                without.add(key.owner)
            else:
                return FileFailure(f"backend {key.owner} does not give its document now")
        absent = tuple(sorted({*tree.absent, *without}))
        made_of = replace(tree, absent=absent)
        etag = decision.representation.etag
        if without:
            kept = [key for key in decision.keys if key.owner not in without]
            etag = tag_of(decision.file, kept, made_of, decision.representation.coding)
        about = FileContext(tree=tree.hash, absent=absent, base=self._access.base)
        try:
            made = await self._worker.run(
                _JSON_SCHEMA,
                decision.file,
                sources,
                about,
                coding=decision.representation.coding,
                limits=self._limits,
            )
        except WorkerFailed as error:
            return FileFailure(f"the schema could not be made: {error}")
        if isinstance(made, Unencodable):
            return FileFailure(f"the schema could not be made: {made.reason}")
        self.made += 1
        self.kept.put(etag, _KeptFile(made))
        return etag, made


def parse_path_tokens(content: bytes) -> list[str]:
    """Tokens in paths, one per line, for programs such as editors that cannot send credentials. Raises
    ValueError, which repeats no token."""
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise ValueError("not UTF-8") from None
    tokens = [line.strip() for line in text.splitlines() if line.strip()]
    if not tokens:
        raise ValueError("has no token")
    for number, token in enumerate(tokens, 1):
        if len(token) < TOKEN_SHORTEST or not token.isascii() or not token.isalnum():
            raise ValueError(f"token {number}: want {TOKEN_SHORTEST} letters or digits or more")
    return tokens
