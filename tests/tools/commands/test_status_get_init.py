"""``specmux status``, ``get`` and ``init`` as users run them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml
from click.testing import CliRunner, Result
from jsonschema import Draft202012Validator

from deadline import DEADLINE
from fakes.apiserver import FakeAPIServer, document
from fakes.openapi_server import Reference, Reply
from fakes.openapi_thread import serving_in_thread
from running.process import specmux, write_documents
from running.service import backend, service
from specmux_aggregator.cli import main
from specmux_aggregator.config.json_schema import config_schema
from specmux_aggregator.config.source import ConfigSource
from specmux_tools.commands.get import changes

ROOT = Path(__file__).resolve().parents[3]


def run(*arguments: Any) -> Result:
    return CliRunner().invoke(main, [str(each) for each in arguments], prog_name="specmux")


@contextmanager
def serving(*, is_down: bool = False) -> Iterator[str]:
    """A service in front of one apiserver, on a loop in a thread; its URL."""
    ready, stop, found = threading.Event(), threading.Event(), []

    async def main() -> None:
        server = FakeAPIServer({key: document(key) for key in ("api/v1", "apis/apps/v1")})
        await server.start()
        others = [backend("down", "http://127.0.0.1:1")] if is_down else []
        async with service(backend("one", server.url), *others) as client:
            await client.says_ready()
            found.append(client.base)
            ready.set()
            await asyncio.to_thread(stop.wait, 30)
        await server.stop()

    thread = threading.Thread(target=asyncio.run, args=(main(),))
    thread.start()
    try:
        assert ready.wait(DEADLINE)
        yield found[0]
    finally:
        stop.set()
        thread.join(DEADLINE)


def test_status_says_how_everything_is() -> None:
    with serving() as url:
        result = run("status", url)
        value = orjson.loads(run("status", url, "-o", "json").stdout)
    lines = result.stdout.splitlines()
    assert result.exit_code == 0
    assert lines[0].endswith(f"at {url}: ready, 2 group-versions of 1 backend")
    (row,) = [line.split() for line in lines if line.startswith("one ")]
    assert row[:4] == ["one", "up", "v3", "2"]
    known = value["groupVersions"]["apis/apps/v1"]
    assert known["bytes"] is None  # nobody has asked for it yet
    assert ["apis/apps/v1", "one", known["hash"][:12], "-", "native", "-"] in [line.split() for line in lines]


def test_status_of_a_service_with_a_dead_backend_exits_with_1() -> None:
    with serving(is_down=True) as url:
        result = run("status", url)
    assert result.exit_code == 1
    assert any(line.startswith("down failed: refused") for line in result.stdout.splitlines())


def test_status_of_many_group_versions_is_read_whole() -> None:
    """A body comes in pieces."""
    with serving() as url:
        value = orjson.loads(run("status", url, "-o", "json").stdout)
    known = value["groupVersions"]["apis/apps/v1"]
    value["groupVersions"] |= {f"apis/g{number}.example.com/v1": known for number in range(4000)}
    body = orjson.dumps(value)
    assert len(body) > 1_000_000
    fields = [("Content-Type", "application/json")]
    with serving_in_thread(lambda request: Reply(body=body, headers=fields)) as server:
        result = run("status", server.url)
    assert result.exit_code == 0, result.output
    assert "apis/g3999.example.com/v1" in result.stdout


def test_a_status_of_something_else_is_refused_in_words() -> None:
    with serving_in_thread(lambda request: Reply(body=b'{"version": "x", "backends": {}}')) as server:
        result = run("status", server.url)
    assert (result.exit_code, result.exception.__class__) == (4, SystemExit)
    assert "no page of a specmux service, or of a much older one: it has no groupVersions" in result.output


@pytest.mark.parametrize("name", ["apps/v1", "apis/apps/v1", "/openapi/v3/apis/apps/v1"])
def test_get_prints_a_document(name: str) -> None:
    with serving_in_thread(Reference({"apis/apps/v1": document("apis/apps/v1")})) as server:
        as_json = run("get", name, "--server", server.url)
        as_yaml = run("get", name, "--server", server.url, "-o", "yaml")
    assert (
        orjson.loads(as_json.stdout)
        == yaml.safe_load(as_yaml.stdout)
        == orjson.loads(document("apis/apps/v1"))
    )


def test_get_prints_a_smaller_form(tmp_path: Path) -> None:
    path = tmp_path / "apis/apps/v1.json"
    path.parent.mkdir(parents=True)
    schemas = {"S": {"type": "string"}}
    path.write_bytes(
        orjson.dumps(
            {
                "openapi": "3.0.0",
                "info": {},
                "paths": {"/apis/apps/v1/": {}},
                "components": {"schemas": schemas},
            }
        )
    )
    result = run("get", "apps/v1", "--profile", "schemas", "--directory", str(tmp_path))
    assert result.exit_code == 0, result.output
    assert orjson.loads(result.stdout) == {
        "openapi": "3.0.0", "info": {}, "paths": {}, "components": {"schemas": schemas},
    }  # fmt: skip


def test_get_lists_group_versions(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(document("api/v1"))
    (tmp_path / "b.json").write_bytes(document("apis/apps/v1"))
    assert run("get", "--directory", tmp_path).stdout == "api/v1\napis/apps/v1\n"
    listed = orjson.loads(run("get", "-o", "json", "--directory", tmp_path).stdout)
    assert listed == {"groupVersions": ["api/v1", "apis/apps/v1"]}
    as_text, as_json = (run("get", "v1", "-o", each, "--directory", tmp_path) for each in ("text", "json"))
    assert as_text.stdout == as_json.stdout != ""


@pytest.mark.parametrize(
    ("last", "now", "asked", "lines"),
    [
        ({}, {"a": "1" * 20}, None, ["a 111111111111"]),
        ({"a": "1" * 20}, {"a": "2" * 20}, None, ["a 111111111111 -> 222222222222"]),
        ({"a": "1"}, {}, None, ["a is gone"]),
        ({"a": "1"}, {"a": "1"}, None, []),
        ({}, {"apis/apps/v1": "1", "api/v1": "2"}, "apps/v1", ["apis/apps/v1 1"]),
        ({}, {"api/v1": "2"}, "apps/v1", []),
    ],
)
def test_watching_prints_what_changed(
    last: dict[str, str], now: dict[str, str], asked: str | None, lines: list[str]
) -> None:
    assert list(changes(last, now, asked)) == lines


KUBECONFIG = """
current-context: second
contexts:
- {name: first, context: {cluster: c, user: u}}
- {name: second, context: {cluster: c, user: u}}
clusters: [{name: c, cluster: {server: "https://127.0.0.1:6443"}}]
users: [{name: u, user: {token: secret}}]
"""


def test_init_writes_what_serve_reads(tmp_path: Path) -> None:
    file = tmp_path / "new" / "specmux.yaml"  # folders are made, as for every file that a command writes
    assert run("init", file).exit_code == 0
    assert ConfigSource(file=file).read().backends == ()
    assert file.read_text().startswith("# yaml-language-server: $schema=specmux.schema.json\n")
    written = orjson.loads((file.parent / "specmux.schema.json").read_bytes())
    Draft202012Validator.check_schema(written)
    Draft202012Validator(written).validate(yaml.safe_load(file.read_text()))


def test_init_of_standard_output_writes_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = run("init", "-")
    assert result.exit_code == 0
    run("init", "specmux.yaml")
    assert result.output == (tmp_path / "specmux.yaml").read_text()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["specmux.schema.json", "specmux.yaml"]


def test_init_of_a_cluster_writes_the_settings_of_that_cluster(tmp_path: Path) -> None:
    file, kubeconfig = tmp_path / "specmux.yaml", tmp_path / "kubeconfig"
    kubeconfig.write_text(KUBECONFIG)
    assert run("init", file, "--kubeconfig", kubeconfig).exit_code == 0
    written = ConfigSource(file=file).read().kubernetes
    assert (written.kubeconfig, written.context) == (kubeconfig, "second")  # the current one
    assert run("init", file, "--kubeconfig", kubeconfig, "--context", "first", "--force").exit_code == 0
    assert ConfigSource(file=file).read().kubernetes.context == "first"


def test_init_of_a_folder_writes_what_is_served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file may lie elsewhere than where it was written from."""
    file = tmp_path / "etc" / "specmux.yaml"
    write_documents(tmp_path / "my documents", {"apis/example.com/v1": document("apis/example.com/v1")})
    monkeypatch.chdir(tmp_path)
    assert (
        run("init", file, "--directory", "my documents", "--backend", "down=http://127.0.0.1:1").exit_code
        == 0
    )
    text = file.read_text()
    Draft202012Validator(config_schema()).validate(yaml.safe_load(text))
    checked = run("check-config", file)
    assert (checked.exit_code, "my-documents" in checked.output) == (0, True), checked.output
    with specmux("serve", "--config", str(file), "--listen-port", "0") as process:
        process.until_ready()
        process.until(lambda: "apis/example.com/v1" in process.paths(), "the document")
    assert (
        run("init", tmp_path / "no.yaml", "--backend", "a=http://h", "--backend", "a=http://h").exit_code == 3
    )
    assert not (tmp_path / "no.yaml").exists()


