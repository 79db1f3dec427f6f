"""Body files: what is written is what is read, or nothing is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from running.open_files import needs_proc, open_in
from specmux_cache.store.bodies import Bodies, allocated_bytes, digest_of, pack, unpack
from specmux_cache.store.rows import Digest

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


def test_a_body_that_is_gone_is_removed_already(tmp_path: Path) -> None:
    bodies = Bodies(tmp_path)
    bodies.remove(digest_of(b"body"))
    assert bodies.overhead() == 0


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


@pytest.mark.parametrize(("size", "encoding"), [(127, "identity"), (128, "zstd")])
def test_a_body_is_compressed_from_the_size_on_where_it_may_save_a_block(size: int, encoding: str) -> None:
    assert pack(b"x" * size, compress=True)[0] == encoding


def test_a_body_proven_by_its_stored_bytes_is_not_hashed_again() -> None:
    encoding, data = pack(BODY, compress=True)
    unknown = Digest("0" * 64)
    assert unpack(data, encoding, size=len(BODY), digest=unknown, packed=digest_of(data)) == BODY


def put_files(bodies: Bodies, *digests: str) -> list[Path]:
    for digest in digests:
        bodies.publish(bodies.write(b"x" * 5000), Digest(digest))
    return [bodies.path(Digest(digest)) for digest in digests]


def test_files_are_all_but_those_that_vanish_meanwhile(tmp_path: Path) -> None:
    bodies = Bodies(tmp_path)
    put_files(bodies, *["a" * 63 + digit for digit in "123456"])
    found = bodies.files()
    seen = [next(found).path]
    gone = next(path for path in (tmp_path / "bodies" / "a").iterdir() if str(path) != seen[0])
    gone.unlink()
    seen += [file.path for file in found]
    assert len(seen) == len(set(seen)) == 5
    assert str(gone) not in seen


def test_a_link_that_leads_nowhere_is_a_file_too(tmp_path: Path) -> None:
    bodies = Bodies(tmp_path)
    [path] = put_files(bodies, "a" * 64)
    path.unlink()
    path.symlink_to(tmp_path / "nowhere")
    [file] = bodies.files()
    assert (file.path, file.digest) == (str(path), "a" * 64)
    bodies.remove_file(file)
    assert list(bodies.files()) == []


def test_only_a_digest_on_a_shelf_makes_a_body(tmp_path: Path) -> None:
    bodies = Bodies(tmp_path)
    [path] = put_files(bodies, "a" * 64)
    (tmp_path / "tmp" / ("b" * 64)).write_bytes(b"")
    (path.parent / "notes").write_bytes(b"")
    found = {Path(file.path).name: (file.digest, file.allocated) for file in bodies.files()}
    assert found == {"a" * 64: ("a" * 64, 8192), "b" * 64: (None, 0), "notes": (None, 0)}


@needs_proc
def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    bodies = Bodies(tmp_path)
    [path] = put_files(bodies, "a" * 64)
    bodies.read(Digest("a" * 64), max_bytes=5000)
    with pytest.raises(ValueError, match="larger"):
        bodies.read(Digest("a" * 64), max_bytes=1)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(OSError, match="regular"):
        bodies.read(Digest("a" * 64), max_bytes=5000)
    assert open_in(tmp_path) == set()
