"""What a backend is shown of us: its own credentials, the newest, and nobody else's."""

from __future__ import annotations

import asyncio
import datetime as dt
import logging
import os
import ssl
from pathlib import Path
from typing import Any

import pytest
import trustme
from blockbuster import blockbuster_ctx

from fakes.asked_backend import POLLING, root_of
from fakes.faulty_backend import FaultyBackend
from fakes.listening import StreamServer
from specmux_aggregator.config.settings import LimitSettings
from specmux_aggregator.model.backend import Backend, BackendName
from specmux_aggregator.model.failure import Cause, Failure
from specmux_aggregator.upstream.client import BackendClient, BackendRoot
from specmux_aggregator.upstream.credentials import Identities
from specmux_cache.access.credentials import TokenFile, TrustStore
from specmux_cache.access.server_access import Credentials, ServerTLS
from specmux_cache.errors import UnusableCredentials
from specmux_cache.whole_files import FILE_MAX

TOKEN = "s3cret-token"


def backend_at(url: str, *, tls: ServerTLS = ServerTLS(), **credentials: Any) -> Backend:  # noqa: B008 - frozen
    return Backend(name=BackendName("b"), url=url, tls=tls, credentials=Credentials(**credentials))


def issued(ca: trustme.CA, *names: str, days: int = 1) -> trustme.LeafCert:
    now = dt.datetime.now(dt.UTC)
    start, end = sorted((now, now + dt.timedelta(days=days)))
    return ca.issue_cert(*names, not_before=start - dt.timedelta(days=1), not_after=end)


def server_tls(leaf: trustme.LeafCert) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    leaf.configure_cert(context)
    return context


@pytest.fixture(scope="module")
def ca() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def ca_file(ca: trustme.CA, tmp_path: Path) -> Path:
    path = tmp_path / "ca.crt"
    path.write_bytes(ca.cert_pem.bytes())
    return path


