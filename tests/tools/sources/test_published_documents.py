from __future__ import annotations

import gzip
import io
import json
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from click.testing import CliRunner, Result

from data.built_in_swagger import without_enums
from fakes.openapi_server import Reply, Request
from fakes.openapi_thread import ThreadedServer, serving_in_thread
from specmux_aggregator.backend_sources.release_files import ReleaseFiles
from specmux_aggregator.built_in_releases import built_in_releases
from specmux_aggregator.cli import main
from specmux_converters.group_versions import GroupVersion
from specmux_tools.sources.releases import ReleaseSource
from specmux_tools.sources.remote.published_documents import published_url

APPS = GroupVersion("apis/apps/v1")
RELEASE = "1.36"
KEYS = built_in_releases().group_versions(RELEASE)
MODULE = built_in_releases().source_of(RELEASE)[0]
VERSION = MODULE.partition("@")[2]
FOLDER = "api/openapi-spec/v3"
NOTE = 'without descriptions: "specmux cache fetch kubernetes:1.36" gets them, once'


def described(document: dict[str, Any]) -> dict[str, Any]:
    """With a made description of each schema and field."""
    components = document.get("components") or {}
    schemas = {}
    for name, schema in (components.get("schemas") or {}).items():
        fields = {
            field: {
                **value,
                "description": f"{'Zebra' if field == 'replicas' else 'Plain'} prose of {field}.",
            }
            for field, value in (schema.get("properties") or {}).items()
        }
        inner = {"properties": fields} if fields else {}
        schemas[name] = {**schema, **inner, "description": f"Prose of {name}."}
    return {**document, "components": {**components, "schemas": schemas}} if schemas else document


@pytest.fixture(scope="module")
def published() -> dict[str, bytes]:
    """By name, as Kubernetes publishes them."""
    return {
        f"{key.replace('/', '__')}_openapi.json": orjson.dumps(
            without_enums(described(built_in_releases().document(RELEASE, key)))
        )
        for key in KEYS
    }