def test_init_of_a_cluster_that_is_not_there_writes_nothing(tmp_path: Path) -> None:
    file, kubeconfig = tmp_path / "specmux.yaml", tmp_path / "kubeconfig"
    kubeconfig.write_text(KUBECONFIG)
    result = run("init", file, "--kubeconfig", kubeconfig, "--context", "third")
    assert result.exit_code == 3
    assert 'no context "third"; known: first, second' in result.output
    assert not file.exists()


def test_every_setting_of_the_written_file_may_be_uncommented(tmp_path: Path) -> None:
    file = tmp_path / "specmux.yaml"
    run("init", file)
    lines = file.read_text().partition("# Servers and folders")[0].splitlines()
    settings = [line[2:] for line in lines if line.startswith(("# ", "#   ")) and ":  #" not in line]
    settings = [line for line in settings if line.partition(":")[0].strip().replace("_", "").isalpha()]
    text = "\n".join(line for line in settings if not line.startswith(("yaml-", "- ", "  directory")))
    listed = yaml.safe_load(text)
    assert {"listen", "polling", "limits", "log"} <= listed.keys()
    Draft202012Validator(config_schema()).validate(listed)


def test_the_example_is_valid_and_names_the_schema_that_lies_beside_it() -> None:
    schema = ROOT / "docs" / "specmux.schema.json"
    assert orjson.loads(schema.read_bytes()) == config_schema(), (
        "run: specmux init --schema > docs/specmux.schema.json"
    )
    example = (ROOT / "docs" / "specmux.example.yaml").read_text()
    assert example.startswith("# yaml-language-server: $schema=specmux.schema.json\n")
    Draft202012Validator(config_schema()).validate(yaml.safe_load(example))


