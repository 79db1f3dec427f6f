"""``specmux snapshot``: one digest on every machine, and every command and the service read what it wrote."""

from __future__ import annotations

import asyncio
import hashlib
import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import orjson
import pytest
from click.testing import CliRunner, Result

from data.compared import definition, document
from running.process import write_documents
from running.service import directory, service
from shared_data import DATA, NATIVE, documents, marks, read
from specmux_aggregator.backend_sources.oci_layout import Layout
from specmux_aggregator.cli import main
from specmux_converters.document import canonical, parse
from specmux_converters.group_versions import GroupVersion
from specmux_tools.command_line.oci_image import image_of, write_image
from specmux_tools.sources.open_source import load

V1, V2 = "apis/example.com/v1", "apis/example.com/v2"
FIELDS = {"type": "object", "properties": {"size": {"type": "integer", "description": "How large."}}}
DOCUMENTS = {
    V1: document(FIELDS),
    V2: document(FIELDS, version="v2"),
    "version": {"openapi": "3.0.0", "paths": {}},
}
DIGEST = "sha256:676729bd9188ef2c5f18a25cbdd0fa23187f097baee129130120d190a22ba1dd"
MANIFEST = b"apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: a}\nspec: {size: large}\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current one, with the documents in a folder, and two snapshots of them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    write_documents(tmp_path / "documents", {key: orjson.dumps(each) for key, each in DOCUMENTS.items()})
    for out in ("kept", "kept.tar"):
        assert run("snapshot", "documents", out).exit_code == 0
    return tmp_path


def run(*words: str) -> Result:
    return CliRunner().invoke(main, [*words], prog_name="specmux")


def shuffled(value: Any) -> Any:
    """Equal, with the members of every object in the opposite order."""
    if isinstance(value, dict):
        return {name: shuffled(value[name]) for name in reversed(value)}
    return [shuffled(each) for each in value] if isinstance(value, list) else value


def test_digest_is_the_recorded_one() -> None:
    assert image_of({GroupVersion(key): each for key, each in DOCUMENTS.items()}).digest == DIGEST
    assert image_of({GroupVersion(key): each for key, each in shuffled(DOCUMENTS).items()}).digest == DIGEST


def test_digest_is_the_same_in_another_process_and_environment(folder: Path) -> None:
    tars = []
    for zone, seed, umask in (("UTC", "1", 0o022), ("Pacific/Chatham", "2", 0o077)):
        given = {**os.environ, "TZ": zone, "PYTHONHASHSEED": seed, "HOSTNAME": zone, "USER": zone}
        out = folder / seed / "out.tar"
        command = [
            sys.executable,
            "-m",
            "specmux_aggregator.cli",
            "snapshot",
            "documents",
            str(out),
            "-o",
            "json",
        ]
        done = subprocess.run(command, env=given, umask=umask, check=True, stdout=subprocess.PIPE)
        assert orjson.loads(done.stdout) | {"path": ""} == {
            "path": "", "tag": "latest", "digest": DIGEST, "documents": 3, "bytes": 3443,
        }  # fmt: skip
        tars.append(out.read_bytes())
    assert tars[0] == tars[1] == (folder / "kept.tar").read_bytes()


def test_layout_says_what_each_blob_is(folder: Path) -> None:
    files = {
        path.relative_to(folder / "kept").as_posix(): path.read_bytes()
        for path in (folder / "kept").rglob("*")
        if path.is_file()
    }
    assert orjson.loads(files.pop("oci-layout")) == {"imageLayoutVersion": "1.0.0"}
    (listed,) = orjson.loads(files.pop("index.json"))["manifests"]
    assert listed["annotations"] == {"org.opencontainers.image.ref.name": "latest"}
    assert all(name == f"blobs/sha256/{hashlib.sha256(data).hexdigest()}" for name, data in files.items())
    manifest = orjson.loads(files[f"blobs/{listed['digest'].replace(':', '/')}"])
    assert listed["artifactType"] == manifest["artifactType"] == "application/vnd.specmux.snapshot.v1"
    assert [each["annotations"]["specmux.group-version"] for each in manifest["layers"]] == sorted(DOCUMENTS)
    for layer in manifest["layers"]:
        assert layer["mediaType"] == "application/vnd.oai.openapi+json"
        told, data = layer["annotations"], files[f"blobs/{layer['digest'].replace(':', '/')}"]
        assert told["org.opencontainers.image.title"] == f"{told['specmux.group-version']}.json"
        assert (told["specmux.hash"], layer["size"]) == (hashlib.sha512(data).hexdigest().upper(), len(data))


def test_equal_documents_are_one_blob_and_other_tags_stay(folder: Path) -> None:
    count = len(list((folder / "kept/blobs/sha256").iterdir()))
    (folder / "documents/apis/example.com/v3.json").write_bytes(orjson.dumps(DOCUMENTS[V1]))
    assert run("snapshot", "documents", "kept", "--tag", "next").exit_code == 0
    assert len(list((folder / "kept/blobs/sha256").iterdir())) == count + 1  # the manifest
    assert "apis/example.com/v3" in run("get", "--file", "oci:kept:next").stdout
    for earlier in ("oci:kept:latest", f"oci:kept@{DIGEST}"):
        assert run("get", "--file", earlier).stdout.split() == sorted(DOCUMENTS)
    assert run("snapshot", "documents", "documents").exit_code == 3  # has other files
    assert run("snapshot", "documents", "kept", "--tag", "a/b").exit_code == 2


