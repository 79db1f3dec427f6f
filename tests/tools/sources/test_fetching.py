"""One GET of a page that nothing stores: whole bodies, bounds, and redirects that stay at home."""

from __future__ import annotations

import gzip
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import orjson
import pytest

from deadline import DEADLINE
from fakes.openapi_server import Reply, Request
from fakes.openapi_thread import ThreadedServer, serving_in_thread
from specmux_aggregator.errors import SourceError, SourceUnreachable
from specmux_cache.http.caching import Answer
from specmux_tools.sources.access import access_of
from specmux_tools.sources.options import SourceOptions
from specmux_tools.sources.remote.fetching import ServerConnection, answer_of, download
from specmux_tools.sources.remote.servers import open_server

PAGE = {"version": "1", "notes": ["n" * 200 for _ in range(5000)]}


def got(server: ThreadedServer, path: str = "/status", *, most: int = 1 << 24) -> Answer:
    access = access_of(SourceOptions(server=server.url), {})
    with ServerConnection(access, most=most, timeout=10) as connection:
        return connection.fetch(path)


def answer(request: Request) -> Reply:
    return Reply(body=orjson.dumps(PAGE))


def test_a_page_of_many_reads_is_whole() -> None:
    with serving_in_thread(answer) as server:
        assert answer_of(SourceOptions(server=server.url), "/status", what="a service") == PAGE


def test_more_than_the_bound_is_refused() -> None:
    with serving_in_thread(answer) as server, pytest.raises(SourceUnreachable, match="more than 1000 bytes"):
        got(server, most=1000)


def test_a_redirect_within_the_server_is_followed() -> None:
    def moved(request: Request) -> Reply:
        return (
            answer(request) if request.path == "/there" else Reply(302, headers=[("Location", "/there?x=1")])
        )

    with serving_in_thread(moved) as server:
        assert got(server).status == 200
    assert [each.target for each in server.server.requests] == ["/status", "/there?x=1"]


def test_a_redirect_in_a_circle_ends() -> None:
    def around(request: Request) -> Reply:
        return Reply(302, headers=[("Location", "/status")])

    with serving_in_thread(around) as server, pytest.raises(SourceUnreachable, match="more than 5 redirects"):
        got(server)
    assert len(server.server.requests) == 6


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ([("Location", "http://[bad")], "/status: redirects to what is no URL"),
        ([("Location", "//[::1/x")], "/status: redirects to what is no URL"),
        ([], "/status: redirects without saying where"),
    ],
)
def test_a_redirect_to_what_is_no_url_is_an_error_of_the_server(
    fields: list[tuple[str, str]], told: str
) -> None:
    def astray(request: Request) -> Reply:
        return Reply(302, headers=fields)

    with serving_in_thread(astray) as server, pytest.raises(SourceUnreachable, match=told):
        got(server)


@pytest.mark.parametrize("status", [401, 403])
def test_a_document_that_wants_a_login_names_the_option(status: int) -> None:
    with serving_in_thread(lambda _: Reply(status)) as server:
        with pytest.raises(SourceError, match=f"/v1.json: answered {status}; give a token with --token-file"):
            download(SourceOptions(server=f"{server.url}/v1.json"))
        with pytest.raises(SourceUnreachable, match=f"answered {status}; give a token with --token-file"):
            answer_of(SourceOptions(server=server.url), "/status", what="a service")


def test_a_redirect_to_another_server_is_named_and_not_followed(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("s3cret")
    with serving_in_thread(answer) as other:

        def away(request: Request) -> Reply:
            return Reply(302, headers=[("Location", f"{other.url}/login?next=secret")])

        with serving_in_thread(away) as server:
            source = SourceOptions(server=f"{server.url}/v1.json", token_file=token)
            with pytest.raises(SourceUnreachable, match=f"redirects to {other.url}/login; name that URL"):
                download(source)
    assert other.server.requests == []


def test_a_body_is_unpacked_for_a_page_and_left_for_who_asks_for_a_coding() -> None:
    packed = gzip.compress(orjson.dumps(PAGE))

    def compressed(request: Request) -> Reply:
        return Reply(body=packed, headers=[("Content-Encoding", "gzip"), ("Set-Cookie", "a=b")])

    with serving_in_thread(compressed) as server:
        assert orjson.loads(got(server).body) == PAGE
        with ServerConnection(
            access_of(SourceOptions(server=server.url), {}), most=1 << 24, timeout=10
        ) as raw:
            answer = raw.send("/status?a=%2F&b=", {"Accept": "image/png", "Accept-Encoding": "gzip"})
    assert (answer.body, dict(answer.fields)["content-encoding"]) == (packed, "gzip")
    asked = server.server.requests[-1]
    assert asked.target == "/status?a=%2F&b="
    # The fake joins repeated fields: one Accept was sent, the caller's.
    assert {"image/png", "specmux", "gzip"} <= set(asked.headers.values())


def test_a_url_of_a_query_alone_is_asked_for_at_the_root() -> None:
    with serving_in_thread(answer) as server:
        assert got(server, "?file=1#part").status == 200
    assert server.server.requests[0].target == "/?file=1"


@contextmanager
def answering(data: bytes | None) -> Iterator[str]:
    """The URL of a server that answers every request so, and closes; None: nobody listens there."""
    listener = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    if data is None:
        listener.close()
        yield url
        return

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection, suppress(OSError):
                while connection.recv(65536)[-4:] not in (b"", b"\r\n\r\n"):
                    pass
                connection.sendall(data)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield url
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(DEADLINE)


HEAD = b"HTTP/1.1 200 OK\r\n"
FAULTS = {
    "nobody": None,
    "no answer": b"",
    "half a head": HEAD,
    "half a body": HEAD + b"Content-Length: 20\r\n\r\n{}",
    "no HTTP": b"SSH-2.0-OpenSSH_9.9\r\n\r\n",
    "two lengths": HEAD + b"Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
    "a length and chunks": HEAD
    + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    "a chunk without its end": HEAD + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}",
    "a coding that it is not": HEAD + b"Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}",
    "half of a packed body": HEAD + b"Content-Encoding: gzip\r\n\r\n" + gzip.compress(b"{}" * 99)[:-9],
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_a_server_has_one_text_at_both_doors(
    fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the client library, by whose cache commands read, and of pages that nothing stores."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with answering(FAULTS[fault]) as url:
        source = SourceOptions(server=url, request_timeout=10)
        with open_server(source) as client, pytest.raises(SourceUnreachable) as by_client:
            client.group_versions()
        with pytest.raises(SourceUnreachable) as by_page:
            answer_of(source, "/openapi/v3", what="an apiserver")
    page, library = str(by_page.value), str(by_client.value)
    # After an answer the library adds what its server has to be; a page may be anybody's.
    assert library.startswith(page)
    assert library.removeprefix(page) in (
        "",
        "; check the URL, its path included: it has to be an apiserver's or a specmux service's",
    )
    assert len(page) > len(f"{url}/openapi/v3: ")
