"""specmux check-config as users run it: what it prints, and how it ends."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import click
import orjson
import pytest
from click.testing import CliRunner, Result

from deadline import DEADLINE
from fakes.faulty_backend import FaultyBackend, document, with_status
from specmux_aggregator.commands.check_config import check_config
from specmux_aggregator.errors import InvalidConfig, NoBackendReachable, SpecmuxError, WorkerFailed
from specmux_aggregator.exits import report_errors


@contextlib.contextmanager
def serving(*servers: FaultyBackend) -> Iterator[None]:
    """The servers on an event loop of their own, since the command brings its own too."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        for server in servers:
            asyncio.run_coroutine_threadsafe(server.listen(), loop).result(DEADLINE)
        yield
    finally:
        for server in servers:
            asyncio.run_coroutine_threadsafe(server.refuse(), loop).result(DEADLINE)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(DEADLINE)
        loop.close()


check_config_module = sys.modules[check_config.callback.__module__]  # type: ignore[union-attr]


def checked(path: Path, text: str, *arguments: str, env: dict[str, str] | None = None) -> Result:
    path.write_text(text)
    return CliRunner().invoke(check_config, [str(path), *arguments], env=env)


KUBECONFIG = """
current-context: main
contexts: [{name: main, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: 'https://10.1.2.3:6443', insecure-skip-tls-verify: true}}]
users: [{name: u, user: {token: secret-token}}]
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "specmux.yaml"


def test_prints_what_was_understood(path: Path) -> None:
    (path.parent / "docs").mkdir()
    result = checked(
        path,
        """
listen: {port: 81}
memory: {documents_bytes: 1MiB}
backends:
- name: core
  url: https://core/
  priority: 2
  group_versions: [version, api/v1]
  tls: {insecure_skip_verify: true}
- {name: docs, directory: docs}
""",
        env={"SPECMUX_LOG_LEVEL": "debug"},
    )
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "listen.port: 81",
        "memory.documents_bytes: 1048576",
        "log.level: debug",
        "backend core: https://core; kind auto; priority 2; only api/v1, version; certificate NOT verified",
        f"backend docs: {path.parent}/docs; kind directory",
    ]
    assert result.stderr == ""


def test_prints_every_credential_by_its_file_and_never_its_content(path: Path) -> None:
    (path.parent / "token").write_text("s3cret")
    result = checked(
        path,
        """
backends:
- name: a
  url: https://a
  tls: {ca_file: ca.crt, cert_file: c.crt}
  credentials: {token_file: token, remote_user: specmux}
""",
    )
    folder = path.parent
    assert result.stdout == (
        f"backend a: https://a; kind auto; CA {folder}/ca.crt; client certificate {folder}/c.crt;"
        f" token {folder}/token; as user specmux\n"
    )
    assert "s3cret" not in result.output


@pytest.mark.parametrize(
    ("error", "code"), [(InvalidConfig("x"), 3), (NoBackendReachable("x"), 4), (WorkerFailed("x"), 5)]
)
def test_every_error_has_its_exit_code(error: SpecmuxError, code: int) -> None:
    @click.command()
    def failing() -> None:
        with report_errors():
            raise error

    result = CliRunner().invoke(failing)
    assert (result.exit_code, result.stderr) == (code, "Error: x\n")


def test_large_directory_is_not_counted_to_the_end(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_config_module, "DIRECTORY_FILES_MAX", 3)
    for number in range(5):
        (path.parent / f"{number}.json").write_text("{}")
    result = checked(path, "backends: [{name: a, directory: .}]", "--probe")
    assert "probe a: directory, 3 files or more" in result.stdout


def test_says_so_when_there_are_no_backends(path: Path) -> None:
    result = checked(path, "")
    assert (result.exit_code, result.stdout) == (0, "no backends\n")


def test_warns_of_files_that_cannot_be_read_now(path: Path) -> None:
    text = "backends: [{name: a, url: 'https://a', tls: {ca_file: ca.crt}, credentials: {token_file: token}}]"
    result = checked(path, text)
    assert result.exit_code == 0
    assert result.stderr.splitlines() == [
        f"warning: backend a: tls.ca_file: {path.parent}/ca.crt: No such file or directory",
        f"warning: backend a: credentials.token_file: {path.parent}/token: No such file or directory",
    ]


def test_exit_3_when_the_configuration_is_invalid(path: Path) -> None:
    result = checked(path, "listen: {port: x}\nlog: {level: y}")
    assert result.exit_code == 3
    assert result.stdout == ""
    assert [line.count(str(path)) for line in result.stderr.splitlines()] == [1, 1]


def test_exit_3_when_the_file_is_not_there(path: Path) -> None:
    assert CliRunner().invoke(check_config, [str(path)]).exit_code == 3


@pytest.mark.parametrize("arguments", [[], ["a", "b"], ["--nonsense", "a"]])
def test_exit_2_when_it_is_called_wrongly(arguments: list[str]) -> None:
    assert CliRunner().invoke(check_config, arguments).exit_code == 2


def test_probe_asks_every_backend(path: Path) -> None:
    modern = FaultyBackend({"apis/a/v1": document("apis/a/v1"), "version": document("version")})
    old = FaultyBackend(swagger=orjson.dumps({"swagger": "2.0"}))
    broken = FaultyBackend(fault=with_status(500))
    docs = path.parent / "docs" / "apis"
    docs.mkdir(parents=True)
    (docs / "v1.json").write_bytes(document("apis/v1"))
    with serving(modern, old, broken):
        result = checked(
            path,
            f"""
