"""The state directory: what comes back from it, and the disks that do not cooperate."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from running.service import backend
from specmux_aggregator.documents.archive import MANIFEST_FORMAT, StateDirectory, manifest_json, read_manifest
from specmux_aggregator.documents.representations import CodedBody
from specmux_aggregator.http.content_codings import encode_body
from specmux_aggregator.http.messages import Coding
from specmux_aggregator.model.backend import Backend, BackendKind, BackendName, ClusterFacts
from specmux_aggregator.model.failure import Cause, Failure
from specmux_aggregator.model.observation import Hash, Observation, Offer, Provenance
from specmux_aggregator.model.snapshot import DocumentKey
from specmux_cache.errors import DiskFull
from specmux_converters.group_versions import GroupVersion

MIB = 1024 * 1024
APPS, BATCH = GroupVersion("apis/apps/v1"), GroupVersion("apis/batch/v1")
ONE = backend("a", "http://one")
BODY = b'{"openapi":"3.0.0"}'


def observation(of: Backend = ONE) -> Observation:
    offer = Offer(
        hash=Hash("AB"), provenance=Provenance.CONVERTED, size=len(BODY), losses=1, loss_examples=("x",)
    )
    return Observation(backend=of, dialect=BackendKind.V2, offers={APPS: offer}, attempted=True)


def key(hash: str = "AB") -> DocumentKey:
    return DocumentKey(BackendName("a"), APPS, Hash(hash))


def opened(path: Path) -> StateDirectory:
    state = StateDirectory.open(path, max_bytes=16 * MIB, max_document_bytes=MIB)
    assert state is not None
    return state


def run(path: Path, scenario: Callable[[StateDirectory], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        state = opened(path)
        try:
            await scenario(state)
        finally:
            await state.close()

    asyncio.run(main())


def test_what_was_remembered_is_restored_by_the_next_process(tmp_path: Path) -> None:
    async def first(state: StateDirectory) -> None:
        assert await state.restore(ONE) is None
        state.remember(observation(), {APPS: encode_body(BODY, Coding.GZIP)})

    async def second(state: StateDirectory) -> None:
        assert await state.restore(ONE) == observation()
        assert await state.load(key()) == BODY
        assert await state.load(key("CD")) is None

    run(tmp_path, first)
    run(tmp_path, second)


def test_a_state_directory_whose_index_is_no_utf8_any_more_begins_empty(tmp_path: Path) -> None:
    async def first(state: StateDirectory) -> None:
        state.remember(observation(), {APPS: encode_body(BODY, Coding.GZIP)})

    async def second(state: StateDirectory) -> None:
        assert await state.restore(ONE) is None
        state.remember(observation(), {APPS: encode_body(BODY, Coding.GZIP)})
        assert await state.load(key()) == BODY

    run(tmp_path, first)
    index = tmp_path / "cache.db"
    index.write_bytes(index.read_bytes().replace(b"AFTER INSERT", b"\xc5FTER INSERT"))
    run(tmp_path, second)


def test_what_a_cluster_has_is_restored_for_that_cluster_alone(tmp_path: Path) -> None:
    mine, other = (replace(ONE, found=ClusterFacts(cluster=url)) for url in ("https://one", "https://other"))

    async def scenario(state: StateDirectory) -> None:
        await state.restore(mine)
        state.remember(observation(mine), {APPS: encode_body(BODY, Coding.GZIP)})
        assert await state.restore(
            replace(mine, found=ClusterFacts(cluster="https://one", excluded=frozenset()))
        )
        assert await state.restore(other) is None
        assert await state.restore(ONE) is None

    run(tmp_path, scenario)


def test_resource_that_is_noted_is_recalled_for_the_same_backend_alone(tmp_path: Path) -> None:
    path = "/apis/apiregistration.k8s.io/v1/apiservices"

    async def first(state: StateDirectory) -> None:
        assert await state.recall(ONE, path) is None
        state.note(ONE, path, b"[1]")
        state.note(ONE, path, b"[2]")
        assert await state.recall(ONE, path) == b"[2]"

    async def second(state: StateDirectory) -> None:
        assert await state.recall(ONE, path) == b"[2]"
        assert await state.recall(backend("a", "http://other"), path) is None
        assert await state.restore(ONE) is None

    run(tmp_path, first)
    run(tmp_path, second)


def test_built_document_whose_bytes_are_gone_is_not_offered(tmp_path: Path) -> None:
    async def first(state: StateDirectory) -> None:
        await state.restore(ONE)
        state.remember(observation(), {})

    async def second(state: StateDirectory) -> None:
        restored = await state.restore(ONE)
        assert restored is not None
        assert not restored.offers

    run(tmp_path, first)
    run(tmp_path, second)


def test_documents_belong_to_the_address_they_came_from(tmp_path: Path) -> None:
    """A reload gives the name to another address while what the old one offered is still being written."""
    two = backend("a", "http://two")

    async def first(state: StateDirectory) -> None:
        await state.restore(ONE)
        state.save(key(), CodedBody(Coding.IDENTITY, BODY))
        restoring = asyncio.create_task(state.restore(two))
        await asyncio.sleep(0)
        state.remember(observation(ONE), {})
        assert await restoring is None

    async def second(state: StateDirectory) -> None:
        assert await state.restore(two) is None
        assert await state.load(key()) is None
        assert await state.restore(ONE) == observation()
        assert await state.load(key()) == BODY

    run(tmp_path, first)
    run(tmp_path, second)


def test_failing_backend_does_not_overwrite_its_last_good_manifest(tmp_path: Path) -> None:
    async def first(state: StateDirectory) -> None:
        await state.restore(ONE)
        state.remember(observation(), {APPS: encode_body(BODY, Coding.GZIP)})
        state.remember(replace(observation(), offers={}, failure=Failure(Cause.REFUSED, "no")), {})

    async def second(state: StateDirectory) -> None:
        assert await state.restore(ONE) == observation()

    run(tmp_path, first)
    run(tmp_path, second)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'{"format": 999, "dialect": "v3", "offers": {}}',
        b'{"format": 1, "offers": {}}',
        b'{"format": 1, "dialect": "v9", "offers": {}}',
        b'{"format": 1, "dialect": "v3", "offers": []}',
        b'{"format": 1, "dialect": "v3", "offers": {"apis/apps/v1": []}}',
        b'{"format": 1, "dialect": "v3", "offers": {"apis/apps/v1": ["A", "native", 1, 0, null]}}',
        b'{"format": 1, "dialect": "v3", "offers": {"apis/apps/v1": ["A", "telepathy", 1, 0, []]}}',
    ],
)
def test_manifest_that_is_not_ours_is_none(body: bytes) -> None:
    assert read_manifest(body, ONE) is None


def test_manifest_of_a_newer_version_is_left_alone() -> None:
    newer = orjson.loads(manifest_json(observation())) | {"format": MANIFEST_FORMAT + 1}
    assert read_manifest(orjson.dumps(newer), ONE) is None
    assert read_manifest(manifest_json(observation()), ONE) == observation()


def test_manifest_names_only_what_the_backend_may_publish_now() -> None:
    narrowed = backend("a", "http://one", group_versions=frozenset({BATCH}))
    restored = read_manifest(manifest_json(observation()), narrowed)
    assert restored is not None
    assert not restored.offers


def test_full_disk_is_one_warning_until_it_has_room_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.WARNING)

    async def scenario(state: StateDirectory) -> None:
        await state.restore(ONE)
        put = state._store.put

        def full(*_: object, **__: object) -> None:
            raise DiskFull("no room", directory=str(tmp_path))

        # A store whose disk is full is tested with a real one in tests/cache; here, what we make of it.
        monkeypatch.setattr(state._store, "put", full)
        for number in range(5):
            state.save(key(str(number)), CodedBody(Coding.IDENTITY, BODY))
        assert await state.load(key("A")) is None
        for number in range(5):
            state.save(key(str(number)), CodedBody(Coding.IDENTITY, BODY))
        monkeypatch.setattr(state._store, "put", put)
        state.save(key(), CodedBody(Coding.IDENTITY, BODY))
        assert await state.load(key()) == BODY

    run(tmp_path, scenario)
    assert len([line for line in caplog.messages if "no room" in line]) == 1


def test_directory_that_cannot_be_used_is_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("not a directory")
    assert StateDirectory.open(tmp_path / "file", max_bytes=MIB, max_document_bytes=MIB) is None
    assert "state directory is not used" in caplog.text
