"""``specmux merge`` as users run it, against folders and a real server on loopback."""

from __future__ import annotations

import errno
import os
import socket
from pathlib import Path
from typing import Any

import orjson
import pytest
from click.testing import CliRunner, Result

from fakes.apiserver import FakeAPIServer, document, swagger
from running.event_loop import serving
from specmux_tools.commands.merge import merge


def run(*arguments: Any) -> Result:
    return CliRunner().invoke(merge, [str(each) for each in arguments])


def with_schema(key: str, title: str) -> bytes:
    made = orjson.loads(document(key))
    made["components"] = {"schemas": {"A": {"title": title}}}
    return orjson.dumps(made)


KEYS = ("api/v1", "apis/apps/v1", "apis/batch/v1")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for key in KEYS[:2]:
        path = tmp_path / "docs" / f"{key}.json"
        path.parent.mkdir(parents=True)
        path.write_bytes(with_schema(key, "same"))
    (tmp_path / "docs" / "apis__batch__v1_openapi.json").write_bytes(with_schema(KEYS[2], "other"))
    return tmp_path / "docs"


def test_folder(folder: Path) -> None:
    result = run(folder)
    assert result.exit_code == 0
    merged = orjson.loads(result.stdout_bytes)
    assert list(merged["paths"]) == [f"/{key}/things" for key in KEYS]
    assert merged["components"]["schemas"] == {"A": {"title": "same"}, "A_v2": {"title": "other"}}
    assert result.stderr == "apis/batch/v1: schemas A is A_v2\n"


def test_short_names_and_their_collisions(tmp_path: Path) -> None:
    made = orjson.loads(document("api/v1"))
    named = {"io.k8s.api.core.v1.Event": {"title": "old"}, "io.k8s.api.events.v1.Event": {"title": "new"}}
    pod = {"properties": {"e": {"$ref": "#/components/schemas/io.k8s.api.core.v1.Event"}}}
    made["components"] = {"schemas": {**named, "io.k8s.api.core.v1.Pod": pod}}
    (tmp_path / "api__v1_openapi.json").write_bytes(orjson.dumps(made))
    result = run(tmp_path, "--short-names")
    assert orjson.loads(result.stdout_bytes)["components"]["schemas"] == {
        "Pod": {"properties": {"e": {"$ref": "#/components/schemas/core.v1.Event"}}},
        "core.v1.Event": {"title": "old"},
        "events.v1.Event": {"title": "new"},
    }
    assert result.stderr == (
        "Event is the name of 2 schemas: io.k8s.api.core.v1.Event is core.v1.Event, "
        "io.k8s.api.events.v1.Event is events.v1.Event\n"
    )


def test_every_renaming_is_reported(tmp_path: Path) -> None:
    for key, title in (("api/v1", "x"), ("apis/a/v1", "y")):
        made = orjson.loads(document(key))
        made["components"] = {"schemas": {f"S{number}": {"title": title} for number in range(100)}}
        (tmp_path / f"{key.replace('/', '__')}_openapi.json").write_bytes(orjson.dumps(made))
    assert len(run(tmp_path).stderr.splitlines()) == 100


