"""OCI image layouts of others, and damaged ones: what is read, and what a refusal names."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import os
import re
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
import zstandard

from specmux_aggregator.backend_sources import oci_layout
from specmux_aggregator.backend_sources.manifests import FolderManifests, Unreadable
from specmux_aggregator.backend_sources.oci_layout import Layout, LayoutFiles
from specmux_aggregator.errors import UnreadableLayout
from specmux_aggregator.model.failure import Cause, Failure

DOCUMENT = b'{"openapi":"3.0.0","info":{"title":"t","version":"1"},"paths":{}}'
TITLE = {"org.opencontainers.image.title": "apis__apps__v1_openapi.json"}
INDEX = "application/vnd.oci.image.index.v1+json"


def named(tag: str) -> dict[str, Any]:
    return {"annotations": {"org.opencontainers.image.ref.name": tag}}


class Made:
    """A layout in a folder, written by hand."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "blobs/sha256").mkdir(parents=True)

    def blob(self, data: bytes | Any, **more: Any) -> dict[str, Any]:
        data = data if isinstance(data, bytes) else orjson.dumps(data)
        digest = hashlib.sha256(data).hexdigest()
        (self.folder / "blobs/sha256" / digest).write_bytes(data)
        return {"digest": f"sha256:{digest}", "size": len(data), **more}

    def layer(self, data: bytes = DOCUMENT, **more: Any) -> dict[str, Any]:
        return self.blob(data, **({"annotations": TITLE} | more))

    def manifest(self, *layers: Any, **more: Any) -> dict[str, Any]:
        return self.blob({"schemaVersion": 2, "layers": layers, **more})

    def index(self, *manifests: Any) -> None:
        (self.folder / "index.json").write_bytes(orjson.dumps({"schemaVersion": 2, "manifests": manifests}))

    def read(self, reference: str = "") -> dict[str, bytes]:
        layout = Layout(f"oci:{self.folder}{reference}")
        return {each.group_version or each.name: layout.read(each) for each in layout.documents()}


@pytest.fixture
def made(tmp_path: Path) -> Made:
    return Made(tmp_path / "layout")


def test_titles_of_others_tell_group_versions(made: Made) -> None:
    odd = made.layer(
        b"{}", annotations={"org.opencontainers.image.title": "../../x.json", "specmux.group-version": "../y"}
    )
    bare = made.blob(b"[]")
    made.index(made.manifest(made.layer(), odd, bare))
    assert made.read() == {"apis/apps/v1": DOCUMENT, "../../x.json": b"{}", bare["digest"][7:]: b"[]"}


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress])
def test_packed_layers_are_unpacked(made: Made, pack: Callable[[bytes], bytes]) -> None:
    made.index(made.manifest(made.layer(pack(DOCUMENT))))
    assert made.read() == {"apis/apps/v1": DOCUMENT}


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress])
def test_bombs_are_refused(made: Made, pack: Callable[[bytes], bytes]) -> None:
    made.index(made.manifest(made.layer(pack(bytes(100_000)))))
    layout = Layout(f"oci:{made.folder}")
    with pytest.raises(UnreadableLayout, match=r"layout: apis__apps__v1_openapi\.json: more than 5000 bytes"):
        layout.read(layout.documents()[0], max_bytes=5000)


def test_tags_digests_nested_indexes_and_signatures(made: Made) -> None:
    old, new = made.manifest(made.layer()), made.manifest(made.layer(b"{}"))
    signature = made.manifest(made.layer(b"s"), subject=new)
    nested = made.blob({"manifests": [new, signature]}, mediaType=INDEX)
    made.index(old | named("registry.example/api:old"), nested | named("new"))
    assert made.read(":old") == made.read(f"@{old['digest']}") == {"apis/apps/v1": DOCUMENT}
    assert made.read(":new") == made.read(f"@{new['digest']}") == {"apis/apps/v1": b"{}"}
    assert made.read(f":new@{signature['digest']}") == {"apis/apps/v1": b"s"}
    refused(
        made, "has 2 manifests: name one as oci:PATH:TAG or oci:PATH@DIGEST; it has the tags new, registry"
    )
    refused(made, "no manifest is none; it has the tags new, registry.example/api:old", ":none")
    ours = made.manifest(made.layer(b"[]"), artifactType="application/vnd.specmux.snapshot.v1")
    made.index(old, new, ours)
    assert made.read() == {"apis/apps/v1": b"[]"}


