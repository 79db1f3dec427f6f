"""SchemaCache without a background answers offline what it answers with one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from fakes.openapi_server import Reference, Reply, document
from fakes.openapi_thread import ThreadedServer
from specmux_cache import CacheOptions, GroupVersionNotFound, SchemaCache
from specmux_cache.errors import CacheError, NotCached

in_place = partial(SchemaCache, background=False)
TOKEN = {"Authorization": "Bearer token"}
KEYS = ("api/v1", "apis/apps/v1", "apis/batch/v1")
OTHER = document("other")
API = Reply(200, b"{}", [("Content-Type", "application/json"), ("Vary", "Accept"), ("Etag", '"1"')])
GET: dict[str, Callable[[Any], Any]] = {
    "paths": lambda cache: cache.paths(),
    **{key: lambda cache, key=key: cache.schema(key, media="json") for key in (*KEYS, "apis/none/v1")},
    "api": lambda cache: cache.resource("/api", headers={"Accept": "application/json"}),
    "api in another form": lambda cache: cache.resource("/api"),
    "apis": lambda cache: cache.resource("/apis"),
}


@pytest.fixture
def filled(tmp_path: Path) -> Iterator[str]:
    """A server whose core was fetched twice, with two hashes; batch only before it changed."""
    reference = Reference({key: document(key) for key in KEYS})
    server = ThreadedServer(lambda request: API if request.path == "/api" else reference(request))
    try:
        with SchemaCache(server.url, CacheOptions(directory=tmp_path), headers=TOKEN) as cache:
            cache.schema("api/v1")
            cache.schema("apis/batch/v1")
            reference.documents |= dict.fromkeys(("api/v1", "apis/batch/v1"), OTHER)
            cache.paths(refresh=True)
            cache.schema("api/v1")
            cache.resource("/api", headers={"Accept": "application/json"})
        yield server.url
    finally:
        server.close()


def told(ask: Callable[[Any], Any], cache: Any) -> Any:
    try:
        found = ask(cache)
    except CacheError as error:
        return type(error), str(error)
    timeless = {each.name: getattr(found, each.name) for each in fields(found) if each.name != "age"}
    return timeless, found.age < 60


@pytest.mark.parametrize("name", GET)
def test_answers_are_those_of_the_client(filled: str, tmp_path: Path, name: str) -> None:
    options = CacheOptions(directory=tmp_path, offline=True, root_ttl=60.0)
    with SchemaCache(filled, options, headers=TOKEN) as cache:
        expected = told(GET[name], cache)
    with in_place(filled, options, headers=TOKEN, warn=print) as offline:
        assert told(GET[name], offline) == expected


def test_fixture_has_what_tells_them_apart(filled: str, tmp_path: Path) -> None:
    options = CacheOptions(directory=tmp_path, offline=True, root_ttl=60.0)
    with in_place(filled, options, headers=TOKEN, warn=print) as offline:
        assert offline.schema("api/v1").body == OTHER
        assert (offline.schema("api/v1").stale, offline.schema("apis/batch/v1").stale) == (False, True)
        assert offline.resource("/api", headers={"Accept": "application/json"}).body == b"{}"
        with pytest.raises(NotCached):
            offline.schema("apis/apps/v1")
        with pytest.raises(GroupVersionNotFound):
            offline.schema("apis/none/v1")


def test_entries_of_another_user_are_not_given(filled: str, tmp_path: Path) -> None:
    with (
        in_place(filled, CacheOptions(directory=tmp_path, offline=True), warn=print) as offline,
        pytest.raises(NotCached),
    ):
        offline.paths()


def test_directory_that_cannot_be_used_is_an_empty_cache(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    warnings: list[str] = []
    options = CacheOptions(directory=tmp_path / "file", offline=True)
    with (
        in_place("http://127.0.0.1", options, warn=warnings.append) as offline,
        pytest.raises(NotCached),
    ):
        offline.paths()
    assert len(warnings) == 1
