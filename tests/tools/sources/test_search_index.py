"""The search index between commands: kept, changed by document, and never the reason of a wrong answer."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest

from data.explained_documents import bed
from fakes.openapi_server import Reference
from fakes.openapi_thread import serving_in_thread
from specmux_cache import DiskStore
from specmux_converters.group_versions import GroupVersion
from specmux_tools.search_index.query import search
from specmux_tools.sources import SourceOptions, open_documents
from specmux_tools.sources import search_index as module
from specmux_tools.sources.search_index import SearchIndex
from specmux_tools.sources.source import LoadedDocuments, Source

GARDEN, FIELD = GroupVersion("apis/garden.example.org/v1"), {"type": "string"}
LIBRARY = GroupVersion("apis/library.example.org/v1")


def body(key: str, *names: str) -> bytes:
    document: Any = bed(**dict.fromkeys(names, FIELD))
    return orjson.dumps(document).replace(b"garden.example.org", key.split("/")[1].encode())


def write(folder: Path, key: str, *names: str, age: float = 60.0) -> None:
    path = folder / f"{key}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(body(key, *names))
    os.utime(path, (time.time() - age,) * 2)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path / "documents", GARDEN, "soil")
    write(tmp_path / "documents", LIBRARY, "shelf")
    return tmp_path / "documents"


class Read:
    """A source that remembers which documents were parsed for somebody."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.loaded: list[GroupVersion] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)

    def load(
        self, group_versions: Collection[GroupVersion] | None = None, *, schemas_only: bool = False
    ) -> LoadedDocuments:
        loaded = self._source.load(group_versions, schemas_only=schemas_only)
        self.loaded += loaded.documents.documents
        return loaded


@contextmanager
def indexed(options: SourceOptions) -> Iterator[tuple[SearchIndex, Any]]:
    with open_documents(options) as source:
        read: Any = Read(source)
        yield SearchIndex(read, options.directory_of_cache), read


def found(options: SourceOptions, words: str) -> tuple[list[str], list[GroupVersion]]:
    """Fields, and the documents that were read for it."""
    with indexed(options) as (index, read):
        rows = search(index.current(), words).rows
        return sorted(".".join((row.kind.group_version, *row.path)) for row in rows), read.loaded


def of(folder: Path, tmp_path: Path) -> SourceOptions:
    return SourceOptions(directories=(folder,), cache_directory=tmp_path / "cache")


def test_next_command_reads_no_document(folder: Path, tmp_path: Path) -> None:
    first, read = found(of(folder, tmp_path), "soil")
    assert (first, sorted(read)) == ([f"{GARDEN}.spec.soil"], [GARDEN, LIBRARY])
    assert found(of(folder, tmp_path), "soil") == (first, [])


def test_changed_document_alone_is_read_again(folder: Path, tmp_path: Path) -> None:
    found(of(folder, tmp_path), "soil")
    write(folder, GARDEN, "soil", "sun", age=30)
    assert found(of(folder, tmp_path), "sun") == ([f"{GARDEN}.spec.sun"], [GARDEN])
    (folder / f"{GARDEN}.json").unlink()
    assert found(of(folder, tmp_path), "sun") == ([], [])
    assert found(of(folder, tmp_path), "shelf")[0] == [f"{LIBRARY}.spec.shelf"]


def test_file_that_changed_a_moment_ago_is_read_each_time(folder: Path, tmp_path: Path) -> None:
    write(folder, GARDEN, "soil", age=0)
    for name in ("soil", "loam"):
        write(folder, GARDEN, name, age=0)
        assert found(of(folder, tmp_path), name)[0] == [f"{GARDEN}.spec.{name}"]


def test_of_a_server_only_other_hashes_are_read(tmp_path: Path) -> None:
    reference = Reference({GARDEN: body(GARDEN, "soil"), LIBRARY: body(LIBRARY, "shelf")})
    with serving_in_thread(reference) as server:
        options = SourceOptions(server=server.url, cache_directory=tmp_path)
        assert sorted(found(options, "soil")[1]) == [GARDEN, LIBRARY]
        assert found(options, "soil") == ([f"{GARDEN}.spec.soil"], [])
        offline = SourceOptions(server=server.url, cache_directory=tmp_path, offline=True)
        assert found(offline, "shelf") == ([f"{LIBRARY}.spec.shelf"], [])
        with indexed(options) as (index, read):
            assert [row.path for row in search(index.current(), "shelf").rows] == [("spec", "shelf")]
            reference.documents[LIBRARY] = body(LIBRARY, "row")
            index._source._source._cache.paths(refresh=True)  # as when its two seconds are over
            assert [row.path for row in search(index.current(), "shelf").rows] == []
            assert read.loaded == [LIBRARY]
    assert found(offline, "row") == ([f"{LIBRARY}.spec.row"], [])


def test_torn_index_is_made_anew(folder: Path, tmp_path: Path) -> None:
    found(of(folder, tmp_path), "soil")
    store = tmp_path / "cache" / "cache.db"
    kept = store.read_bytes()
    at = kept.index(b"soil")
    store.write_bytes(kept[:at] + b"S" + kept[at + 1 :])
    assert found(of(folder, tmp_path), "soil")[0] == [f"{GARDEN}.spec.soil"]
    assert found(of(folder, tmp_path), "soil")[1] == []


def test_index_of_another_release_is_made_anew(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found(of(folder, tmp_path), "soil")
    monkeypatch.setattr(module, "VERSION", "0.0.1")
    assert sorted(found(of(folder, tmp_path), "soil")[1]) == [GARDEN, LIBRARY]


def test_cache_that_cannot_be_used_costs_a_new_index(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("no folder")
    for _ in range(2):
        assert found(of(folder, tmp_path), "soil")[0] == [f"{GARDEN}.spec.soil"]


def test_folder_with_what_cannot_be_used_says_so_each_time(folder: Path, tmp_path: Path) -> None:
    (folder / "broken.json").write_text("{")
    os.utime(folder / "broken.json", (0, 0))
    for _ in range(2):
        with indexed(of(folder, tmp_path)) as (index, _):
            index.current()
            assert [Path(each.where).name for each in index.unread] == ["broken.json"]


def test_index_is_one_entry_of_the_cache(folder: Path, tmp_path: Path) -> None:
    for name in ("soil", "sun", "rain"):
        write(folder, GARDEN, name)
        found(of(folder, tmp_path), name)
    with DiskStore.open(tmp_path / "cache") as store:
        assert [row.key.group_version for row in store.rows()] == ["/search"]
        assert store.check() == ()
