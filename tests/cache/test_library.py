"""The library as a program meets it: from a kubeconfig, in a REPL, with what can go wrong named."""

from __future__ import annotations

import json
import socket
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme
import yaml

from fakes.bare_authority import BareAuthority
from fakes.openapi_server import Reference, Reply, Request, document
from fakes.openapi_thread import ThreadedServer, serving_in_thread
from specmux_cache import (
    AsyncSchemaCache,
    CacheOptions,
    GroupVersionNotFound,
    KindNotFound,
    KindResource,
    KubeconfigError,
    SchemaCache,
)
from specmux_cache.errors import BadAnswer, NotCached, ServerUnreachable, UnexpectedStatus

KIND = {"group": "apps", "version": "v1", "kind": "Deployment"}
PATHS = {
    "/apis/apps/v1/deployments/{name}": {
        "patch": {
            "x-kubernetes-group-version-kind": KIND,
            "parameters": [{"in": "query", "name": "fieldValidation"}],
        }
    }
}


@pytest.fixture
def server() -> Iterator[ThreadedServer]:
    documents = {"api/v1": document("core"), "apis/apps/v1": document("apps", paths=PATHS)}
    with serving_in_thread(Reference(documents)) as running:
        yield running


def config(folder: Path, url: str, *, cluster: dict[str, Any] | None = None, **user: Any) -> Path:
    path = folder / "config"
    content = {
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": url, **(cluster or {})}}],
        "users": [{"name": "u", "user": user}],
    }
    path.write_text(yaml.safe_dump(content))
    return path


def options(folder: Path, **more: Any) -> CacheOptions:
    return CacheOptions(directory=folder / "cache", **more)


def test_a_kubeconfig_is_enough(
    server: ThreadedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(config(tmp_path, server.url, token="t")))
    with SchemaCache.from_kubeconfig(options=options(tmp_path)) as cache:
        assert list(cache.paths().documents) == ["api/v1", "apis/apps/v1"]
    assert server.server.requests[0].headers["authorization"] == "Bearer t"


def test_entries_of_a_context_outlive_its_token(server: ThreadedServer, tmp_path: Path) -> None:
    for token in ("one", "two"):
        path = config(tmp_path, server.url, token=token)
        with SchemaCache.from_kubeconfig(path, options=options(tmp_path)) as cache:
            cache.schema("apps/v1")
    assert len(server.server.seen("/openapi/v3/apis/apps/v1")) == 1


@pytest.mark.parametrize(
    ("user", "sent"),
    [
        ({"token": "t"}, "Bearer t"),
        ({"tokenFile": "token"}, "Bearer from-file"),
        ({"username": "me", "password": "pw"}, "Basic bWU6cHc="),
        ({}, None),
    ],
)
def test_credentials_are_sent(
    server: ThreadedServer, tmp_path: Path, user: dict[str, str], sent: str | None
) -> None:
    (tmp_path / "token").write_text("from-file\n")
    with SchemaCache.from_kubeconfig(
        config(tmp_path, server.url, **user), options=options(tmp_path)
    ) as cache:
        cache.paths()
    assert server.server.requests[0].headers.get("authorization") == sent


def test_a_program_prints_the_token(server: ThreadedServer, tmp_path: Path) -> None:
    program = tmp_path / "program"
    api = "client.authentication.k8s.io/v1"
    issued = {"apiVersion": api, "kind": "ExecCredential", "status": {"token": "issued"}}
    program.write_text(f"#!/bin/sh\ntest -n \"$KUBERNETES_EXEC_INFO\" && echo '{json.dumps(issued)}'\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    plugin = {"command": "./program", "apiVersion": api}
    path = config(tmp_path, server.url, exec=plugin)
    with SchemaCache.from_kubeconfig(path, options=options(tmp_path)) as cache:
        cache.paths()
    assert server.server.requests[0].headers["authorization"] == "Bearer issued"


def test_the_cluster_certificate_is_trusted_alone(tmp_path: Path) -> None:
    authority = BareAuthority(tmp_path)
    with serving_in_thread(Reference({"api/v1": document("core")}), tls=authority.context) as server:
        cluster = {"certificate-authority": str(authority.ca_file)}
        path = config(tmp_path, server.url, cluster=cluster)
        with SchemaCache.from_kubeconfig(path, options=options(tmp_path)) as cache:
            assert list(cache.paths().documents) == ["api/v1"]
        trustme.CA().cert_pem.write_to_path(tmp_path / "other.crt")
        path = config(tmp_path, server.url, cluster={"certificate-authority": "other.crt"})
        with (
            SchemaCache.from_kubeconfig(path, options=CacheOptions(directory=None)) as cache,
            pytest.raises(Exception, match="certificate was refused"),
        ):
            cache.paths()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "No such file"),
        ("current-context: [", "not YAML"),
        ("- a", "wants a mapping"),
        ("current-context: gone", 'there is no context "gone"; the kubeconfig has no contexts'),
        ("contexts: []", "there is no current-context"),
    ],
)
def test_what_is_wrong_with_a_kubeconfig_is_told(tmp_path: Path, text: str | None, said: str) -> None:
    path = tmp_path / "config"
    if text is not None:
        path.write_text(text)
    with pytest.raises(KubeconfigError, match=said):
        SchemaCache.from_kubeconfig(path)