def test_token_is_read_again_when_the_file_changes(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text(f"{TOKEN}-1\n")

    async def scenario() -> list[str]:
        async with FaultyBackend({}) as server:
            client = BackendClient(
                backend_at(server.url, token_file=path), polling=POLLING, limits=LimitSettings()
            )
            await client.root()
            replacement = tmp_path / "new"
            replacement.write_text(f"{TOKEN}-2")
            replacement.rename(path)
            await client.root()
            path.write_text("")  # being rewritten
            await client.root()
            await client.close()
            return [exchange.fields["authorization"] for exchange in server.requests]

    assert asyncio.run(scenario()) == [f"Bearer {TOKEN}-1", f"Bearer {TOKEN}-2", f"Bearer {TOKEN}-2"]


def test_remote_user_is_sent_where_configured() -> None:
    async def scenario() -> dict[str, str]:
        async with FaultyBackend({}) as server:
            await root_of(backend_at(server.url, remote_user="system:aggregator"))
            return server.requests[0].fields

    fields = asyncio.run(scenario())
    assert fields["x-remote-user"] == "system:aggregator"
    assert "x-remote-group" not in fields
    assert "authorization" not in fields


async def test_each_backend_gets_its_own_token(tmp_path: Path) -> None:
    async with FaultyBackend({}) as one, FaultyBackend({}) as two:
        for name, server in (("one", one), ("two", two)):
            (tmp_path / name).write_text(name)
            await root_of(backend_at(server.url, token_file=tmp_path / name))
        assert one.requests[0].fields["authorization"] == "Bearer one"
        assert two.requests[0].fields["authorization"] == "Bearer two"


@pytest.mark.parametrize(
    "content", [b"", b" \n", b"two words", b"a\r\nX-Remote-User: root", b"\xff", b"x" * (FILE_MAX + 1)]
)
def test_token_file_is_refused_when_it_holds_no_token(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_bytes(content)

    async def scenario() -> Any:
        async with FaultyBackend({}) as server:
            answer = await root_of(backend_at(server.url, token_file=path))
            assert server.requests == []
            return answer

    answer = asyncio.run(scenario())
    assert isinstance(answer, Failure)
    assert answer.cause is Cause.UNREADABLE
    assert answer.detail.startswith(str(path))


def test_missing_token_file_is_a_failure_of_the_backend(tmp_path: Path) -> None:
    with pytest.raises(UnusableCredentials, match="No such file"):
        TokenFile(tmp_path / "token").read()


def test_complaint_is_logged_once_while_the_old_token_stays_in_use(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "token"
    path.write_text(TOKEN)
    token = TokenFile(path)
    assert token.read() == TOKEN
    path.unlink()
    assert [token.read(), token.read()] == [TOKEN, TOKEN]
    assert len(caplog.records) == 1
    assert TOKEN not in caplog.text


def test_secrets_are_in_no_failure_and_no_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "token"
    path.write_text(TOKEN)
    caplog.set_level(logging.DEBUG)

    async def scenario() -> list[Any]:
        answers = []
        async with FaultyBackend({}) as server:

            async def echo(exchange: Any) -> None:
                said = exchange.fields["authorization"]
                for part in (f"HTTP/1.1 302 {said}", f"Location: /{said}", f"X-{said}\x01: x", "", ""):
                    await exchange.send(part.encode() + b"\r\n")

            async def echo_body(exchange: Any) -> None:
                await exchange.answer(401, exchange.fields["authorization"].encode())

            async def echo_root(exchange: Any) -> None:
                await exchange.answer(200, exchange.fields["authorization"].encode())

            for fault in (echo, echo_body, echo_root):
                server.fault = fault
                answers.append(await root_of(backend_at(server.url, token_file=path)))
        return answers

    answers = asyncio.run(scenario())
    assert [answer.cause for answer in answers] == [Cause.BAD_BODY, Cause.CREDENTIALS, Cause.BAD_BODY]
    assert TOKEN not in repr(answers) + caplog.text


def test_certificate_is_verified_against_the_backend_s_ca(ca: trustme.CA, ca_file: Path) -> None:
    async def scenario() -> Any:
        async with FaultyBackend({}, tls=server_tls(issued(ca, "127.0.0.1"))) as server:
            return await root_of(backend_at(server.url, tls=ServerTLS(ca_file=ca_file)), times=2)

    assert isinstance(asyncio.run(scenario()), BackendRoot)


@pytest.mark.parametrize(
    ("names", "days", "said"),
    [(["127.0.0.1"], -1, "expired"), (["other.example"], 1, "mismatch")],
    ids=["expired", "other-name"],
)
def test_bad_tls_when_the_certificate_is_not_valid(
    names: list[str], days: int, said: str, ca: trustme.CA, ca_file: Path
) -> None:
    async def scenario() -> Any:
        async with FaultyBackend({}, tls=server_tls(issued(ca, *names, days=days))) as server:
            return await root_of(backend_at(server.url, tls=ServerTLS(ca_file=ca_file)))

    answer = asyncio.run(scenario())
    assert isinstance(answer, Failure)
    assert answer.cause is Cause.BAD_TLS
    assert said in answer.detail


def test_bad_tls_when_another_ca_signed(ca_file: Path) -> None:
    async def scenario() -> Any:
        async with FaultyBackend({}, tls=server_tls(issued(trustme.CA(), "127.0.0.1"))) as server:
            return await root_of(backend_at(server.url, tls=ServerTLS(ca_file=ca_file)))

    answer = asyncio.run(scenario())
    assert isinstance(answer, Failure)
    assert answer.cause is Cause.BAD_TLS


def test_bad_tls_when_the_port_speaks_plain_http(ca_file: Path) -> None:
    async def complain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent a TLS record to an HTTP server.\n")

    async def scenario() -> Any:
        server = StreamServer(complain)
        url = f"https://127.0.0.1:{await server.start()}"
        answer = await root_of(backend_at(url, tls=ServerTLS(ca_file=ca_file)))
        await server.stop()
        return answer

    assert asyncio.run(scenario()) == Failure(Cause.BAD_TLS, "no TLS connection: wrong version number")


def test_reset_when_a_tls_port_is_asked_in_plain_http(ca: trustme.CA) -> None:
    async def scenario() -> Any:
        async with FaultyBackend({}, tls=server_tls(issued(ca, "127.0.0.1"))) as server:
            return await root_of(backend_at(server.url.replace("https://", "http://")))

    answer = asyncio.run(scenario())
    assert isinstance(answer, Failure)
    assert answer.cause in (Cause.RESET, Cause.BAD_BODY)


def test_server_name_is_what_the_certificate_is_checked_for(ca: trustme.CA, ca_file: Path) -> None:
    async def scenario() -> Any:
        async with FaultyBackend({}, tls=server_tls(issued(ca, "api.example"))) as server:
            tls = ServerTLS(ca_file=ca_file, server_name="api.example")
            return await root_of(backend_at(server.url, tls=tls))

    assert isinstance(asyncio.run(scenario()), BackendRoot)


def test_unverified_certificate_is_taken_with_one_loud_line(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> Any:
        async with FaultyBackend({}, tls=server_tls(issued(trustme.CA(), "127.0.0.1", days=-1))) as server:
            return await root_of(backend_at(server.url, tls=ServerTLS(insecure_skip_verify=True)), times=3)

    assert isinstance(asyncio.run(scenario()), BackendRoot)
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "not verified" in caplog.text


def test_client_certificate_is_shown_and_changes_with_its_files(
    ca: trustme.CA, ca_file: Path, tmp_path: Path
) -> None:
    pair = tmp_path / "client.pem"
    server_context = server_tls(issued(ca, "127.0.0.1"))
    server_context.verify_mode = ssl.CERT_REQUIRED
    ca.configure_trust(server_context)

    def present(name: str) -> None:
        leaf = ca.issue_cert(name)
        replacement = tmp_path / "new.pem"
        replacement.write_bytes(leaf.private_key_and_cert_chain_pem.bytes())
        replacement.rename(pair)

    async def scenario() -> list[str]:
        async with FaultyBackend({}, tls=server_context) as server:
            tls = ServerTLS(ca_file=ca_file, cert_file=pair)
            client = BackendClient(backend_at(server.url, tls=tls), polling=POLLING, limits=LimitSettings())
            for name in ("one.example", "two.example"):
                present(name)
                assert isinstance(await client.root(), BackendRoot)
            pair.write_text("half-written")
            assert isinstance(await client.root(), BackendRoot)
            await client.close()
            certificates = [exchange.writer.get_extra_info("peercert") for exchange in server.requests]
            return [certificate["subjectAltName"][0][1] for certificate in certificates]

    assert asyncio.run(scenario()) == ["one.example", "two.example", "two.example"]


@pytest.mark.parametrize(
    ("url", "is_told"),
    [
        ("http://backend.example", True),
        ("http://10.0.0.1:80", True),
        ("http://127.0.0.1", False),
        ("http://[::1]:1", False),
        ("http://localhost", False),
        ("https://backend.example", False),
    ],
)
def test_token_without_tls_is_told(
    url: str, is_told: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    Identities().take(backend_at(url, token_file=tmp_path / "token"))
    assert ("without TLS" in caplog.text) is is_told


@pytest.mark.parametrize(
    "content", [b"", b"no PEM", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"]
)
def test_ca_file_is_refused_when_it_holds_no_certificate(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "ca.crt"
    path.write_bytes(content)
    store = TrustStore(ServerTLS(ca_file=path))
    with pytest.raises(UnusableCredentials) as refused:
        store.context()
    assert refused.value.cause == "bad_tls"


def test_encrypted_key_is_refused_without_asking_anybody(ca: trustme.CA, tmp_path: Path) -> None:
    from cryptography.hazmat.primitives import serialization

    leaf = ca.issue_cert("client.example")
    key = serialization.load_pem_private_key(leaf.private_key_pem.bytes(), None)
    encrypted = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"password"),
    )
    pair = tmp_path / "pair.pem"
    pair.write_bytes(encrypted + leaf.cert_chain_pems[0].bytes())
    with pytest.raises(UnusableCredentials, match="no certificate with its private key"):
        TrustStore(ServerTLS(cert_file=pair)).context()


def test_context_is_kept_while_the_files_stay_the_same(ca_file: Path) -> None:
    store = TrustStore(ServerTLS(ca_file=ca_file))
    first = store.context()
    os.utime(ca_file)
    assert store.context() is first
    assert first.minimum_version is ssl.TLSVersion.TLSv1_2
    assert first.check_hostname


def test_session_keys_are_not_written_where_the_environment_says(
    tmp_path: Path, ca_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSLKEYLOGFILE", str(tmp_path / "keys"))
    assert TrustStore(ServerTLS(ca_file=ca_file)).context().keylog_filename is None


def test_files_are_read_off_the_event_loop(ca: trustme.CA, ca_file: Path, tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text(TOKEN)

    async def scenario() -> Any:
        async with FaultyBackend({}, tls=server_tls(issued(ca, "127.0.0.1"))) as server:
            backend = backend_at(server.url, tls=ServerTLS(ca_file=ca_file), token_file=path)
            with blockbuster_ctx():
                return await root_of(backend, times=2)

    assert isinstance(asyncio.run(scenario()), BackendRoot)
