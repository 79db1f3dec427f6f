"""Callers with a certificate: mode mtls, and front proxies that vouch for users in mode kubernetes."""

from __future__ import annotations

import datetime as dt
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import orjson
import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from prometheus_client import CollectorRegistry

from fakes.reviewer import ACCESS, TOKEN, FakeReviewer, Reviewing, reviewing
from running.serving import Running, eventually, read_answer, request, running
from specmux_aggregator.auth import client_certificates
from specmux_aggregator.auth.guard import gate_of
from specmux_aggregator.config.settings import AuthSettings, Settings
from specmux_aggregator.metrics.instruments import Metrics
from specmux_aggregator.server import listener as server_module

on_both_tiers = pytest.mark.parametrize("tier", ["parsed", "memoised"])

PROXIED = ("X-Remote-User: alice", "X-Remote-Group: dev", "X-Remote-Group: ops", "X-Remote-Extra-Scopes: a")


class Authorities:
    """The CA of the listener, the one that clients' certificates are from, and another."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.listener, self.clients, self.other = trustme.CA(), trustme.CA(), trustme.CA()
        leaf = self.listener.issue_cert("127.0.0.1")
        leaf.private_key_and_cert_chain_pem.write_to_path(folder / "tls.pem")
        self.ca_file = folder / "clients.crt"
        self.clients.cert_pem.write_to_path(self.ca_file)

    def context(
        self, leaf: trustme.LeafCert | Path | None = None, version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3
    ) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.maximum_version = version
        self.listener.configure_trust(context)
        if isinstance(leaf, trustme.LeafCert):
            leaf.configure_cert(context)
        elif leaf is not None:
            context.load_cert_chain(leaf)
        return context

    def leaf(self, name: str = "alice", *, san: str = "alice@example.org", **more: Any) -> trustme.LeafCert:
        return self.clients.issue_cert(san, common_name=name, **more)


@pytest.fixture
def authorities(tmp_path: Path) -> Authorities:
    return Authorities(tmp_path)


@contextmanager
def guarded(
    authorities: Authorities, tier: str = "parsed", *, fake: FakeReviewer | None = None, **auth: Any
) -> Iterator[Running]:
    if fake is None:
        settings = Settings(auth=AuthSettings(mode="mtls", client_ca_file=authorities.ca_file, **auth))
    else:
        settings = Settings(
            auth=AuthSettings(mode="kubernetes", requestheader_ca_file=authorities.ca_file, **auth)
        )
    gate = gate_of(settings, Metrics(CollectorRegistry()), cluster=None if fake is None else fake.backend)
    assert gate is not None
    files = {"tls_cert_file": authorities.folder / "tls.pem", "tls_key_file": authorities.folder / "tls.pem"}
    with running(
        tier, gate=gate, client_ca_file=settings.auth.ca_file, header_timeout=5.0, **files
    ) as server:
        eventually(lambda: gate.complaint() is None)
        yield server


def ask(server: Running, context: ssl.SSLContext, *fields: str, target: str = "/a") -> bytes:
    """The answer; empty where the handshake ends instead, which with TLS 1.3 is known at the first read."""
    with server.connect() as plain:
        try:
            with context.wrap_socket(plain, server_hostname="127.0.0.1") as client:
                client.sendall(request(target, *fields))
                return read_answer(client)
        except (ssl.SSLError, ConnectionError, EOFError):
            return b""


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1]) if answer else 0


def server_only(authorities: Authorities) -> Path:
    """A certificate of the clients' CA that is for servers."""
    key = ec.generate_private_key(ec.SECP256R1())
    now = dt.datetime.now(dt.UTC)
    issuer = x509.load_pem_x509_certificate(authorities.clients.cert_pem.bytes())
    signer = serialization.load_pem_private_key(authorities.clients.private_key_pem.bytes(), None)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "alice")]))
        .issuer_name(issuer.subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + dt.timedelta(hours=1))
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(signer, hashes.SHA256())  # type: ignore[arg-type]
    )
    path = authorities.folder / "server_only.pem"
    path.write_bytes(
        certificate.public_bytes(serialization.Encoding.PEM)
        + key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return path


@on_both_tiers
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_certificate_of_the_ca_is_let_in(
    authorities: Authorities, tier: str, version: ssl.TLSVersion
) -> None:
    with guarded(authorities, tier) as server:
        context = authorities.context(authorities.leaf(), version)
        for _ in range(2):
            assert status(ask(server, context)) == 200
        assert status(ask(server, context, 'If-None-Match: "v"')) == 304


def test_intermediate_authority_is_trusted_alone_and_its_siblings_are_not(authorities: Authorities) -> None:
    intermediate, sibling = (authorities.clients.create_child_ca() for _ in range(2))
    intermediate.cert_pem.write_to_path(authorities.ca_file)
    with guarded(authorities) as server:
        for issuer, expected in ((intermediate, 200), (sibling, 0), (authorities.clients, 0)):
            leaf = issuer.issue_cert("alice@example.org", common_name="alice")
            assert status(ask(server, authorities.context(leaf))) == expected


@on_both_tiers
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_nobody_else_is(authorities: Authorities, tier: str, version: ssl.TLSVersion) -> None:
    past = dt.datetime.now(dt.UTC) - dt.timedelta(days=1)
    others: dict[str, tuple[trustme.LeafCert | Path | None, int]] = {
        "no certificate": (None, 403),
        "of another CA": (authorities.other.issue_cert("alice@example.org", common_name="alice"), 0),
        "of the listener's CA": (authorities.listener.issue_cert("a@b.org", common_name="alice"), 0),
        "expired": (authorities.leaf(not_before=past - dt.timedelta(days=1), not_after=past), 0),
        "for servers": (server_only(authorities), 0),
    }
    with guarded(authorities, tier) as server:
        for what, (leaf, expected) in others.items():
            answer = ask(server, authorities.context(leaf, version), 'If-None-Match: "v"', *PROXIED)
            assert status(answer) == expected, what
        for target in ("/livez", "/readyz"):
            assert status(ask(server, authorities.context(), target=target)) == 200, "probes have none"


@on_both_tiers
@pytest.mark.parametrize(
    ("names", "is_let_in"),
    [(("alice",), True), (("bob", "alice@example.org"), True), (("bob",), False), (("alic",), False)],
)
def test_names_are_those_of_the_certificate(
    authorities: Authorities, tier: str, names: tuple[str, ...], is_let_in: bool
) -> None:
    with guarded(authorities, tier, client_names=names) as server:
        answer = ask(server, authorities.context(authorities.leaf()))
        assert status(answer) == (200 if is_let_in else 403)
        if not is_let_in:
            assert orjson.loads(answer.partition(b"\r\n\r\n")[2])["reason"] == "Forbidden"


def test_certificate_that_expires_during_the_connection_is_refused_from_then_on(
    authorities: Authorities, monkeypatch: pytest.MonkeyPatch
) -> None:
    end = dt.datetime.now(dt.UTC) + dt.timedelta(hours=1)
    with guarded(authorities) as server, server.connect() as plain:
        context = authorities.context(authorities.leaf(not_after=end))
        with context.wrap_socket(plain, server_hostname="127.0.0.1") as client:

            def asked() -> int:
                client.sendall(request())
                return status(read_answer(client))

            assert asked() == 200
            after = SimpleNamespace(time=lambda: end.timestamp() + 1.1)
            monkeypatch.setattr(client_certificates, "time", after)
            assert asked() == 403


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_resumed_session_proves_nothing(authorities: Authorities, version: ssl.TLSVersion) -> None:
    with guarded(authorities) as server:
        context = authorities.context(authorities.leaf(), version)
        with context.wrap_socket(server.connect(), server_hostname="127.0.0.1") as client:
            client.sendall(request())
            assert status(read_answer(client)) == 200
            session = client.session
            with suppress(OSError):
                client.unwrap()
        with context.wrap_socket(server.connect(), server_hostname="127.0.0.1", session=session) as client:
            client.sendall(request())
            assert status(read_answer(client)) == (403 if client.session_reused else 200)
            # TLS 1.3 resumes by tickets alone, and none are given.
            assert client.session_reused is (version is ssl.TLSVersion.TLSv1_2)


def test_exchanged_ca_counts_at_once_also_for_connections_that_are_open(
    authorities: Authorities, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module, "CERTIFICATE_INTERVAL", 0.05)
    old, new = authorities.context(authorities.leaf()), trustme.CA()
    renewed = authorities.context(new.issue_cert("alice@example.org", common_name="alice"))
    with (
        guarded(authorities) as server,
        old.wrap_socket(server.connect(), server_hostname="127.0.0.1") as held,
    ):
        held.sendall(request())
        assert status(read_answer(held)) == 200
        authorities.ca_file.write_text("-----BEGIN CERTIFICATE-----\nhalf")
        time.sleep(1.5)
        assert status(ask(server, old)) == 200
        new.cert_pem.write_to_path(authorities.ca_file)
        eventually(lambda: status(ask(server, renewed)) == 200)
        assert status(ask(server, old)) == 0
        with pytest.raises((OSError, EOFError)):
            held.sendall(request())
            read_answer(held)


@pytest.fixture
def reviewer() -> Iterator[Reviewing]:
    with reviewing() as started:
        started.fake.know("bob-token", "bob")
        yield started


@on_both_tiers
def test_user_that_a_front_proxy_names_is_reviewed_without_a_token(
    authorities: Authorities, reviewer: Reviewing, tier: str
) -> None:
    reviewer.fake.allows = lambda user, path: user == "alice"
    with guarded(authorities, tier, fake=reviewer.fake, requestheader_names=("front",)) as server:
        context = authorities.context(authorities.leaf("front"))
        for _ in range(3):
            assert (
                status(ask(server, context, *PROXIED, "x-remote-extra-scopes: b", "X-Remote-Uid: 7")) == 200
            )
        assert reviewer.fake.log[ACCESS][-1] == {
            "user": "alice",
            "uid": "7",
            "groups": ["dev", "ops", "system:authenticated"],
            "extra": {"scopes": ["a", "b"]},
            "nonResourceAttributes": {"path": "/a", "verb": "get"},
        }
        assert reviewer.fake.count(ACCESS, user="alice") == 1
        assert status(ask(server, context, "X-Remote-User: eve")) == 403
        # The proxy speaks for the user, whatever token came along.
        assert status(ask(server, context, "X-Remote-User: eve", "Authorization: Bearer bob-token")) == 403
        assert reviewer.fake.count(TOKEN, token="bob-token") == 0


@on_both_tiers
@pytest.mark.parametrize(
    ("proxy", "expected"),
    [
        (lambda a: a.context(), 401),
        (lambda a: a.context(a.leaf("mallory")), 401),
        (lambda a: a.context(a.leaf("mallory", san="front@example.org")), 401),
        (lambda a: a.context(a.other.issue_cert("a@b.org", common_name="front")), 0),
        (lambda a: a.context(a.listener.issue_cert("a@b.org", common_name="front")), 0),
    ],
    ids=[
        "no certificate",
        "another name",
        "the name as an alternative one",
        "another CA",
        "the listener's CA",
    ],
)
def test_forged_user_is_ignored(
    authorities: Authorities,
    reviewer: Reviewing,
    tier: str,
    proxy: Callable[[Authorities], ssl.SSLContext],
    expected: int,
) -> None:
    with guarded(authorities, tier, fake=reviewer.fake, requestheader_names=("front",)) as server:
        context = proxy(authorities)
        for _ in range(2):
            assert status(ask(server, context, *PROXIED)) == expected
        assert reviewer.fake.count(ACCESS, user="alice") == 0
        if expected:
            answer = ask(server, context, *PROXIED, "Authorization: Bearer bob-token")
            assert status(answer) == 200, "the token counts, and the fields do not"
            assert reviewer.fake.count(ACCESS, user="bob") == 1


def test_forged_user_over_plain_http_is_ignored(reviewer: Reviewing) -> None:
    gate = gate_of(
        Settings(auth=AuthSettings(mode="kubernetes")),
        Metrics(CollectorRegistry()),
        cluster=reviewer.fake.backend,
    )
    with running("parsed", gate=gate) as server:
        assert status(server.exchange(request("/a", *PROXIED, close=True))) == 401
        assert reviewer.fake.count(ACCESS, user="alice") == 0


@pytest.mark.parametrize(
    "fields",
    [
        ("X-Remote-User: alice", "X-Remote-User: root"),
        ("X-Remote-User:",),
        ("X-Remote-User: \xff",),
        ("X-Remote-User: alice", "X-Remote-Group: \xff"),
        ("X-Remote-User: alice", "X-Remote-Uid: 1", "X-Remote-Uid: 2"),
    ],
)
def test_proxy_that_is_not_clear_is_told_so(
    authorities: Authorities, reviewer: Reviewing, fields: tuple[str, ...]
) -> None:
    with guarded(authorities, fake=reviewer.fake) as server:
        context = authorities.context(authorities.leaf("front"))
        assert status(ask(server, context, *fields)) == 400
        assert status(ask(server, context, "X-Remote-User: zo\xc3\xab")) == 200
        assert reviewer.fake.log[ACCESS][-1]["user"] == "zoë"


def test_proxy_that_names_nobody_needs_a_token(authorities: Authorities, reviewer: Reviewing) -> None:
    with guarded(authorities, fake=reviewer.fake) as server:
        context = authorities.context(authorities.leaf("front"))
        assert status(ask(server, context, "X-Remote-Group: system:masters")) == 401
        assert status(ask(server, context, "Authorization: Bearer bob-token")) == 200
