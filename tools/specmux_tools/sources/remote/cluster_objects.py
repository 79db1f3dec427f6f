"""Objects that a cluster stores, each asked for by the name of a manifest, in the manifest's version."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final
from urllib.parse import quote

from specmux_aggregator.errors import SourceError, SourceUnreachable
from specmux_converters.document import parse
from specmux_converters.errors import ConverterError
from specmux_converters.resources import APIResource, GroupVersionKind
from specmux_converters.synthesis import synthesise
from specmux_tools.kinds import DocumentSet
from specmux_tools.sources.access import access_of
from specmux_tools.sources.options import SourceOptions
from specmux_tools.sources.remote.fetching import ANSWER_MAX, ServerConnection
from specmux_tools.validation.decoding.body import objects_in
from specmux_tools.validation.stored_objects import StoredObjects, key_of

DEFAULT_NAMESPACE: Final = "default"


def stored_in_cluster(
    values: Iterable[Any],
    documents: DocumentSet,
    source: SourceOptions,
    *,
    are_required: bool,
) -> StoredObjects:
    """The stored ones of ``values``, as far as documents tell their paths. Raises SourceError."""
    if source.is_local or source.offline:
        raise SourceError("--old-from-cluster asks a server: omit --directory, --file and --offline")
    paths = dict.fromkeys(_paths(values, documents))
    with ServerConnection(access_of(source), most=ANSWER_MAX, timeout=source.request_timeout) as connection:
        found = [*_request_objects(connection, paths)]
    return StoredObjects(found, connection.url, are_required=are_required)


def _request_objects(connection: ServerConnection, paths: Iterable[str]) -> Iterator[dict[str, Any]]:
    for path in paths:
        answer = connection.send(path, {"Accept": "application/json"})
        if answer.status == 404:
            continue
        if answer.status != 200:
            raise SourceUnreachable(
                f"{connection.url}{path}: answered {answer.status}; is your user allowed to get it?"
            )
        try:
            yield parse(answer.body)
        except ConverterError as error:
            raise SourceUnreachable(
                f"{connection.url}{path}: its answer is no object: {error.reason}"
            ) from error


def _paths(values: Iterable[Any], documents: DocumentSet) -> Iterator[str]:
    resources: dict[int, dict[str, APIResource]] = {}
    for value in values:
        for each in objects_in(value):
            key = key_of(each)
            version = str(each.get("apiVersion")).rpartition("/")[2]
            described = documents.find(GroupVersionKind(key.group, version, key.kind))
            if described is None or not key.name:
                continue
            document, name = described.document, described.group_version
            if id(document) not in resources:
                resources[id(document)] = {found.kind.kind: found for found in synthesise(document, name)}
            resource = resources[id(document)].get(key.kind)
            if resource is not None:
                namespace = quote(key.namespace or DEFAULT_NAMESPACE, safe="")
                within = f"/namespaces/{namespace}" if resource.is_namespaced else ""
                yield f"/{name}{within}/{resource.name}/{quote(key.name, safe='')}"
