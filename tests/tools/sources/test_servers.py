"""Documents of servers and clusters, over real sockets."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml

from fakes.apiserver import FakeAPIServer, document, swagger
from fakes.openapi_server import Reference, Reply
from fakes.openapi_thread import serving_in_thread
from running.event_loop import serving
from specmux_aggregator.errors import SourceError, SourceUnreachable
from specmux_converters.group_versions import GroupVersion
from specmux_tools.sources import SourceOptions, open_documents
from specmux_tools.sources.access import access_of

CORE, APPS = GroupVersion("api/v1"), GroupVersion("apis/apps/v1")


@pytest.fixture
def server() -> Iterator[FakeAPIServer]:
    with serving(FakeAPIServer({key: document(key) for key in (CORE, APPS)})) as running:
        yield running


def options(url: str, folder: Path, **more: Any) -> SourceOptions:
    return SourceOptions(server=url, cache_directory=folder / "cache", **more)


def test_only_what_is_loaded_is_fetched(server: FakeAPIServer, tmp_path: Path) -> None:
    with open_documents(options(server.url, tmp_path)) as source:
        assert source.group_versions() == (CORE, APPS)
        assert list(source.load([APPS]).documents.documents) == [APPS]
    assert server.count("/openapi/v3/apis/apps/v1") == 1
    assert server.count("/openapi/v3/api/v1") == 0


def test_the_next_command_fetches_nothing_again(server: FakeAPIServer, tmp_path: Path) -> None:
    for _ in range(2):
        with open_documents(options(server.url, tmp_path)) as source:
            assert list(source.load().documents.documents) == [CORE, APPS]
    assert len(server.log) == 3


def test_offline_uses_what_is_stored(server: FakeAPIServer, tmp_path: Path) -> None:
    with open_documents(options(server.url, tmp_path)) as source:
        source.load()
    asked = len(server.log)
    with open_documents(options(server.url, tmp_path, offline=True)) as source:
        assert list(source.load().documents.documents) == [CORE, APPS]
    assert len(server.log) == asked


def test_offline_with_an_empty_cache_says_how_to_fill_it(tmp_path: Path) -> None:
    with (
        open_documents(options("http://127.0.0.1:1", tmp_path, offline=True)) as source,
        pytest.raises(SourceError, match="without --offline"),
    ):
        source.load()


def test_offline_without_this_document_says_how_to_fill_it(server: FakeAPIServer, tmp_path: Path) -> None:
    with open_documents(options(server.url, tmp_path)) as source:
        source.load([GroupVersion(CORE)])
    with (
        open_documents(options(server.url, tmp_path, offline=True)) as source,
        pytest.raises(SourceError, match="apis/apps/v1 is not in the cache; run the command once without"),
    ):
        source.load([GroupVersion(APPS)])


def test_a_server_of_swagger_alone_is_converted(tmp_path: Path) -> None:
    with (
        serving(FakeAPIServer(None, swagger("apis/batch/v1"))) as server,
        open_documents(options(server.url, tmp_path)) as source,
    ):
        assert source.group_versions() == ("apis/batch/v1",)
        assert source.load().documents.documents[GroupVersion("apis/batch/v1")]["openapi"] == "3.0.0"


def test_a_document_that_fails_is_told_and_the_others_are_there(tmp_path: Path) -> None:
    listed = {key: document(key) for key in (CORE, APPS)}
    fake = FakeAPIServer({CORE: listed[CORE]})
    fake.listed = listed
    with serving(fake), open_documents(options(fake.url, tmp_path)) as source:
        loaded = source.load()
    assert list(loaded.documents.documents) == [CORE]
    assert [each.where for each in loaded.unread] == [APPS]
    assert "404" in loaded.unread[0].reason


def test_resources_are_read_off_documents_without_aggregated_discovery(tmp_path: Path) -> None:
    paths = {
        "/api/v1/pods": {
            "get": {
                "x-kubernetes-action": "list",
                "x-kubernetes-group-version-kind": {"group": "", "version": "v1", "kind": "Pod"},
            }
        }
    }
    body = orjson.dumps({"openapi": "3.0.0", "info": {}, "paths": paths})
    with (
        serving_in_thread(Reference({CORE: body})) as server,
        open_documents(options(server.url, tmp_path)) as source,
    ):
        (pods,) = source.resources()[CORE]
    assert (pods.name, pods.kind.kind) == ("pods", "Pod")


def test_resources_are_those_of_discovery_where_it_is_aggregated(
    server: FakeAPIServer, tmp_path: Path
) -> None:
    with open_documents(options(server.url, tmp_path)) as source:
        (things,) = source.resources()[CORE]
    assert (things.name, things.kind.kind) == ("things", "Thing")
    assert server.count("/openapi/v3/") == 0


@pytest.mark.parametrize(
    ("status", "step"), [(401, "--token-file"), (403, "system:discovery"), (404, "check the URL")]
)
def test_a_refusal_names_the_next_step(tmp_path: Path, status: int, step: str) -> None:
    with (
        serving_in_thread(lambda _: Reply(status)) as server,
        open_documents(options(server.url, tmp_path)) as source,
        pytest.raises(SourceUnreachable, match=step),
    ):
        source.group_versions()


def test_nobody_there_is_an_error_in_one_line(tmp_path: Path) -> None:
    with (
        open_documents(options("http://127.0.0.1:1", tmp_path)) as source,
        pytest.raises(SourceUnreachable, match=r"^http://127\.0\.0\.1:1.*refused"),
    ):
        source.load()


def config(tmp_path: Path, url: str, **user: Any) -> Path:
    path = tmp_path / "config"
    content = {
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": url}}],
        "users": [{"name": "u", "user": user}],
    }
    path.write_text(yaml.safe_dump(content))
    return path


def test_a_kubeconfig_says_where_and_as_whom(
    server: FakeAPIServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(config(tmp_path, server.url, token="secret")))
    with open_documents(SourceOptions(cache_directory=tmp_path / "cache")) as source:
        assert source.where == server.url
        source.load([CORE])
    assert server.headers[0]["Authorization"] == "Bearer secret"
    with open_documents(
        SourceOptions(cache_directory=tmp_path / "cache", context="here", offline=True)
    ) as source:
        assert list(source.load([CORE]).documents.documents) == [CORE]


def test_entries_of_a_context_outlive_its_token(tmp_path: Path) -> None:
    partitions = {
        access_of(SourceOptions(kubeconfig=config(tmp_path, "http://127.0.0.1:1", token=token))).partition
        for token in ("one", "two")
    }
    assert partitions == {"context-here"}


def test_an_unknown_context_lists_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r'no context "prod"; known: here'):
        access_of(SourceOptions(kubeconfig=config(tmp_path, "http://127.0.0.1:1"), context="prod"))


def test_without_anything_the_options_are_named(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"no kubeconfig.* --server URL"):
        access_of(SourceOptions(), {"HOME": str(tmp_path)})


def test_a_bad_url_is_refused_without_being_repeated() -> None:
    with pytest.raises(SourceError, match=r"--server: .*user name or password") as caught:
        access_of(SourceOptions(server="https://me:secret@host"))
    assert "secret" not in str(caught.value)