backends:
- {{name: modern, url: '{modern.url}', group_versions: [apis/a/v1]}}
- {{name: old, url: '{old.url}'}}
- {{name: v3-only, kind: v3, url: '{old.url}'}}
- {{name: v2-only, kind: v2, url: '{modern.url}'}}
- {{name: broken, url: '{broken.url}'}}
- {{name: refusing, url: 'http://127.0.0.1:1'}}
- {{name: docs, directory: docs}}
- {{name: empty, directory: nowhere}}
""",
            "--probe",
        )
    probes = [line.removeprefix("probe ") for line in result.stdout.splitlines() if line.startswith("probe ")]
    assert probes[:1] + probes[2:] == [
        "modern: v3, 1 group-version, 1 ignored",
        "v3-only: not_found: answered 404",
        "v2-only: not_found: answered 404",
        "broken: server_error: answered 500",
        "refusing: refused: connection refused",
        "docs: directory, 1 file",
        "empty: directory, 0 files",
    ]
    assert probes[1].startswith("old: v2, ")
    assert probes[1].endswith(" bytes of application/json")
    assert result.exit_code == 0


@pytest.mark.parametrize(
    "backends", ["[]", "[{name: a, url: 'http://127.0.0.1:1'}, {name: b, directory: nowhere}]"]
)
def test_exit_4_when_no_backend_is_reachable(backends: str, path: Path) -> None:
    result = checked(path, f"backends: {backends}", "--probe")
    assert result.exit_code == 4
    assert result.stderr.splitlines()[-1] == "Error: no backend reachable"


def test_cluster_is_read_and_told_without_its_secrets(path: Path) -> None:
    (path.parent / "kubeconfig").write_text(KUBECONFIG)
    text = "kubernetes: {kubeconfig: kubeconfig, service_token_file: nowhere}"
    result = checked(path, text)
    assert result.exit_code == 0
    assert result.stdout.splitlines()[-1] == (
        "cluster main: https://10.1.2.3:6443; kind auto; certificate NOT verified; token inline"
    )
    assert result.stderr.startswith("warning: kubernetes.service_token_file: ")
    assert "secret-token" not in result.output


def test_cluster_that_cannot_be_read_is_an_invalid_configuration(path: Path) -> None:
    result = checked(path, "kubernetes: {kubeconfig: nowhere}")
    assert result.exit_code == 3
    assert "nowhere" in result.stderr


def test_file_for_a_pod_is_checked_outside_of_one_but_not_probed(path: Path) -> None:
    outside = {"KUBERNETES_SERVICE_HOST": ""}
    result = checked(path, "kubernetes: {in_cluster: true}", env=outside)
    assert result.exit_code == 0
    assert result.stdout == "kubernetes.in_cluster: true\n"
    assert result.stderr.startswith("warning: kubernetes.in_cluster: not inside a cluster")
    result = checked(path, "kubernetes: {in_cluster: true}", "--probe", env=outside)
    assert result.exit_code == 3
    assert "not inside a cluster" in result.stderr


def test_apiserver_of_the_cluster_is_probed(path: Path) -> None:
    server = FaultyBackend()
    with serving(server):
        (path.parent / "kubeconfig").write_text(KUBECONFIG.replace("https://10.1.2.3:6443", server.url))
        result = checked(path, "kubernetes: {kubeconfig: kubeconfig}", "--probe")
    assert "probe kubernetes: v3, 0 group-versions" in result.stdout
