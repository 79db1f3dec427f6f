"""Body files: what is written is what is read, or nothing is."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from specmux_cache.store.bodies import Bodies, allocated_bytes, digest_of, pack, unpack
from specmux_cache.store.rows import Digest

if TYPE_CHECKING:
    from pathlib import Path

BODY = b'{"openapi": "3.0.0", "paths": {}}' * 100


@given(body=st.binary() | st.binary(max_size=50).map(lambda part: part * 100), compress=st.booleans())
def test_unpack_returns_what_was_packed(body: bytes, compress: bool) -> None:
    encoding, data = pack(body, compress=compress)
    assert len(data) <= len(body)
    assert unpack(data, encoding, size=len(body), digest=digest_of(body)) == body


def test_pack_leaves_alone_what_is_compressed() -> None:
    assert pack(BODY, compress=False) == ("identity", BODY)
    assert pack(os.urandom(10_000), compress=True)[0] == "identity"
    assert pack(BODY, compress=True)[0] == "zstd"


@given(place=st.integers(min_value=0), bit=st.integers(0, 7))
def test_unpack_refuses_a_flipped_bit(place: int, bit: int) -> None:
    encoding, data = pack(BODY, compress=True)
    flipped = bytearray(data)
    flipped[place % len(data)] ^= 1 << bit
    # zstd has bits that say nothing of the content: then the body is right, and may be returned.
    try:
        body = unpack(bytes(flipped), encoding, size=len(BODY), digest=digest_of(BODY))
    except ValueError:
        return
    assert body == BODY


@given(length=st.integers(min_value=0))
def test_unpack_refuses_a_truncated_body(length: int) -> None:
    encoding, data = pack(BODY, compress=True)
    with pytest.raises(ValueError, match="body"):
        unpack(data[: length % len(data)], encoding, size=len(BODY), digest=digest_of(BODY))


def test_unpack_refuses_a_bomb_by_its_header() -> None:
    bomb = zstandard.compress(bytes(64 * 1024 * 1024))
    assert len(bomb) < 10_000
    with pytest.raises(ValueError, match="size"):
        unpack(bomb, "zstd", size=len(BODY), digest=digest_of(BODY))


def test_read_refuses_a_file_larger_than_asked_for(tmp_path: Path) -> None:
    bodies = Bodies(tmp_path)
    bodies.publish(bodies.write(b"12345"), digest_of(b"12345"))
    assert bodies.read(digest_of(b"12345"), max_bytes=5) == b"12345"
    with pytest.raises(ValueError, match="larger"):
        bodies.read(digest_of(b"12345"), max_bytes=4)


@pytest.mark.parametrize("name", ["", "../../etc/passwd", "/etc/passwd", "A" * 64, "a" * 63, "a" * 64 + "\n"])
def test_only_a_digest_names_a_file(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="digest"):
        Bodies(tmp_path).path(Digest(name))


def test_a_symlink_in_place_of_a_body_is_not_followed(tmp_path: Path) -> None:
    bodies = Bodies(tmp_path)
    digest = digest_of(b"secret")
    bodies.publish(bodies.write(b"secret"), digest)
    elsewhere = tmp_path / "elsewhere"
    bodies.path(digest).rename(elsewhere)
    bodies.path(digest).symlink_to(elsewhere)
    with pytest.raises(OSError, match="symbolic"):
        bodies.read(digest, max_bytes=100)


@pytest.mark.parametrize("removes", [True, False])
def test_a_folder_in_place_of_a_body_makes_way(tmp_path: Path, removes: bool) -> None:
    bodies = Bodies(tmp_path)
    digest = digest_of(b"body")
    bodies.publish(bodies.write(b"body"), digest)
    bodies.path(digest).unlink()
    (bodies.path(digest) / "inside").mkdir(parents=True)
    if removes:
        bodies.remove(digest)
        assert not bodies.path(digest).exists()
    bodies.publish(bodies.write(b"body"), digest)
    assert bodies.read(digest, max_bytes=4) == b"body"


def test_a_write_that_fails_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    bodies = Bodies(tmp_path)
    # The disk cannot be filled for one call; the quota is put at the file layer instead.
    monkeypatch.setattr("specmux_cache.store.bodies.os.write", full)
    with pytest.raises(OSError, match="No space"):
        bodies.write(b"x")
    assert list(bodies.files()) == []


def test_overhead_counts_directories_and_temporary_files(tmp_path: Path) -> None:
    bodies = Bodies(tmp_path)
    assert bodies.overhead() == 0
    temporary = bodies.write(b"x" * 10_000)
    with_temporary = bodies.overhead()
    assert with_temporary >= 3 * 4096
    bodies.publish(temporary, digest_of(b"x" * 10_000))
    assert bodies.overhead() < with_temporary + 3 * 4096
    bodies.remove(digest_of(b"x" * 10_000))
    bodies.remove_empty_directories()
    assert bodies.overhead() == 4096


@given(size=st.integers(0, 10**9))
def test_allocated_is_whole_blocks(size: int) -> None:
    assert size <= allocated_bytes(size) < size + 4096
    assert allocated_bytes(size) % 4096 == 0


def test_the_digest_of_the_stored_bytes_proves_them_and_nothing_else() -> None:
    encoding, data = pack(BODY, compress=True)
    other = BODY[::-1]
    size, digest = len(BODY), digest_of(BODY)
    assert unpack(data, encoding, size=size, digest=digest, packed=digest_of(data)) == BODY
    assert unpack(data, encoding, size=size, digest=digest, packed=digest_of(b"")) == BODY
    for wrong, written in ((zstandard.compress(other), "zstd"), (other, "identity")):
        with pytest.raises(ValueError, match="body"):
            unpack(wrong, written, size=size, digest=digest, packed=digest_of(data))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="body"):
        unpack(other, "identity", size=size, digest=digest, packed=digest_of(other))