def test_tags_that_are_written_at_once_all_stay(folder: Path) -> None:
    image = image_of({GroupVersion(key): each for key, each in DOCUMENTS.items()})
    tags = [f"t{number}" for number in range(24)]
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda tag: write_image(image, folder / "new/kept", tag=tag), tags))
    for tag in tags:
        assert len(Layout(f"oci:new/kept:{tag}").documents()) == len(DOCUMENTS)


@pytest.mark.parametrize("word", ["oci:kept", "oci:kept:latest", f"oci:kept@{DIGEST}", "oci:kept.tar"])
def test_every_command_takes_the_word(folder: Path, word: str) -> None:
    (folder / "widget.yaml").write_bytes(MANIFEST)
    assert run("diff", "documents", word).stdout == "no changes\n"
    assert run("snapshot", word, "again.tar").exit_code == 0
    assert (folder / "again.tar").read_bytes() == (folder / "kept.tar").read_bytes()
    for option in ("--file", "--directory"):
        assert "How large." in run("explain", "widgets.spec.size", option, word).stdout
        assert "widget.spec.size" in run("search", "large", option, word).stdout.lower()
        told = run("validate", "widget.yaml", option, word)
        assert (told.exit_code, "spec.size" in told.stdout) == (1, True)
        assert run("get", option, word).stdout.split() == sorted(DOCUMENTS)
    assert orjson.loads(run("get", V1, "--file", word).stdout) == DOCUMENTS[V1]
    assert f"Error: {word} has no apis/none/v1; " in run("get", "apis/none/v1", "--file", word).output
    assert run("upgrade", "widget.yaml", "--from", word, "--to", word, "--release", "1.36").exit_code in {
        0,
        1,
    }
    assert load(word) == DOCUMENTS


def test_a_folder_that_is_a_snapshot_says_how_it_is_named() -> None:
    told = run("explain", "widgets", "--directory", "kept")
    assert (told.exit_code, "; it is a snapshot: name it as oci:kept\n" in told.output) == (3, True)


def test_definitions_are_what_an_apiserver_publishes(folder: Path) -> None:
    named = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 9}}}
    made = definition(FIELDS)
    made["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["metadata"] = named
    (folder / "crds").mkdir()
    (folder / "crds/widgets.json").write_bytes(orjson.dumps(made))
    assert run("snapshot", "crds", "crds.tar").exit_code == 0
    assert b"x-specmux" not in (folder / "crds.tar").read_bytes()
    assert served(folder / "crds") == served(Path("oci:crds.tar"))


def served(path: Path, change: Callable[[], None] | None = None, wanted: int = 0) -> Any:
    """The root of a service over it; after ``change``, once it has ``wanted`` group-versions."""

    async def ask() -> Any:
        async with service(directory("files", path)) as client:
            await client.says_ready()
            if change is not None:
                change()
                await client.until(lambda: len(client.app.publisher.current.entries) == wanted)
            return await client.paths()

    return asyncio.run(ask())


def test_service_serves_a_snapshot_as_the_folder_it_is_of(folder: Path) -> None:
    root = served(folder / "documents")
    assert root.keys() == DOCUMENTS.keys()
    assert served(Path("oci:kept")) == served(Path(f"oci:{folder}/kept.tar:latest")) == root


def test_service_follows_a_tag_that_moves(folder: Path) -> None:
    def move() -> None:
        (folder / "documents" / f"{V2}.json").unlink()
        assert run("snapshot", "documents", "kept").exit_code == 0

    assert served(Path("oci:kept:latest"), move, len(DOCUMENTS) - 1).keys() == DOCUMENTS.keys() - {V2}


def test_service_names_a_damaged_blob_and_serves_the_others(folder: Path) -> None:
    blob = next(each.blob for each in Layout("oci:kept").documents() if each.group_version == V1)
    (folder / "kept" / blob.path).write_bytes(b"x" * blob.size)

    async def ask() -> Any:
        async with service(directory("files", Path("oci:kept"))) as client:
            await client.ready()
            return (await client.paths()).keys(), orjson.dumps(await client.status()).decode()

    keys, status = asyncio.run(ask())
    assert keys == DOCUMENTS.keys() - {V1}
    assert f"{blob.path}): its bytes do not have its digest" in status


def test_configuration_names_a_snapshot_beside_it(folder: Path) -> None:
    config = folder / "below" / "specmux.yaml"
    config.parent.mkdir()
    config.write_text("backends: [{name: a, directory: 'oci:../kept:latest'}]")
    told = run("check-config", str(config), "--probe")
    assert (told.exit_code, "probe a: snapshot, 3 documents" in told.output) == (0, True), told.output
    config.write_text("backends: [{name: a, directory: 'oci:nothing'}]")
    assert "nothing: No such file or directory" in run("check-config", str(config)).output
    assert run("init", "--directory", "oci:kept", "-").exit_code == 0


@pytest.mark.parametrize(
    "release", [pytest.param(each, marks=marks(f"data/k8s-pairs/{each}/v3")) for each in NATIVE[:1]]
)
def test_published_documents_come_back_byte_for_byte(release: str, folder: Path) -> None:
    published = {key: canonical(parse(read(path))) for key, path in documents(release).items()}
    assert run("snapshot", str(DATA / "k8s-pairs" / release / "v3"), "kept").exit_code == 0
    layout = Layout("oci:kept")
    assert {each.group_version: layout.read(each) for each in layout.documents()} == published
