"""``serve --processes 2``: a second process answers busy connections, and nothing else is different.

Each test but one ends with SIGKILL, and ``Process`` finds whoever outlives that.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import os
import re
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from deadline import DEADLINE
from fakes.apiserver import FakeAPIServer, document, serving
from running.process import Process, specmux, write_documents
from running.processor_time import family
from specmux_aggregator.server.acceptors.passing import LEASE

APPS, LARGE = "apis/apps/v1", "apis/large.example.com/v1"
ROOT = "/openapi/v3"
BUSY = 4
"""Connections, of which an acceptor gets half."""


@contextmanager
def serve(folder: Path, *flags: str, processes: int = 2) -> Iterator[Process]:
    documents = {APPS: document(APPS), LARGE: document(LARGE, "x" * 1_000_000)}
    source = ("--directory", str(write_documents(folder, documents)))
    quick = ("--listen-port", "0", "--polling-interval", "0.2", "--changes-settle", "0")
    with specmux("serve", *source, "--processes", str(processes), *quick, *flags) as process:
        process.until_ready()
        yield process


def ask(
    client: http.client.HTTPConnection, target: str = ROOT, **fields: str
) -> tuple[int, str | None, bytes]:
    client.request("GET", target, headers=fields)
    answer = client.getresponse()
    return answer.status, answer.getheader("ETag"), answer.read()


def metric(process: Process, name: str, **fields: str) -> float:
    text = process.get("/metrics", **fields)[2].decode()
    return sum(float(value) for value in re.findall(rf"^{name}(?:{{.*}})? (\S+)$", text, re.MULTILINE))


def keeper(process: Process) -> int:
    """The first child of the service; its own are acceptors."""
    return family(process.pid)[1]


@contextmanager
def busy(process: Process, **fields: str) -> Iterator[list[http.client.HTTPConnection]]:
    """Connections that ask for the root until an acceptor holds half of them."""
    with ExitStack() as stack:
        clients = []
        for _ in range(BUSY):
            client = http.client.HTTPConnection("127.0.0.1", process.port, timeout=DEADLINE)
            clients.append(stack.enter_context(contextlib.closing(client)))

        def is_shared() -> bool:
            for client in clients * 20:
                assert ask(client, **fields)[0] == 200
            return metric(process, "specmux_acceptor_connections", **fields) == BUSY / 2

        process.until(is_shared, "an acceptor holds half")
        yield clients


def test_every_answer_is_the_same_from_both_processes_and_counted_once(tmp_path: Path) -> None:
    with serve(tmp_path) as process, busy(process) as clients:
        tag = ask(clients[0])[1]
        assert tag is not None
        targets = [(ROOT, {}), (ROOT, {"If-None-Match": tag}), ("/livez", {}), (process.paths()[LARGE], {})]
        for target, fields in targets * 2:
            expected = ask(clients[0], target, **fields)
            assert [ask(client, target, **fields) for client in clients for _ in range(20)] == [expected] * 80
        count = 'specmux_request_duration_seconds_count{code="304",.*}'
        process.until(lambda: metric(process, count) == 2 * 81, "each is counted once")
        assert metric(process, "specmux_connections") == BUSY + 1


def test_no_connection_gets_an_older_document_than_another_had(tmp_path: Path) -> None:
    with serve(tmp_path) as process:
        for number in range(5):
            with busy(process) as clients:
                before = ask(clients[0])[1]
                write_documents(tmp_path, {APPS: document(APPS, f"changed {number}")})
                process.until(lambda: process.get(ROOT)[1]["ETag"] != before, "the change is published")  # noqa: B023
                assert before not in [ask(client)[1] for client in clients]


def test_killed_acceptor_loses_its_connections_alone_and_is_replaced(tmp_path: Path) -> None:
    with serve(tmp_path) as process:
        with busy(process) as clients:
            os.kill(family(keeper(process))[-1], signal.SIGKILL)
            process.until_printed("an acceptor ended, and with it 2 connections")
            lost = 0
            for client in clients:
                try:
                    assert ask(client)[0] == 200
                except (OSError, http.client.HTTPException):
                    lost += 1
            assert lost == BUSY / 2
        process.until(lambda: metric(process, "specmux_acceptors") == 1, "another runs")
        process.until(lambda: metric(process, "specmux_connections") == 1, "no place is kept")
        with busy(process):
            pass


async def test_backends_see_the_requests_of_one_process() -> None:
    def ask_much(url: str) -> None:
        flags = ("--listen-port", "0", "--polling-interval", "3600", "--processes", "2")
        with specmux("serve", "--backend", f"a={url}", *flags) as process:
            process.until_ready()
            target = process.paths()[APPS]
            with busy(process) as clients:
                assert {ask(client, target)[0] for client in clients * 20} == {200}

    fake = FakeAPIServer({APPS: document(APPS)})
    async with serving(fake):
        await asyncio.to_thread(ask_much, fake.url)
    assert (fake.count(f"{ROOT}/"), len(fake.log)) == (1, 2)


def test_token_admits_in_both_processes_until_it_is_removed(tmp_path: Path) -> None:
    tokens, bearer = tmp_path / "tokens", {"Authorization": "Bearer a-token-of-somebody"}
    tokens.write_text("a-token-of-somebody,a\nanother-token-here,b\n")
    flags = ("--auth-mode", "token-file", "--auth-token-file", str(tokens))
    with serve(tmp_path / "documents", *flags) as process, busy(process, **bearer) as clients:
        for client in clients * 3:
            assert ask(client, **bearer)[0] == 200
            assert ask(client, Authorization="Bearer unknown-token-here")[0] == 401
            assert ask(client)[0] == 401
        tokens.write_text("another-token-here,b\n")
        process.until(lambda: process.get(ROOT, **bearer)[0] == 401, "the token is gone")
        time.sleep(LEASE)
        assert {ask(client, **bearer)[0] for client in clients} == {401}


def test_streams_and_bodies_go_to_the_service_on_the_same_connection(tmp_path: Path) -> None:
    with serve(tmp_path, "--validation-enabled") as process, busy(process) as clients:
        for client in clients:
            client.request("POST", "/openapi/validate", body=b"{}")
            assert client.getresponse().read()
            client.request(
                "GET", "/openapi/changes?kind=publications", headers={"Accept": "text/event-stream"}
            )
        write_documents(tmp_path, {APPS: document(APPS, "changed")})
        for client in clients:
            with client.getresponse() as stream:
                assert any(b"event: publication" in line for line in stream)


def test_connections_get_a_last_answer_when_the_service_ends(tmp_path: Path) -> None:
    with serve(tmp_path) as process, busy(process) as clients:
        os.kill(keeper(process), signal.SIGKILL)
        process.until_printed("the keeper of acceptors ended")
        process.send(signal.SIGTERM)
        for client in clients:
            fields = []
            while "close" not in fields:
                client.request("GET", ROOT)
                answer = client.getresponse()
                assert answer.status == 200
                assert answer.read()
                fields.append(answer.getheader("Connection"))
        assert process.wait() == 0
        assert "Traceback" not in process.output


def test_stopped_acceptor_holds_no_end_up_and_ends_with_the_service(tmp_path: Path) -> None:
    with serve(tmp_path, "--listen-shutdown-timeout", "0.5") as process, busy(process):
        os.kill(family(keeper(process))[-1], signal.SIGSTOP)
        assert process.stop() == 0
        assert "Traceback" not in process.output


def test_no_connection_is_accepted_while_an_acceptor_holds_the_end_up(tmp_path: Path) -> None:
    with serve(tmp_path, "--listen-shutdown-timeout", "30") as process, busy(process):
        acceptor = family(keeper(process))[-1]
        os.kill(acceptor, signal.SIGSTOP)
        process.send(signal.SIGTERM)

        def is_refused() -> bool:
            try:
                socket.create_connection(("127.0.0.1", process.port), DEADLINE).close()
            except ConnectionRefusedError:
                return True
            return False

        process.until(is_refused, "nothing listens")
        assert acceptor in family(process.pid)
        os.kill(acceptor, signal.SIGCONT)
        assert process.wait() == 0


def test_memory_of_two_is_at_most_1_3_of_one(tmp_path: Path) -> None:
    def memory(processes: int) -> float:
        with serve(tmp_path, processes=processes) as process, ExitStack() as stack:
            for accepted in ("application/json", "application/cbor"):
                process.get(process.paths()[LARGE], Accept=accepted)
            process.until(lambda: process.get("/openapi/search?q=apps")[0] == 200, "the reader runs")
            if processes > 1:
                stack.enter_context(busy(process))
            shares = (Path(f"/proc/{pid}/smaps_rollup").read_text() for pid in family(process.pid))
            return sum(
                int(size) for share in shares for size in re.findall(r"^Pss: +(\d+)", share, re.MULTILINE)
            )

    assert memory(2) <= 1.3 * memory(1)
