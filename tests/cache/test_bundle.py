from __future__ import annotations

import json
import zipfile

import pytest

from specmux_cache.errors import BundleError
from specmux_cache.http.caching import StoredHead
from specmux_cache.reading.bundle import MANIFEST, read_bundle, write_bundle
from specmux_cache.reading.entry_store import Entry
from specmux_cache.store.bodies import digest_of
from specmux_cache.store.keys import Key

LIMIT = 1_000_000
TOTAL = 10_000_000


def entry(group_version: str, body: bytes) -> Entry:
    key = Key("https://h:443", "hmac-secret", group_version, "HASH", "application/json")
    held = StoredHead((("etag", '"a"'),), 1.0, 2.0, {"accept": None, "x": "1"})
    return Entry(key, held, body, digest_of(body))


def written(path, *entries):
    write_bundle(path, "https://h:443", entries)
    return path


def test_bundle_when_read_back_is_what_was_written(tmp_path):
    own = [entry("api/v1", b"{}"), entry("apis/apps/v1", b"{}"), entry("version", b"x" * 5000)]
    packed = read_bundle(written(tmp_path / "b.zip", *own), max_body_bytes=LIMIT, max_bytes=TOTAL)
    assert packed.server == "https://h:443"
    assert [(e.key.group_version, e.body, e.held) for e in packed.entries] == [
        (e.key.group_version, e.body, e.held) for e in own
    ]


def test_bundle_when_written_is_its_owners_names_nobody_and_is_the_same_each_time(tmp_path):
    own = [entry("api/v1", b"{}"), entry("apis/apps/v1", b"[]")]
    first = written(tmp_path / "a.zip", *own)
    second = written(tmp_path / "b.zip", *reversed(own))
    assert first.read_bytes() == second.read_bytes()
    assert first.stat().st_mode & 0o777 == 0o600
    assert b"hmac-secret" not in zipfile.ZipFile(first).read(MANIFEST)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.zip", "b.zip"]


def rewritten(path, change):
    """The bundle with its manifest changed, and further members."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(members[MANIFEST])
    change(manifest, members)
    members[MANIFEST] = json.dumps(manifest).encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


def first_of(manifest):
    return manifest["entries"][0]


def body_of(members):
    return next(name for name in members if name.startswith("bodies/"))


@pytest.mark.parametrize(
    "change",
    [
        lambda m, f: m.update(version=2),
        lambda m, f: m.update(bundle="x"),
        lambda m, f: m.pop("entries"),
        lambda m, f: m.update(entries=5),
        lambda m, f: first_of(m).update(digest="../../etc/passwd"),
        lambda m, f: first_of(m).update(digest="0" * 64),
        lambda m, f: first_of(m).update(size=1),
        lambda m, f: first_of(m).update(size=LIMIT + 1),
        lambda m, f: first_of(m).update(size=-1),
        lambda m, f: first_of(m).update(metadata={}),
        lambda m, f: first_of(m).update(metadata=None),
        lambda m, f: f.update({body_of(f): b"tampered with"}),
        lambda m, f: f.update({body_of(f): b"\0" * 50_000_000}),
        lambda m, f: f.pop(body_of(f)),
    ],
)
def test_bundle_when_tampered_with_is_refused_as_a_whole(tmp_path, change):
    path = rewritten(written(tmp_path / "b.zip", entry("api/v1", b"{}")), change)
    with pytest.raises(BundleError):
        read_bundle(path, max_body_bytes=LIMIT, max_bytes=TOTAL)


@pytest.mark.parametrize("content", [b"", b"PK", b"not a zip"])
def test_bundle_when_it_is_none(tmp_path, content):
    (tmp_path / "b.zip").write_bytes(content)
    with pytest.raises(BundleError):
        read_bundle(tmp_path / "b.zip", max_body_bytes=LIMIT, max_bytes=TOTAL)


def test_bundle_when_it_is_cut_short(tmp_path):
    path = written(tmp_path / "b.zip", entry("api/v1", b"x" * 5000))
    data = path.read_bytes()
    for end in range(0, len(data), 97):
        path.write_bytes(data[:end])
        with pytest.raises(BundleError):
            read_bundle(path, max_body_bytes=LIMIT, max_bytes=TOTAL)


def test_bundle_when_it_cannot_be_written_or_found(tmp_path):
    with pytest.raises(BundleError):
        written(tmp_path / "none" / "b.zip", entry("api/v1", b"{}"))
    with pytest.raises(BundleError):
        read_bundle(tmp_path / "b.zip", max_body_bytes=LIMIT, max_bytes=TOTAL)


def test_body_of_many_entries_is_read_once_and_counts_once(tmp_path):
    body = b"x" * 900_000
    path = written(tmp_path / "b.zip", *(entry(f"apis/g{number}/v1", body) for number in range(50)))
    assert path.stat().st_size < 20_000
    packed = read_bundle(path, max_body_bytes=LIMIT, max_bytes=LIMIT)
    assert len(packed.entries) == 50
    assert len({id(item.body) for item in packed.entries}) == 1


def test_bodies_that_unpack_to_more_than_all_may_be_are_refused(tmp_path):
    entries = [entry(f"apis/g{number}/v1", bytes([number]) * 900_000) for number in range(12)]
    path = written(tmp_path / "b.zip", *entries)
    assert path.stat().st_size < 50_000
    with pytest.raises(BundleError, match="larger, unpacked"):
        read_bundle(path, max_body_bytes=LIMIT, max_bytes=TOTAL)


def test_manifest_of_many_values_is_refused_before_it_is_parsed(tmp_path):
    path = tmp_path / "b.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(
            MANIFEST, b'{"bundle":"specmux","version":1,"entries":[' + b"[]," * 2_000_000 + b"0]}"
        )
    assert path.stat().st_size < 10_000
    with pytest.raises(BundleError, match="more than 1000000 values"):
        read_bundle(path, max_body_bytes=LIMIT, max_bytes=TOTAL)