def test_report_is_of_printable_lines(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(with_schema("api/v1", "x"))
    (tmp_path / "b\n\x1b[31m.json").write_bytes(with_schema("apis/a/v1", "y"))
    assert run(tmp_path).stderr == "b\\n\\x1b[31m.json: schemas A is A_v2\n"


def test_losses_of_swagger_are_counted(tmp_path: Path) -> None:
    made = orjson.loads(swagger("api/v1"))
    listed = {"name": "fields", "in": "query", "type": "array", "items": {"type": "string"}}
    operation = made["paths"]["/api/v1/things"]["get"]
    operation["parameters"] = [{**listed, "collectionFormat": "tsv"}]
    del operation["schemes"]
    (tmp_path / "swagger.json").write_bytes(orjson.dumps(made))
    result = run(tmp_path)
    assert result.exit_code == 0
    assert result.stderr == f"{tmp_path}/swagger.json: 1 loss: 1 × collectionFormat\n"


def test_output_file(folder: Path, tmp_path: Path) -> None:
    result = run(folder, "--output-file", tmp_path / "new" / "merged.json")
    assert (result.exit_code, result.stdout) == (0, "")
    assert (tmp_path / "new" / "merged.json").read_bytes() == run(folder).stdout_bytes


def test_folder_with_swagger_and_yaml(tmp_path: Path) -> None:
    (tmp_path / "swagger.json").write_bytes(swagger("api/v1"))
    (tmp_path / "apps.yaml").write_text(
        "openapi: 3.0.0\ninfo: {title: t, version: v}\npaths: {/apis/apps/v1/: {}}\n"
    )
    merged = orjson.loads(run(tmp_path).stdout_bytes)
    assert merged["openapi"] == "3.0.0"
    assert list(merged["paths"]) == ["/api/v1/things", "/apis/apps/v1/"]


@pytest.mark.parametrize(
    "contents", [{}, {"a.json": b"{"}, {"a.json": b"{}"}, {"a.yaml": b"kind: CustomResourceDefinition"}]
)
def test_folder_that_is_refused(tmp_path: Path, contents: dict[str, bytes]) -> None:
    for name, data in contents.items():
        (tmp_path / name).write_bytes(data)
    result = run(tmp_path)
    assert (result.exit_code, result.stdout) == (3, "")
    assert result.stderr.startswith("Error: ")


def test_folder_that_may_not_be_read_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = os.scandir

    def scandir(path: str) -> Any:  # tests may run as root, who may read everything
        if str(path).endswith("apps"):
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return listed(path)

    monkeypatch.setattr(os, "scandir", scandir)
    result = run(folder)
    assert (result.exit_code, result.stdout) == (3, "")
    assert result.stderr == f"Error: {folder}/apis/apps: Permission denied\n"


def test_group_version_in_two_files_is_joined(folder: Path) -> None:
    (folder / "same.json").write_bytes(swagger("api/v1"))
    (folder / "swagger.json").write_bytes(swagger("api/v1", "2").replace(b"things", b"others"))
    result = run(folder)
    assert result.exit_code == 0
    paths = orjson.loads(result.stdout_bytes)["paths"]
    assert [path for path in paths if path.startswith("/api/")] == ["/api/v1/others", "/api/v1/things"]
    conflict = "api/v1 of swagger.json: /info: another document says it differently"
    assert conflict in result.stderr.splitlines()
    assert "api/v1 of same.json:" not in result.stderr


def test_server_and_folder_give_the_same(folder: Path) -> None:
    titles = ("same", "same", "other")
    bodies = {key: with_schema(key, title) for key, title in zip(KEYS, titles, strict=True)}
    with serving(FakeAPIServer(bodies)) as server:
        assert run(server.url).stdout_bytes == run(folder).stdout_bytes
        assert run(f"{server.url}/").exit_code == 0
        assert run(server.url.replace("http", "HTTP")).exit_code == 0


def test_server_that_speaks_v2_only_is_converted() -> None:
    with serving(FakeAPIServer(None, swagger("apis/old/v1"))) as server:
        merged = orjson.loads(run(server.url).stdout_bytes)
    assert list(merged["paths"]) == ["/apis/old/v1/things"]


def test_token_is_sent(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("secret\n")
    with serving(FakeAPIServer({"api/v1": document("api/v1")})) as server:
        assert run(server.url, "--token-file", tmp_path / "token").exit_code == 0
        assert all(headers["Authorization"] == "Bearer secret" for headers in server.headers)


@pytest.mark.parametrize("body", [b"{", b'{"paths": []}', b"[]", b"{}", swagger("api/v1")])
def test_server_with_a_bad_document_is_refused(body: bytes) -> None:
    with serving(FakeAPIServer({"api/v1": body})) as server:
        result = run(server.url)
    assert (result.exit_code, result.stdout) == (4, "")


def test_server_with_nothing_or_none_at_all_is_refused() -> None:
    for documents in (None, {}):
        with serving(FakeAPIServer(documents)) as server:
            result = run(server.url)
        assert (result.exit_code, result.stdout) == (4, "")
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        result = run(f"http://127.0.0.1:{closed.getsockname()[1]}")
    assert (result.exit_code, result.stdout) == (4, "")
    assert result.stderr.startswith("Error: http://127.0.0.1:")


def test_usage() -> None:
    assert run("/does/not/exist").exit_code == 3
    assert run("http://user:secret@localhost").exit_code == 2
    assert "secret" not in run("http://user:secret@localhost").output
    assert run("kubernetes:1.99").exit_code == 2