def refused(made: Made, reason: str, reference: str = "") -> None:
    with pytest.raises(UnreadableLayout) as found:
        made.read(reference)
    assert str(found.value).startswith(f"oci:{made.folder}{reference}: "), found.value
    assert reason in str(found.value)


def test_damaged_layouts_are_named(made: Made) -> None:
    layer = made.layer()
    path = made.folder / "blobs" / layer["digest"].replace(":", "/")
    place = f"apis__apps__v1_openapi.json (blobs/sha256/{path.name}): "
    made.index(made.manifest(layer))
    for data, reason in ((DOCUMENT[:-1], "has less than"), (DOCUMENT + b" ", "has more than")):
        path.write_bytes(data)
        refused(made, f"{place}{reason} its {len(DOCUMENT)} bytes")
    path.write_bytes(DOCUMENT.replace(b"t", b"u"))
    refused(made, f"{place}its bytes do not have its digest")
    path.unlink()
    refused(made, f"{place}No such file or directory")
    path.mkdir()
    refused(made, f"{place}not a file")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"digest": "sha256:../../../etc/passwd"}, "/layers/0 has no digest (sha256 or sha512) and size"),
        ({"digest": "md5:" + 32 * "0"}, "/layers/0 has no digest"),
        ({"size": -1}, "/layers/0 has no digest"),
        ({"size": True}, "/layers/0 has no digest"),
        ({"size": 1 << 40}, "1099511627776 bytes, more than the 67108864 allowed"),
        (
            {"mediaType": "application/vnd.oci.image.layer.v1.tar+gzip", "annotations": {}},
            "a container image",
        ),
    ],
)
def test_descriptors_that_lie_are_refused(made: Made, change: dict[str, Any], reason: str) -> None:
    made.index(made.manifest(made.layer() | change))
    refused(made, reason)