@pytest.mark.parametrize(
    "text",
    [
        "listen: {prot: 1}",
        "listen: {port: eighty}",
        "listen: {port: 70000}",
        "auth: {mode: oauth}",
        "lisen: {}",
        "memory: {documents_bytes: many}",
        "backends: [{url: 'http://a'}]",
        "backends: [{name: a}]",
        "backends: [{name: a, url: 'http://a', directory: b}]",
        "proxy: everything",
        "auth: {audiences: []}",
    ],
)
def test_the_schema_refuses_what_the_reader_refuses(text: str, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(text)
    assert run("check-config", tmp_path / "a.yaml").exit_code == 3
    assert not Draft202012Validator(config_schema()).is_valid(yaml.safe_load(text))


MTLS = """\
auth: {mode: mtls, client_ca_file: a, client_names: [b]}
listen: {tls_cert_file: a, tls_key_file: b}
"""


@pytest.mark.parametrize(
    "text",
    [
        "",
        "listen:",
        "proxy: resources",
        "memory: {documents_bytes: 64MiB}",
        "memory: {documents_bytes: 1}",
        "backends: []",
        MTLS,
    ],
)
def test_the_schema_takes_what_the_reader_takes(text: str, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(text)
    assert run("check-config", tmp_path / "a.yaml").exit_code == 0
    Draft202012Validator(config_schema()).validate(yaml.safe_load(text))