def test_a_missing_program_is_told_with_its_hint(tmp_path: Path) -> None:
    api = "client.authentication.k8s.io/v1"
    plugin = {"apiVersion": api, "command": "no-such-program", "installHint": "brew install it"}
    with pytest.raises(KubeconfigError, match=r"no-such-program cannot be started: .*; brew install it"):
        SchemaCache.from_kubeconfig(config(tmp_path, "https://a", exec=plugin))


async def test_open_and_close_do_without_a_block(server: ThreadedServer, tmp_path: Path) -> None:
    cache = SchemaCache(server.url, options(tmp_path)).open()
    assert cache.spec("v1")["info"]["title"] == "core"
    cache.close()
    cache.close()
    with pytest.raises(RuntimeError, match=r"not open: .*open\(\)"):
        cache.paths()

    other = await AsyncSchemaCache(server.url, options(tmp_path)).open()
    assert (await other.spec("v1"))["info"]["title"] == "core"
    await other.close()


@pytest.mark.parametrize("name", ["timeout", "root_ttl", "decoded_max"])
def test_option_below_zero_is_named(name: str) -> None:
    with pytest.raises(ValueError, match=f"CacheOptions.{name} is -1"):
        CacheOptions(**{name: -1})


@pytest.mark.parametrize("fields", [{"x y": "a"}, {"x": "s3cret\nX-Evil: 1"}])
def test_header_field_that_cannot_be_sent_is_named_without_its_value(fields: dict[str, str]) -> None:
    for kind in (AsyncSchemaCache, SchemaCache):
        with pytest.raises(ValueError, match="header field") as raised:
            kind("http://127.0.0.1:1", headers=fields)
        assert "s3cret" not in str(raised.value)


def test_paths_may_be_text_and_the_timeout_stands_beside_the_server(
    server: ThreadedServer, tmp_path: Path
) -> None:
    options = CacheOptions(directory=str(tmp_path / "c"))
    with SchemaCache(server.url, options, timeout=7) as cache:
        cache.prefetch()
        assert cache.export(str(tmp_path / "bundle"))
        with pytest.raises(RuntimeError, match="open already"):
            cache.open()
    assert (tmp_path / "c").is_dir()
    assert AsyncSchemaCache(server.url, options, timeout=7).options.timeout == 7
    config = {"current-context": "x", "contexts": [], "clusters": [], "users": []}
    (tmp_path / "config").write_text(json.dumps(config))
    with pytest.raises(KubeconfigError, match='context "x"'):
        SchemaCache.from_kubeconfig(str(tmp_path / "config"))


