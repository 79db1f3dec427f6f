"""Programs that print credentials, as real processes: run once, kept until they run out, never repeated."""

from __future__ import annotations

import asyncio
import base64
import datetime as dt
import json
import logging
import os
import signal
import ssl
import stat
import time
from pathlib import Path
from typing import Any

import pytest
import trustme
from blockbuster import blockbuster_ctx

from deadline import DEADLINE
from fakes.cluster import FakeCluster
from specmux_aggregator.config.settings import LimitSettings, PollingSettings
from specmux_aggregator.model.backend import Backend, BackendName
from specmux_aggregator.model.failure import Cause, Failure
from specmux_aggregator.upstream.client import BackendClient, BackendRoot
from specmux_cache.access.exec_plugin import OUTPUT_MAX, ExecCredentials
from specmux_cache.access.server_access import Credentials, ExecPlugin, ServerTLS
from specmux_cache.errors import UnusableCredentials

V1 = "client.authentication.k8s.io/v1"
V1BETA1 = "client.authentication.k8s.io/v1beta1"
SECRET = "s3cret-output"


def program(folder: Path, body: str) -> str:
    """A shell script that counts its runs in ``runs``."""
    path = folder / "plugin"
    path.write_text(f"#!/bin/sh\necho run >> {folder}/runs\n{body}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def runs(folder: Path) -> int:
    path = folder / "runs"
    return len(path.read_text().splitlines()) if path.exists() else 0


def credential(status: Any, *, version: str = V1, **more: Any) -> str:
    return json.dumps({"apiVersion": version, "kind": "ExecCredential", "status": status, **more})


def printing(folder: Path, text: str) -> str:
    (folder / "output").write_text(text)
    return program(folder, f"cat {folder}/output")


def plugin(command: str, **more: Any) -> ExecPlugin:
    return ExecPlugin(command=command, **more)


def backend(**fields: Any) -> Backend:
    return Backend(name=BackendName("b"), url=fields.pop("url", "https://10.0.0.1:6443"), **fields)


def asked(found: ExecPlugin, times: int = 1, *, timeout: float = 20.0, gap: float = 5.0) -> Any:
    """What comes of asking in a row; the last answer, or its failure."""

    async def scenario() -> Any:
        held = ExecCredentials(found, backend().access, timeout=timeout, gap=gap)
        try:
            for _ in range(times):
                try:
                    answer: Any = await held.current()
                except UnusableCredentials as error:
                    answer = Failure(Cause(error.cause), str(error))
            return answer
        finally:
            await held.close()

    return asyncio.run(scenario())


def in_seconds(seconds: float) -> str:
    return (dt.datetime.now(dt.UTC) + dt.timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


@pytest.mark.parametrize("version", [V1, V1BETA1])
def test_token_is_kept_while_it_lasts(version: str, tmp_path: Path) -> None:
    command = printing(tmp_path, credential({"token": "t"}, version=version))
    assert asked(plugin(command, api_version=version), times=3).token == "t"
    assert runs(tmp_path) == 1


def test_many_at_once_share_one_run(tmp_path: Path) -> None:
    command = program(tmp_path, f"sleep 0.2; echo '{credential({'token': 't'})}'")

    async def scenario() -> set[int]:
        held = ExecCredentials(plugin(command), backend().access)
        return {id(issued) for issued in await asyncio.gather(*(held.current() for _ in range(50)))}

    assert len(asyncio.run(scenario())) == 1
    assert runs(tmp_path) == 1


def test_one_that_gives_up_leaves_the_run_to_the_others(tmp_path: Path) -> None:
    command = program(tmp_path, f"sleep 0.3; echo '{credential({'token': 't'})}'")

    async def scenario() -> str | None:
        held = ExecCredentials(plugin(command), backend().access)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(held.current(), 0.05)
        return (await held.current()).token

    assert asyncio.run(scenario()) == "t"
    assert runs(tmp_path) == 1


def test_exchanged_shortly_before_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = printing(tmp_path, credential({"token": "t", "expirationTimestamp": in_seconds(600)}))
    now = time.monotonic()

    async def scenario() -> list[int]:
        held = ExecCredentials(plugin(command), backend().access)
        counts = []
        for passed in (0, 560, 575, 576):
            monkeypatch.setattr(time, "monotonic", lambda passed=passed: now + passed)
            await held.current()
            counts.append(runs(tmp_path))
        return counts

    assert asyncio.run(scenario()) == [1, 1, 2, 2]


async def test_held_credentials_stand_in_while_they_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = printing(tmp_path, credential({"token": "t", "expirationTimestamp": in_seconds(600)}))
    now = time.monotonic()

    held = ExecCredentials(plugin(command), backend().access)
    await held.current()
    program(tmp_path, "exit 3")
    monkeypatch.setattr(time, "monotonic", lambda: now + 580)
    assert (await held.current()).token == "t"
    assert (await held.current()).token == "t"
    assert runs(tmp_path) == 2, "a failed run is not repeated at once"
    monkeypatch.setattr(time, "monotonic", lambda: now + 601)
    with pytest.raises(UnusableCredentials, match="ended with status 3"):
        await held.current()


def test_life_that_is_over_at_once_is_no_run_for_each_request(tmp_path: Path) -> None:
    command = printing(tmp_path, credential({"token": "t", "expirationTimestamp": in_seconds(-3600)}))
    assert asked(plugin(command), times=5).token == "t"
    assert runs(tmp_path) == 1


def test_program_gets_its_arguments_environment_and_info(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OURS", "handed-on")
    command = program(
        tmp_path,
        f'printf %s "$KUBERNETES_EXEC_INFO" > {tmp_path}/info\n'
        f'echo "$1|$2|$REGION|$OURS|$(cat)" > {tmp_path}/called\n'
        f"echo '{credential({'token': 't'})}'",
    )
    asked(plugin(command, args=("a b", "$HOME"), env=(("REGION", "eu"),)))
    assert (tmp_path / "called").read_text() == "a b|$HOME|eu|handed-on|\n"
    assert json.loads((tmp_path / "info").read_text()) == {
        "apiVersion": V1,
        "kind": "ExecCredential",
        "spec": {"interactive": False},
    }


@pytest.mark.parametrize("is_inline", [True, False])
def test_program_is_told_of_the_cluster_where_it_wants_that(is_inline: bool, tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_bytes(b"PEM")
    command = program(
        tmp_path,
        f"printf %s \"$KUBERNETES_EXEC_INFO\" > {tmp_path}/info\necho '{credential({'token': 't'})}'",
    )
    ca = {"ca_data": b"PEM"} if is_inline else {"ca_file": tmp_path / "ca.crt"}
    found = plugin(command, provide_cluster_info=True, cluster_config=b'{"audience": "x"}')
    server = backend(tls=ServerTLS(server_name="api.example", **ca), proxy_url="http://10.0.0.9:3128")  # type: ignore[arg-type] # one of the two
    asyncio.run(ExecCredentials(found, server.access).current())
    assert json.loads((tmp_path / "info").read_text())["spec"]["cluster"] == {
        "server": "https://10.0.0.1:6443",
        "tls-server-name": "api.example",
        "certificate-authority-data": base64.b64encode(b"PEM").decode(),
        "proxy-url": "http://10.0.0.9:3128",
        "config": {"audience": "x"},
    }


@pytest.mark.parametrize(
    ("printed", "said"),
    [
        (SECRET, "printed no JSON"),
        ("", "printed no JSON"),
        (f'"{SECRET}"', "printed no ExecCredential"),
        (json.dumps({"kind": SECRET}), "printed no ExecCredential"),
        (credential({"token": SECRET}, version=V1BETA1), f"another version than {V1}"),
        (credential(None), "without a status"),
        (credential({}), "without credentials"),
        (credential({"token": ""}), "without credentials"),
        (credential({"token": f"{SECRET}\r\nX: y"}), "a token that no header field can hold"),
        (credential({"token": 5}), "a token that no header field can hold"),
        (credential({"clientCertificateData": SECRET}), "a client certificate without its key"),
        (credential({"clientKeyData": SECRET}), "a client certificate without its key"),
        (credential({"token": "t", "expirationTimestamp": SECRET}), "expirationTimestamp that is no time"),
        (credential({"token": "t", "expirationTimestamp": "2026-01-01T00:00:00"}), "without a time zone"),
    ],
)
def test_output_is_refused_without_repeating_it(printed: str, said: str, tmp_path: Path) -> None:
    failure = asked(plugin(printing(tmp_path, printed)))
    assert isinstance(failure, Failure)
    assert failure.cause is Cause.CREDENTIALS
    assert said in failure.detail
    assert SECRET not in failure.detail


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (f"echo {SECRET}; echo {SECRET} >&2; exit 7", "ended with status 7"),
        ("kill -9 $$", "ended with status -9"),
        (f"head -c {OUTPUT_MAX + 1} /dev/zero", f"printed more than {OUTPUT_MAX} bytes"),
        ("yes", f"printed more than {OUTPUT_MAX} bytes"),
    ],
)
def test_program_fails(body: str, said: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    failure = asked(plugin(program(tmp_path, body)), times=3)
    assert said in failure.detail
    assert SECRET not in failure.detail + "".join(capfd.readouterr())
    assert runs(tmp_path) == 1, "a failure is kept for a while"


def test_program_that_hangs_is_ended_with_what_it_started(tmp_path: Path) -> None:
    command = program(tmp_path, f"sleep 600 & echo $! > {tmp_path}/child; wait")
    failure = asked(plugin(command), timeout=2.0)
    assert "gave no credentials within 2 s" in failure.detail
    child = int((tmp_path / "child").read_text())
    deadline = time.monotonic() + 60
    while is_running(child):
        assert time.monotonic() < deadline, "what it had started goes on"
        time.sleep(0.01)


def test_output_held_open_by_the_background_is_taken_as_it_is(tmp_path: Path) -> None:
    body = f"setsid sleep 600 & echo $! > {tmp_path}/child; echo '{credential({'token': 't'})}'"
    try:
        assert asked(plugin(program(tmp_path, body)), timeout=600.0).token == "t"
        assert is_running(int((tmp_path / "child").read_text())), "it was not waited for"
    finally:
        os.kill(int((tmp_path / "child").read_text()), signal.SIGKILL)


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


def test_program_that_is_missing_is_told_with_its_hint(tmp_path: Path) -> None:
    failure = asked(plugin(str(tmp_path / "none"), install_hint="get it from the shelf"))
    assert failure.detail.endswith("none cannot be started: no such file or directory; get it from the shelf")


def test_program_that_may_not_run_is_told(tmp_path: Path) -> None:
    (tmp_path / "plugin").write_text("x")
    assert "cannot be started: permission denied" in asked(plugin(str(tmp_path / "plugin"))).detail


def test_close_ends_what_runs(tmp_path: Path) -> None:
    command = program(tmp_path, f"echo $$ > {tmp_path}/pid; exec sleep 600")

    async def scenario() -> int:
        held = ExecCredentials(plugin(command), backend().access)
        waiting = asyncio.ensure_future(held.current())
        async with asyncio.timeout(DEADLINE):
            while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
                await asyncio.sleep(0.01)
        await held.close()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        return int((tmp_path / "pid").read_text())

    pid = asyncio.run(scenario())
    assert not is_running(pid)


# Towards a backend

POLLING = PollingSettings(connect_timeout=DEADLINE, idle_timeout=DEADLINE, total_timeout=DEADLINE)


def client_of(server: FakeCluster, command: str, **tls: Any) -> BackendClient:
    found = backend(
        url=server.url, credentials=Credentials(exec_plugin=plugin(command)), tls=ServerTLS(**tls)
    )
    return BackendClient(found, polling=POLLING, limits=LimitSettings())


async def test_401_makes_a_new_run_and_one_more_try(tmp_path: Path) -> None:
    command = printing(tmp_path, credential({"token": "one"}))

    async with FakeCluster({}) as server:
        server.tokens = {"one"}
        client = client_of(server, command)
        client._transport._identity._plugin._gap = 0.2  # type: ignore[union-attr] # seconds, for a test
        assert isinstance(await client.root(), BackendRoot)
        server.tokens = {"two"}
        (tmp_path / "output").write_text(credential({"token": "two"}))
        await asyncio.sleep(0.25)
        assert isinstance(await client.root(), BackendRoot)
        assert runs(tmp_path) == 2
        assert [entry.headers["Authorization"] for entry in server.requests] == [
            "Bearer one", "Bearer one", "Bearer two",
        ]  # fmt: skip
        await client.close()


def test_401_again_and_again_is_no_run_each_time(tmp_path: Path) -> None:
    command = printing(tmp_path, credential({"token": "wrong"}))

    async def scenario() -> list[Any]:
        async with FakeCluster({}) as server:
            server.tokens = {"right"}
            client = client_of(server, command)
            answers = [await client.root() for _ in range(10)]
            await client.close()
            return answers

    assert {answer.status for answer in asyncio.run(scenario())} == {401}
    assert runs(tmp_path) == 1


def test_certificate_of_a_program_is_presented(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    ca = trustme.CA()
    leaf = ca.issue_cert("client.example", common_name="jane")
    status = {
        "clientCertificateData": leaf.cert_chain_pems[0].bytes().decode(),
        "clientKeyData": leaf.private_key_pem.bytes().decode(),
    }
    command = printing(tmp_path, credential(status))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert("127.0.0.1").configure_cert(context)
    context.verify_mode = ssl.CERT_REQUIRED
    ca.configure_trust(context)

    async def scenario() -> list[str | None]:
        async with FakeCluster({}, tls=context) as server:
            client = client_of(server, command, ca_data=ca.cert_pem.bytes())
            with blockbuster_ctx():
                assert isinstance(await client.root(), BackendRoot)
                assert isinstance(await client.root(), BackendRoot)
            await client.close()
            return server.certificates

    assert asyncio.run(scenario()) == ["jane", "jane"]
    assert runs(tmp_path) == 1
    assert "PRIVATE" not in caplog.text


def test_failure_is_the_backend_s_failure(tmp_path: Path) -> None:
    async def scenario() -> Any:
        async with FakeCluster({}) as server:
            client = client_of(server, program(tmp_path, "exit 1"))
            answer = await client.root()
            await client.close()
            assert server.requests == []
            return answer

    answer = asyncio.run(scenario())
    assert isinstance(answer, Failure)
    assert answer.cause is Cause.CREDENTIALS
