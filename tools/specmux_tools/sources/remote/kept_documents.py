"""Documents that a service kept, by their hash: from its state directory, or compared by itself."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson

from specmux_aggregator.changes.endpoint import PATH
from specmux_aggregator.console import warn
from specmux_aggregator.documents.archive import document_key
from specmux_aggregator.http.content_codings import decode_body
from specmux_aggregator.http.messages import Coding
from specmux_cache.errors import StoreError
from specmux_cache.store.disk_store import DiskStore
from specmux_converters.document import DEFAULT_LIMITS, parse
from specmux_tools.differences import Comparison, ServedSide, add_document
from specmux_tools.differences.changes import Place
from specmux_tools.differences.reports import read_change
from specmux_tools.sources import SourceOptions
from specmux_tools.sources.input import refusals
from specmux_tools.sources.remote.fetching import download
from specmux_tools.sources.source import FileRefused


def kept_document(hash: str, group_version: str, directory: Path) -> ServedSide:
    """The side of one document of a state directory. Raises FileRefused."""
    with refusals(directory):
        if not directory.is_dir():
            raise FileRefused(directory, "not a folder, or it may not be read")
        try:
            with DiskStore.open(directory, warn=warn) as store:
                stored = store.get(document_key(group_version, hash))
        except StoreError as error:
            raise FileRefused(directory, error) from error
        if stored is None:
            raise FileRefused(directory, f"no document {hash[:12]}… of {group_version} is kept there")
        body = decode_body(stored.body, Coding.ZSTD, max_bytes=DEFAULT_LIMITS.max_bytes)
        served = ServedSide()
        add_document(served, parse(body))
        return served


def kept_comparison(old: str, new: str, group_version: str, source: SourceOptions) -> Comparison:
    """Let the service of ``--server`` compare two documents it kept. Raises FileRefused, SpecmuxError."""
    server = (source.server or "").rstrip("/")
    body = download(replace(source, server=f"{server}{PATH}/{group_version}?from={old}&to={new}"))
    try:
        answer = orjson.loads(body)
        places = tuple(place for change in answer["changes"] for place in _places(change))
        if answer["truncated"]:
            warn(f"{server}: too many changes to print; the worst follow")
        return Comparison(places, int(answer["summary"]["documentation"]))
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError) as error:
        raise FileRefused(server, "its answer is no comparison: is it specmux?") from error


def _places(value: dict[str, Any]) -> list[Place]:
    change = read_change(value)
    return [
        Place(
            id=change.id,
            group_version=place.group_version,
            kind=place.kind,
            path=place.path,
            what=change.what,
            impacts=change.impacts,
            old=change.old,
            new=change.new,
            origin=change.fingerprint,
        )
        for place in change.places
    ]
