"""The documents of one server, through the client's cache: only those that are asked for are fetched.

Without a proxy that takes neither event loop nor HTTP library; offline nothing that asks is even imported.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from specmux_aggregator.api_discovery.aggregated import API_VERSIONS, parse_aggregated
from specmux_aggregator.api_discovery.parsing import BadList
from specmux_aggregator.console import announce_wait, warn
from specmux_aggregator.errors import NotThere, SourceError, SourceUnreachable
from specmux_cache.errors import (
    BadAnswer,
    CacheError,
    GroupVersionNotFound,
    MediaTypeRefused,
    NotCached,
    RedirectRefused,
    RequestError,
    ServerUnreachable,
    UnexpectedStatus,
)
from specmux_cache.reading.options import CacheOptions
from specmux_cache.sync import SchemaCache
from specmux_converters.document import DEFAULT_LIMITS, Document, DocumentKind, kind_of, parse
from specmux_converters.errors import ConverterError, InvalidDocument
from specmux_converters.group_versions import GroupVersion, split
from specmux_converters.lower_openapi31 import as_openapi_30, is_later_than_30
from specmux_converters.resources import Resources
from specmux_tools.kinds import DocumentSet
from specmux_tools.sources.access import access_of
from specmux_tools.sources.options import SourceOptions
from specmux_tools.sources.source import LoadedDocuments, UnreadSource

ROOT_TTL: Final = 2.0
"""Seconds for which one command, and the next one of a script, trusts the list of documents."""

GROUP_VERSIONS_MAX: Final = 10_000

_DISCOVERY: Final = {
    "Accept": ", ".join(
        f"application/json;g={group};v={version};as=APIGroupDiscoveryList"
        for group, version in (each.split("/") for each in API_VERSIONS)
    )
    + ", application/json"
}


@contextmanager
def open_server(options: SourceOptions) -> Iterator[ServerSource]:
    """Raises SourceError, SourceUnreachable."""
    with open_client(options, root_ttl=ROOT_TTL, background=False) as client:
        yield ServerSource(client, where=str(client.server))


@contextmanager
def open_client(
    options: SourceOptions, *, partition: str | None = None, root_ttl: float = 0.0, background: bool = True
) -> Iterator[SchemaCache]:
    """The client of the server that is meant. ``partition``: instead of the context's or the credentials'.
    ``root_ttl``: seconds for which the list of documents is trusted.

    Raises SourceError.
    """
    access = access_of(options)
    made = CacheOptions(
        directory=options.directory_of_cache,
        partition=partition or access.partition,
        offline=options.offline,
        root_ttl=root_ttl,
        timeout=options.request_timeout,
    )
    try:
        client = SchemaCache(access.url, made, warn=warn, background=background, **access.arguments)
    except ValueError as error:
        raise SourceError(f"{access.url}: {error}") from error
    with client:
        yield client


class ServerSource:
    """One server; one that publishes Swagger 2.0 alone is converted."""

    def __init__(self, cache: SchemaCache, *, where: str) -> None:
        self.where = where
        self._cache = cache
        self._converted: Mapping[GroupVersion, Document] | None = None
        self._swagger_body = b""
        self._has_told = False

    @property
    def kept_as(self) -> tuple[str, str]:
        return str(self._cache.server), self._cache.partition

    def refresh(self) -> ServerSource:
        if self._converted is None:  # its documents are asked for by hash, and kept nowhere but in the cache
            return self
        with _failures(self.where):
            answer = self._cache.resource("/openapi/v2", headers={"Accept": "application/json"})
        return self if answer.body == self._swagger_body else ServerSource(self._cache, where=self.where)

    def state(self) -> str:
        hashes = self.hashes()
        told = "\n".join(f"{key} {hash}" for key, hash in sorted(hashes.items()))
        return hashlib.sha256(told.encode()).hexdigest() if all(hashes.values()) else ""

    def hashes(self) -> Mapping[GroupVersion, str]:
        known = self.group_versions()
        if self._converted is not None:
            return dict.fromkeys(known, "")
        with _failures(self.where):
            documents = self._cache.paths().documents
        return {GroupVersion(key): document.hash for key, document in documents.items()}

    def group_versions(self) -> tuple[GroupVersion, ...]:
        with _failures(self.where):
            try:
                return tuple(GroupVersion(key) for key in self._cache.paths().documents)
            except UnexpectedStatus as error:
                if error.status != 404:
                    raise
                return tuple(sorted(self._swagger()))

    def load(
        self, group_versions: Collection[GroupVersion] | None = None, *, schemas_only: bool = False
    ) -> LoadedDocuments:
        media = "schemas" if schemas_only else "json"
        known = self.group_versions()
        wanted = known if group_versions is None else tuple(key for key in known if key in group_versions)
        if self._converted is not None:
            return LoadedDocuments(DocumentSet({key: self._converted[key] for key in wanted}))
        documents: dict[GroupVersion, Document] = {}
        unread: list[UnreadSource] = []
        absent: NotCached | None = None
        with _failures(self.where):
            if len(wanted) > 1:
                self._cache.prefetch(wanted, media=media)
        for key in wanted:
            try:
                documents[key] = self._document(key, media)
            except (CacheError, ConverterError) as error:
                unread.append(UnreadSource(key, str(error)))
                absent = error if isinstance(error, NotCached) else absent
        if not documents and absent is not None:
            with _failures(self.where):
                raise absent
        if not documents and (unread or group_versions is None):
            reason = unread[0] if unread else "it publishes none"
            raise SourceUnreachable(f"{self.where}: not one document: {reason}")
        return LoadedDocuments(DocumentSet(documents), tuple(unread))

    def resources(self) -> Mapping[GroupVersion, Resources]:
        """The resources of its discovery; read off its documents where it has no aggregated discovery."""
        found: dict[GroupVersion, Resources] = {}
        try:
            for path in ("/api", "/apis"):
                answer = self._cache.resource(path, headers=_DISCOVERY)
                if answer.status != 200:
                    return self._synthesise_resources()
                lists = parse_aggregated(
                    answer.body, limits=DEFAULT_LIMITS, max_group_versions=GROUP_VERSIONS_MAX
                )
                found.update(lists.resources)
        except (BadList, CacheError):
            return self._synthesise_resources()
        # A service that has just started lists nothing yet.
        return found or self._synthesise_resources()

    def _synthesise_resources(self) -> Mapping[GroupVersion, Resources]:
        from specmux_converters.synthesis import resources_of

        loaded = self.load()
        if loaded.unread:
            from specmux_converters.counted_nouns import counted

            warn(f"{counted(len(loaded.unread), 'document')} not read: {loaded.unread[0]}")
        return {
            key: resources_of(document, key)
            for key, document in loaded.documents.documents.items()
            if split(key) is not None
        }

    def _document(self, key: GroupVersion, media: str) -> Document:
        schema = self._cache.schema(key, media=media)
        if schema.stale and not self._has_told:
            self._has_told = True
            warn(f"{self.where} did not confirm it: documents of {schema.age:.0f} s ago are used")
        document = parse(schema.body)
        if kind_of(document) is not DocumentKind.OPENAPI_3:
            raise InvalidDocument("no OpenAPI 3.0")
        if not is_later_than_30(document):
            return document
        return as_openapi_30(document)[0]

    def _swagger(self) -> Mapping[GroupVersion, Document]:
        """The documents that its Swagger 2.0 converts to. Raises SourceUnreachable where it has none."""
        if self._converted is None:
            from specmux_converters.from_swagger2.conversion import convert
            from specmux_converters.recognise import recognise

            answer = self._cache.resource("/openapi/v2", headers={"Accept": "application/json"})
            if answer.status != 200:
                raise SourceUnreachable(
                    f"{self.where}: no apiserver: it has neither /openapi/v3 nor /openapi/v2; "
                    "check the URL, its path included"
                )
            try:
                found = recognise(answer.body)
                if found.kind is not DocumentKind.SWAGGER_2:
                    raise SourceUnreachable(f"{self.where}: its /openapi/v2 is no Swagger 2.0")
                self._converted = convert(found.documents[0]).documents
                self._swagger_body = answer.body
            except ConverterError as error:
                raise SourceUnreachable(f"{self.where}: /openapi/v2: {error}") from error
        return self._converted


@contextmanager
def _failures(where: str) -> Iterator[None]:
    """The client's errors as ours, with what to do about them; and what is waited for, if that takes long."""
    try:
        with announce_wait(where):
            yield
    except NotCached as error:
        raise SourceError(
            f"{where}: {error.name} is not in the cache; run the command once without --offline, "
            'or fill the cache with "specmux cache warm"'
        ) from error
    except GroupVersionNotFound as error:
        raise NotThere(str(error)) from error
    except RequestError as error:
        raise SourceUnreachable(f"{error}{next_step(error)}") from error
    except CacheError as error:
        raise SourceError(str(error)) from error


