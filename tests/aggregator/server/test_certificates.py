"""Certificates that are read again; their use in handshakes is tested with the server."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest
import trustme

from specmux_aggregator.errors import InvalidConfig
from specmux_aggregator.server.certificates import Certificates


def write(folder: Path, authority: trustme.CA) -> tuple[Path, Path]:
    leaf = authority.issue_cert("localhost")
    folder.mkdir(exist_ok=True)
    leaf.cert_chain_pems[0].write_to_path(folder / "tls.crt")
    leaf.private_key_pem.write_to_path(folder / "tls.key")
    return folder / "tls.crt", folder / "tls.key"


def test_refresh_reads_only_what_changed(tmp_path: Path) -> None:
    authority = trustme.CA()
    certificates = Certificates(*write(tmp_path, authority))
    assert certificates.refresh() is None
    write(tmp_path, authority)
    assert certificates.refresh() is True
    assert certificates.refresh() is None


def test_refresh_keeps_the_old_one_until_the_new_one_loads(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    authority = trustme.CA()
    cert_file, key_file = write(tmp_path, authority)
    certificates = Certificates(cert_file, key_file)
    whole = authority.issue_cert("localhost")
    whole.cert_chain_pems[0].write_to_path(cert_file)  # the old key beside it does not fit
    for _ in range(3):  # each second, and one line for each reason
        assert certificates.refresh() is False
    key_file.unlink()
    for _ in range(3):
        assert certificates.refresh() is False
    assert [record.getMessage() for record in caplog.records] == [
        "the certificate was not reloaded: the private key belongs to another certificate",
        f"the certificate was not reloaded: {key_file}: No such file or directory",
    ]
    whole.private_key_pem.write_to_path(key_file)
    assert certificates.refresh() is True
    assert "PRIVATE KEY" not in caplog.text


def test_refresh_follows_a_swapped_symlink(tmp_path: Path) -> None:
    authority = trustme.CA()
    write(tmp_path / "one", authority)
    write(tmp_path / "two", authority)
    link = tmp_path / "data"
    link.symlink_to("one")
    certificates = Certificates(link / "tls.crt", link / "tls.key")
    (tmp_path / "next").symlink_to("two")
    (tmp_path / "next").rename(link)
    assert certificates.refresh() is True


@pytest.mark.parametrize("content", [None, "", "-----BEGIN CERTIFICATE-----\nhalf"])
def test_first_reading_of_the_clients_ca_must_succeed(tmp_path: Path, content: str | None) -> None:
    """An empty bundle would let in nobody, and one that is not there should not let in everybody."""
    ca_file = tmp_path / "clients.crt"
    if content is not None:
        ca_file.write_text(content)
    with pytest.raises(InvalidConfig, match="the clients' CA"):
        Certificates(*write(tmp_path, trustme.CA()), client_ca_file=ca_file)


def test_clients_ca_that_becomes_unusable_is_kept(tmp_path: Path) -> None:
    ca_file = tmp_path / "clients.crt"
    trustme.CA().cert_pem.write_to_path(ca_file)
    certificates = Certificates(*write(tmp_path, trustme.CA()), client_ca_file=ca_file)
    assert certificates.context.verify_mode is ssl.CERT_OPTIONAL
    ca_file.write_text("")
    assert certificates.refresh() is False
    trustme.CA().cert_pem.write_to_path(ca_file)
    assert certificates.refresh() is True


def test_first_reading_must_succeed(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfig) as caught:
        Certificates(tmp_path / "tls.crt", tmp_path / "tls.key")
    assert caught.value.where == "listen.tls_cert_file"
