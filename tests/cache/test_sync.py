from __future__ import annotations

import inspect
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from fakes.openapi_server import Reference, document
from fakes.openapi_thread import serving_in_thread
from specmux_cache import AsyncSchemaCache, CacheOptions, GroupVersionNotFound, KindNotFound, SchemaCache

CORE = document("core", paths={})


def reference() -> Reference:
    return Reference({"api/v1": CORE, "apis/apps/v1": document("apps")})


def calls(kind: type) -> dict[str, inspect.Signature]:
    return {
        name: inspect.signature(member)
        for name, member in inspect.getmembers(kind, inspect.isfunction)
        if not name.startswith("_")
    }


def test_calls_when_sync_or_async_are_the_same():
    own, theirs = calls(SchemaCache), calls(AsyncSchemaCache)
    assert own.keys() == theirs.keys()
    for name, signature in own.items():
        assert list(signature.parameters) == list(theirs[name].parameters), name
        kinds = [parameter.kind for parameter in signature.parameters.values()]
        assert kinds == [parameter.kind for parameter in theirs[name].parameters.values()], name


def test_every_call_when_made_without_an_event_loop(tmp_path):
    with (
        serving_in_thread(reference()) as server,
        SchemaCache(server.url, CacheOptions(directory=tmp_path / "c")) as cache,
    ):
        assert list(cache.paths().documents) == ["api/v1", "apis/apps/v1"]
        assert cache.schema("v1").body == CORE
        assert cache.spec("v1")["info"]["title"] == "core"
        assert cache.wait_for("v1").from_cache
        with pytest.raises(KindNotFound):
            cache.supports("v1", "Pod")
        assert cache.prefetch().fetched == ("apis/apps/v1",)
        assert cache.merge(["v1"]).document["paths"] == {}
        assert cache.resource("/openapi/v3/api/v1").status == 200
        assert cache.export(tmp_path / "b.zip") == 4
        assert cache.invalidate() == 4
        assert cache.import_(tmp_path / "b.zip") == 4
        assert cache.compact(dry_run=True).entries == 0
        assert cache.stats().events["failed"] == 0
        with pytest.raises(GroupVersionNotFound):
            cache.schema("nope/v1")


def test_calls_when_many_threads_make_them_share_one_fetch(tmp_path):
    with (
        serving_in_thread(reference()) as server,
        SchemaCache(server.url, CacheOptions(directory=tmp_path / "c")) as cache,
        ThreadPoolExecutor(8) as pool,
    ):
        assert {schema.body for schema in pool.map(cache.schema, ["v1"] * 32)} == {CORE}
        assert len(server.server.seen("/openapi/v3/api/v1")) == 1


def test_close_when_done_leaves_no_thread(tmp_path):
    with serving_in_thread(reference()) as server:
        before = threading.active_count()
        with SchemaCache(server.url, CacheOptions(directory=tmp_path / "c")) as cache:
            cache.paths()
        assert threading.active_count() == before
        with pytest.raises(RuntimeError, match="context manager"):
            cache.paths()
        with SchemaCache(server.url, CacheOptions(directory=tmp_path / "c")) as cache:
            assert cache.paths().from_cache


def test_hooks_when_given_are_called(tmp_path):
    events, warnings = [], []
    (tmp_path / "c").write_text("")
    with (
        serving_in_thread(reference()) as server,
        SchemaCache(
            server.url, CacheOptions(directory=tmp_path / "c"), on_event=events.append, warn=warnings.append
        ) as cache,
    ):
        cache.schema("v1")
    assert [event.kind for event in events] == ["fetched", "fetched"]
    assert len(warnings) == 1