@pytest.mark.parametrize("background", [True, False])
def test_text_of_an_error_says_how_long_was_waited(background: bool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        memory = CacheOptions(directory=None)
        with (
            SchemaCache(url, memory, timeout=0.2, background=background) as cache,
            pytest.raises(ServerUnreachable, match=r"no whole answer within 0\.2 s"),
        ):
            cache.paths()
    with pytest.raises(ValueError, match="timeout"):
        SchemaCache(url, timeout=0)


def test_wait_that_ends_says_that_time_ran_out(server: ThreadedServer, tmp_path: Path) -> None:
    with (
        SchemaCache(server.url, options(tmp_path)) as cache,
        pytest.raises(GroupVersionNotFound, match=r"was asked for 0\.1 s and has no nope/v1") as caught,
    ):
        cache.wait_for("nope/v1", within=0.1)
    assert caught.value.waited == 0.1


def test_text_of_an_error_cuts_hashes() -> None:
    url = f"http://127.0.0.1:1/openapi/v3/apis/apps/v1?hash={'AB' * 64}"
    error = UnexpectedStatus(500, url=url)
    shown = "http://127.0.0.1:1/openapi/v3/apis/apps/v1?hash=ABABABABABAB…"
    assert (str(error), error.url) == (f"{shown}: the server answered 500", url)


def test_values_are_short_in_a_repl(server: ThreadedServer, tmp_path: Path) -> None:
    with SchemaCache(server.url, options(tmp_path)) as cache:
        assert repr(cache) == f"<SchemaCache {cache.server}, open>"
        assert repr(cache.paths()) == "<Paths: 2 group-versions, age 0 s>"
        assert len(repr(cache.schema("apps/v1"))) < 160
        assert repr(cache.merge()) == "<MergedDocument: 1 path, 0 schemas, 0 renamed, 1 dropped>"
    assert repr(cache) == f"<SchemaCache {cache.server}, closed>"


@pytest.mark.parametrize("kind", [SchemaCache, AsyncSchemaCache])
def test_only_public_names_are_listed_and_each_says_what_it_does(kind: type[Any]) -> None:
    names = dir(kind("http://127.0.0.1:1", CacheOptions(directory=None)))
    assert [name for name in names if name.startswith("_")] == []
    assert {"paths", "schema", "spec", "supports", "from_kubeconfig"} <= set(names)
    calls = [name for name in names if callable(getattr(kind, name, None))]
    assert [name for name in calls if not (getattr(kind, name).__doc__ or "").strip()] == []


def test_a_kind_that_is_not_there_is_no_false(server: ThreadedServer, tmp_path: Path) -> None:
    with SchemaCache(server.url, options(tmp_path)) as cache:
        assert cache.supports("apps/v1", "Deployment")
        assert not cache.supports("apps/v1", "Deployment", "dryRun")
        with pytest.raises(KindNotFound, match="apps/v1 has no Deploymentt") as caught:
            cache.supports("apps/v1", "Deploymentt")
    assert (caught.value.kind, caught.value.group_version) == ("Deploymentt", "apps/v1")


def discovery(group: str, resource: str, kind: str, scope: str) -> bytes:
    served = {
        "resource": resource,
        "responseKind": {"group": group, "version": "v1", "kind": kind},
        "scope": scope,
        "verbs": ["get", "list"],
        "shortNames": [resource[:2]],
    }
    versions = [{"version": "v1", "resources": [served, {"resource": "odd", "responseKind": None}, 3]}]
    items = [{"metadata": {"name": group}, "versions": versions}]
    value = {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": items}
    return json.dumps(value).encode()


@pytest.mark.parametrize("has_background", [True, False])
def test_resources_are_read_from_discovery_and_again_without_the_server(
    tmp_path: Path, has_background: bool
) -> None:
    bodies = {
        "/api": discovery("", "nodes", "Node", "Cluster"),
        "/apis": discovery("apps", "deployments", "Deployment", "Namespaced"),
    }

    def answer(request: Request) -> Reply:
        fields = [("Content-Type", "application/json"), ("ETag", '"1"'), ("Vary", "Accept")]
        return Reply(200, bodies[request.path], fields)

    with serving_in_thread(answer) as server:
        url = server.url
        with SchemaCache(url, options(tmp_path), background=has_background) as cache:
            found = cache.resources()
    assert {(kind.group, kind.version, kind.kind): served for kind, served in found.items()} == {
        ("", "v1", "Node"): KindResource("nodes", False, ("get", "list"), ("no",)),
        ("apps", "v1", "Deployment"): KindResource("deployments", True, ("get", "list"), ("de",)),
    }
    with SchemaCache(url, options(tmp_path), background=has_background, offline=True) as cache:
        assert cache.resources() == found


def test_server_without_aggregated_discovery_is_named(server: ThreadedServer, tmp_path: Path) -> None:
    with SchemaCache(server.url, options(tmp_path)) as cache, pytest.raises(UnexpectedStatus, match="/api"):
        cache.resources()
    with (
        serving_in_thread(lambda _: Reply(200, b'{"kind": "APIVersions"}')) as old,
        SchemaCache(old.url, options(tmp_path)) as cache,
        pytest.raises(BadAnswer, match="aggregated"),
    ):
        cache.resources()


def test_offline_is_an_argument_of_the_client(server: ThreadedServer, tmp_path: Path) -> None:
    with SchemaCache(server.url, options(tmp_path, offline=True), offline=False) as cache:
        cache.schema("apps/v1")
    asked = len(server.server.requests)
    with SchemaCache(server.url, options(tmp_path), offline=True) as cache:
        assert cache.schema("apps/v1").from_cache
        with pytest.raises(NotCached):
            cache.schema("v1")
    assert len(server.server.requests) == asked