def _connection_step(reason: str) -> str | None:
    from specmux_cache.http.connection_faults import (  # brings TLS, which a warm cache does without
        proxy_step,
        tls_step,
    )

    return tls_step(reason) or proxy_step(reason)


def next_step(error: CacheError) -> str:
    match error:
        case UnexpectedStatus(status=401):
            return "; log in again, or give a token with --token-file"
        case UnexpectedStatus(status=403):
            return "; the user needs the ClusterRole system:discovery, or another --context"
        case MediaTypeRefused():
            return "; it has the document in other media types only: omit --media"
        case BadAnswer() if "text/html" in error.reason:
            return "; a login page? log in, or check the URL, its path included"
        case BadAnswer():
            return "; check the URL, its path included: it has to be an apiserver's or a specmux service's"
        case ServerUnreachable() if error.url.startswith("http:") and "closed" in error.reason:
            return "; if the server speaks TLS, its URL begins with https://"
        case ServerUnreachable() if (step := _connection_step(error.reason)) is not None:
            return f"; {step}"
        case ServerUnreachable() if "refused" in error.reason:
            return "; is it running, and is this its port?"
        case ServerUnreachable() if "not resolve" in error.reason:
            return "; check its spelling, and the network"
        case ServerUnreachable() if "no connection within" in error.reason:
            return "; does a firewall stand between, or is this its address?"
        case ServerUnreachable() if "no whole answer within" in error.reason:
            return "; --request-timeout waits longer"
        case RedirectRefused() if error.target:
            return f"; name {error.target}, or log in there"
        case NotCached():
            return '; run it once without --offline, or fill the cache with "specmux cache warm"'
    return ""