def test_what_is_no_snapshot_is_refused(made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refused(made, "no OCI image layout: it has no index.json")
    (made.folder / "index.json").write_bytes(b"{")
    refused(made, "index.json: not JSON")
    made.index()
    refused(made, "lists no manifest")
    made.index(made.manifest())
    refused(made, "no document in it")
    made.index(made.manifest(made.layer(), made.layer(b"{}")))
    refused(made, "two layers are apis__apps__v1_openapi.json")
    made.index(*(made.manifest(made.layer(b"%d" % number)) for number in range(4)))
    monkeypatch.setattr(oci_layout, "MANIFESTS_MAX", 3)
    refused(made, "index.json: more than 3 manifests")
    monkeypatch.setattr(oci_layout, "MANIFESTS_MAX", 4)
    nested = made.blob({"manifests": [made.manifest(made.layer())] * 4}, mediaType=INDEX)
    made.index(nested)
    refused(made, "more than 4 manifests")
    monkeypatch.setattr(oci_layout, "METADATA_TOTAL_MAX", 100)
    made.index(made.manifest(made.layer()))
    refused(made, "its manifests have more than 100 bytes")
    (tmp_path / "empty.tar").touch()
    for word, told in (
        ("oci:", "must be written as oci:PATH"),
        (f"oci:{tmp_path}/none", "No such file or directory"),
        (f"oci:{tmp_path}/none:v1", "No such file or directory"),
        (f"oci:{tmp_path}/empty.tar", "no OCI image layout: it has no index.json"),
        (f"oci:{made.folder}:a tag", f"a tag is oci:{made.folder}:TAG, a digest"),
        (f"oci:{made.folder}@sha256:abc", f"a digest oci:{made.folder}@sha256:… with 64 digits"),
        (f"oci:{made.folder}:v1@sha256:abc", f"a digest oci:{made.folder}@sha256:… with 64 digits"),
    ):
        with pytest.raises(UnreadableLayout, match=re.escape(told)):
            Layout(word)


@pytest.mark.parametrize("is_tar", [False, True])
def test_a_blob_that_is_repaired_is_read_again(made: Made, tmp_path: Path, is_tar: bool) -> None:
    layer = made.layer()
    made.index(made.manifest(layer))
    written = made.folder / "blobs" / layer["digest"].replace(":", "/")
    if is_tar:
        written = packed(made, tmp_path / "a.tar", tarfile.USTAR_FORMAT).folder
    files = LayoutFiles(Path(f"oci:{made.folder}"), max_files=9, max_bytes=10_000)
    before = asyncio.run(files.scan())
    assert asyncio.run(files.scan()) == before
    os.utime(written, (1, 1))
    assert asyncio.run(files.scan()) != before
    if not is_tar:
        written.unlink()
        unread = FolderManifests(files).manifest(TITLE["org.opencontainers.image.title"])
        assert isinstance(unread, Unreadable)
        assert f"{layer['digest'][7:]}): No such file" in unread.reason
        assert len(asyncio.run(files.scan())) == 1
    few = LayoutFiles(Path(f"oci:{made.folder}"), max_files=0, max_bytes=10_000)
    assert asyncio.run(few.scan()) == Failure(Cause.TOO_LARGE, "more than 0 files")


def packed(made: Made, path: Path, form: int, mode: str = "w") -> Made:
    with tarfile.open(path, mode, format=form) as tar:  # type: ignore[call-overload]
        tar.add(made.folder, ".")
    made.folder = path
    return made


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_tars_of_others_are_read(made: Made, tmp_path: Path, form: int) -> None:
    made.index(made.manifest(made.layer()))
    assert packed(made, tmp_path / "a.tar", form).read() == {"apis/apps/v1": DOCUMENT}


def test_tars_are_not_followed_out_of_them(
    made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    layer = made.layer()
    made.index(made.manifest(layer))
    blob = made.folder / "blobs" / layer["digest"].replace(":", "/")
    blob.rename(tmp_path / "outside")
    blob.symlink_to(tmp_path / "outside")
    assert made.read() == {"apis/apps/v1": DOCUMENT}  # in a folder: what a link leads to has the digest
    refused(packed(made, tmp_path / "a.tar", tarfile.USTAR_FORMAT), "not in the tar")
    monkeypatch.setattr(oci_layout, "MEMBERS_MAX", 2)
    refused(made, "more than 2 members")


def test_damaged_tars_are_refused(made: Made, tmp_path: Path) -> None:
    made.index(made.manifest(made.layer()))
    tar = packed(made, tmp_path / "a.tar", tarfile.USTAR_FORMAT)
    whole = tar.folder.read_bytes()
    for data in (
        gzip.compress(whole),
        b"\x01" + whole[1:],
        DOCUMENT,
        whole[: whole.index(b"index.json") + 100],
    ):
        tar.folder.write_bytes(data)
        refused(tar, "neither a folder nor a tar with an OCI image layout: a damaged header, or compressed")
    tar.folder.write_bytes(b"")
    refused(tar, "no OCI image layout: it has no index.json")


@pytest.mark.parametrize("reference", ["", ":tag", f"@sha256:{'0' * 64}"])
def test_path_of_which_the_system_cannot_tell_whether_it_exists_is_refused(
    tmp_path: Path, reference: str
) -> None:
    word = Path(f"oci:{tmp_path}/{'a' * 300}{reference}")
    found = asyncio.run(LayoutFiles(word, max_files=9, max_bytes=10_000).scan())
    assert isinstance(found, Failure)
    assert found.detail.endswith("File name too long")


def test_commands_read_a_layout_without_an_event_loop() -> None:
    code = "import sys, specmux_aggregator.backend_sources.oci_layout; sys.exit('asyncio' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