@pytest.fixture(autouse=True)
def no_cluster(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "SPECMUX_SERVER", "SPECMUX_CACHE_DIRECTORY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def mirror(published: dict[str, bytes]) -> Iterator[ThreadedServer]:
    """Packs each second answer, whatever is asked for."""

    def answer(request: Request) -> Reply:
        folder, _, name = request.path.rpartition("/")
        body = published.get(name) if folder == f"/kubernetes/{VERSION}" else None
        if body is None:
            return Reply(404)
        if len(name) % 2:
            return Reply(200, gzip.compress(body, 1), [("Content-Encoding", "gzip")])
        return Reply(200, body)

    with serving_in_thread(answer) as server:
        yield server


def run(*arguments: object, code: int = 0) -> Result:
    result = CliRunner().invoke(main, [*map(str, arguments)])
    assert result.exit_code == code, (result.output, result.exception)
    return result


def explained(release: str = RELEASE) -> Result:
    return run("explain", "deploy.spec.replicas", "--release", release)


def folder_of(published: dict[str, bytes], folder: Path) -> Path:
    folder.mkdir(parents=True)
    for name, body in published.items():
        (folder / name).write_bytes(body)
    return folder


def tar_of(published: dict[str, bytes], path: Path) -> Path:
    with tarfile.open(path, "w:gz", compresslevel=1) as archive:
        for name, body in published.items():
            member = tarfile.TarInfo(f"kubernetes-1.36.3/{FOLDER}/{name}")
            member.size = len(body)
            archive.addfile(member, io.BytesIO(body))
    return path


def zip_of(published: dict[str, bytes], path: Path) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{MODULE}/test/api__v1_openapi.json", b"no document of the folder")
        for name, body in published.items():
            archive.writestr(f"{MODULE}/{FOLDER}/{name}", body)
    return path


def test_the_default_address_is_kubernetes_repository() -> None:
    assert published_url(RELEASE) == (
        f"https://raw.githubusercontent.com/kubernetes/kubernetes/{VERSION}/{FOLDER}"
    )


def test_documents_of_a_mirror_are_kept_and_used_without_it(mirror: ThreadedServer) -> None:
    place = f"{mirror.url}/kubernetes/{{version}}/"
    assert explained().stderr.count(NOTE) == 1
    run("search", "zebra", "--release", RELEASE, code=1)
    fetched = json.loads(run("cache", "fetch", "kubernetes:1.36", "--from", place, "-o", "json").stdout)

    assert (sorted(fetched["fetched"]), fetched["present"]) == (sorted(KEYS), [])
    assert len(mirror.server.requests) == len(KEYS)
    again = run("cache", "fetch", "1.36", "--from", place)
    assert again.stdout == f"0 fetched, {len(KEYS)} present\n"
    assert len(mirror.server.requests) == len(KEYS)
    mirror.stop()
    assert "OnFailure" in run("explain", "pod.spec.restartPolicy", "--release", RELEASE).stdout
    told = explained()
    assert "Zebra prose of replicas." in told.stdout
    assert told.stderr == ""
    assert "replicas" in run("search", "zebra", "--release", RELEASE).stdout
    assert NOTE.replace("1.36", "1.35") in explained("1.35").stderr


def test_what_was_fetched_before_a_failure_is_kept(
    mirror: ThreadedServer, published: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = f"{KEYS[10].replace('/', '__')}_openapi.json"
    body = published[missing]
    monkeypatch.delitem(published, missing)
    place = f"{mirror.url}/kubernetes/{VERSION}"
    failed = run("cache", "fetch", "kubernetes:1.36", "--from", place, code=4)
    assert f"{place}/{missing}: answered 404; --from names a mirror" in failed.stderr

    monkeypatch.setitem(published, missing, body)
    rest = run("cache", "fetch", "kubernetes:1.36", "--from", place)
    assert rest.stdout == f"{len(KEYS) - 10} fetched, 10 present\n"


@pytest.mark.parametrize("form", ["folder", "sources", "tar", "zip"])
def test_documents_of_a_folder_or_an_archive(form: str, published: dict[str, bytes], tmp_path: Path) -> None:
    match form:
        case "folder":
            place = folder_of(published, tmp_path / "v3")
        case "sources":
            folder_of(published, tmp_path / "kubernetes" / FOLDER)
            place = tmp_path / "kubernetes"
        case "tar":
            place = tar_of(published, tmp_path / "kubernetes.tar.gz")
        case _:
            place = zip_of(published, tmp_path / "kubernetes.zip")
    run("cache", "fetch", "kubernetes:1.36", "--from", place)

    told = explained()
    assert ("Zebra prose of replicas." in told.stdout, told.stderr) == (True, "")


@pytest.mark.parametrize("damage", ["another fact", "no JSON", "missing", "no archive"])
def test_what_is_not_kubernetes_own_is_refused(
    damage: str, published: dict[str, bytes], tmp_path: Path
) -> None:
    place = folder_of(published, tmp_path / "v3")
    file = place / "apis__apps__v1_openapi.json"
    match damage:
        case "another fact":
            file.write_bytes(file.read_bytes().replace(b'"int32"', b'"int64"', 1))
        case "no JSON":
            file.write_bytes(b"<html>log in</html>")
        case "missing":
            file.unlink()
        case _:
            place = file
    refused = run("cache", "fetch", "kubernetes:1.36", "--from", place, code=3).stderr

    assert (str(file) if damage != "missing" else file.name) in refused
    if damage == "another fact":
        assert f"it is not the apis/apps/v1 of {MODULE}" in refused
    told = explained()
    assert ("Zebra" in told.stdout, told.stderr.count(NOTE)) == (False, 1)


def test_a_place_that_is_not_there_and_a_release_that_is_not_known() -> None:
    assert "/nowhere" in run("cache", "fetch", "kubernetes:1.36", "--from", "/nowhere", code=2).stderr
    assert "1.30 to 1.37" in run("cache", "fetch", "kubernetes:1.29", code=2).stderr
    assert "kubernetes:1.N" in run("cache", "fetch", "apps/v1", code=2).stderr


def test_sources_and_pages_have_descriptions_and_do_without_what_was_removed(
    published: dict[str, bytes], tmp_path: Path
) -> None:
    directory = tmp_path / "cache" / "specmux"
    bare = ReleaseSource(RELEASE, directory)
    own = bare.load([APPS]).documents.documents[APPS]
    assert not directory.exists()
    run("cache", "fetch", "kubernetes:1.36", "--from", folder_of(published, tmp_path / "v3"))
    source = ReleaseSource(RELEASE, directory)
    files = ReleaseFiles(RELEASE, directory, max_files=100)

    assert source.load([APPS]).documents.documents[APPS] == described(own)
    assert source.state() != bare.state()
    assert source.hashes().keys() == bare.hashes().keys()
    assert not set(source.hashes().values()) & set(bare.hashes().values())
    assert source.resources() == bare.resources()
    assert orjson.loads(files.read(f"{APPS}.json")) == described(own)

    again = ReleaseSource(RELEASE, directory)
    assert APPS in again.hashes()
    run("cache", "clear")
    assert orjson.loads(files.read(f"{APPS}.json")) == own
    assert again.load([APPS]).documents.documents[APPS] == own
    assert ReleaseSource(RELEASE, directory).state() == bare.state()


def test_only_what_shows_descriptions_says_how_to_get_them(tmp_path: Path) -> None:
    schemas = run("schemas", tmp_path / "out", "--release", RELEASE, "--kinds", "Deployment")

    assert schemas.stderr.count(NOTE) == 1
    assert run("search", "replicas", "--release", RELEASE).stderr.count(NOTE) == 1
    assert NOTE not in run("explain", "deploy", "--release", RELEASE, "-o", "skeleton").stderr
    assert NOTE not in run("get", "apps/v1", "--release", RELEASE).stderr
    kustomize = run("schemas", tmp_path / "out", "--release", RELEASE, "--layout", "kustomize")
    assert NOTE not in kustomize.stderr
    assert NOTE not in run("-q", "explain", "deploy", "--release", RELEASE).stderr
