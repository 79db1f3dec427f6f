"""Mode token-file: which files are tokens, and what happens while one is exchanged."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from running.serving import Running, eventually, read_answer, request, running
from specmux_aggregator.auth import token_file
from specmux_aggregator.auth.guard import gate_of
from specmux_aggregator.auth.token_file import BadTokens, parse_tokens
from specmux_aggregator.config.settings import AuthSettings, Settings
from specmux_aggregator.errors import InvalidConfig
from specmux_aggregator.metrics.instruments import Metrics
from specmux_cache.whole_files import FILE_MAX

UP = "specmux_auth_up"


@contextmanager
def guarded(path: Path, tier: str = "parsed") -> Iterator[tuple[Running, Metrics]]:
    metrics = Metrics(CollectorRegistry())
    gate = gate_of(Settings(auth=AuthSettings(mode="token-file", token_file=path)), metrics, cluster=None)
    with running(tier, gate=gate) as server:
        yield server, metrics


def status(server: Running, token: str) -> int:
    answer = server.exchange(request("/a", f"Authorization: Bearer {token}", close=True))
    return int(answer.split(b" ", 2)[1])


@pytest.mark.parametrize(
    ("content", "tokens"),
    [
        (b"abc,alice", {"abc"}),
        (b"abc,alice\n\ndef,bob\n", {"abc", "def"}),
        (b"abc,alice\r\ndef,alice\r\n", {"abc", "def"}),
        (b'abc,alice,uid1,"dev,ops"\n', {"abc"}),
        (b"\xef\xbb\xbfabc , alice\n", {"abc"}),
        (b'"abc","alice"\n', {"abc"}),
        (b"a-._~+/==,x", {"a-._~+/=="}),
    ],
)
def test_tokens_are_read(content: bytes, tokens: set[str]) -> None:
    assert parse_tokens(content) == tokens


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "holds no token"),
        (b"\n\n", "holds no token"),
        (b"s3cret", "line 1: wants token,name; a token alone"),
        (b"a,x\ns3cret,", "line 2: wants token,name"),
        (b"a,x\ns3cret, \n", "line 2: wants token,name"),
        (b",alice", "line 1: no token that could be sent"),
        (b"s3 cret,alice", "line 1: no token that could be sent"),
        (b"a,x\ns3cret:,alice", "line 2: no token that could be sent"),
        (b"s3cret,alice\nb,bob\ns3cret,bob", "line 3: the token of an earlier line"),
        (b'"s3cret,alice', "line 1: its quotes do not match"),
        (b"s3cret\xff,alice", "not UTF-8"),
    ],
)
def test_other_files_are_refused_without_being_repeated(content: bytes, said: str, tmp_path: Path) -> None:
    with pytest.raises(BadTokens) as bad:
        parse_tokens(content)
    assert str(bad.value).startswith(said)
    (tmp_path / "tokens").write_bytes(content)
    with pytest.raises(InvalidConfig) as refused, guarded(tmp_path / "tokens"):
        pass
    assert said in str(refused.value)
    assert "s3" not in str(refused.value).removeprefix(f"auth.token_file: {tmp_path}")


def test_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(b"a,b\n" * FILE_MAX)
    for name, said in (("none", "No such file"), ("large", "larger than"), ("", "Is a directory")):
        with pytest.raises(InvalidConfig, match=said), guarded(tmp_path / name):
            pass


@given(st.binary(max_size=60))
def test_any_bytes_are_tokens_or_refused(content: bytes) -> None:
    with suppress(BadTokens):
        assert all(token.isascii() for token in parse_tokens(content))


@pytest.mark.parametrize("tier", ["parsed", "memoised"])
def test_holders_of_a_token_are_let_in_and_nobody_else(tier: str, tmp_path: Path) -> None:
    (tmp_path / "tokens").write_text("one,alice\ntwo,bob\n")
    with guarded(tmp_path / "tokens", tier) as (server, metrics), server.connect() as client:
        for _ in range(3):
            for field, code in (
                ("Authorization: Bearer one", 200), ("X: one", 401), ("Authorization: Bearer on", 401),
                ("Authorization: Bearer alice", 401), ("Authorization: Bearer two", 200),
                ("Authorization: Bearer onee", 401), ("Authorization: Basic one", 401),
            ):  # fmt: skip
                client.sendall(request("/a", field))
                assert read_answer(client).startswith(f"HTTP/1.1 {code} ".encode()), field
        eventually(lambda: metrics.registry.get_sample_value(UP) == 1)
        if tier != "parsed":
            assert server.counts.at_once == 6


def test_changed_file_is_read_again_and_a_bad_one_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(token_file, "INTERVAL", 0.05)
    caplog.set_level(logging.INFO)
    path = tmp_path / "tokens"
    path.write_text("one,alice\n")
    with guarded(path) as (server, metrics):
        for bad in ("s3cret", "", "s3cret,x\ns3cret,y"):
            path.write_text(bad)
            eventually(lambda: metrics.registry.get_sample_value(UP) == 0)
            assert status(server, "one") == 200
            assert status(server, "s3cret") == 401
        path.unlink()
        path.write_text("two,bob\n")
        eventually(lambda: status(server, "two") == 200)
        assert status(server, "one") == 401
        eventually(lambda: metrics.registry.get_sample_value(UP) == 1)
        (tmp_path / "next").write_text("three,eve\n")
        (tmp_path / "next").rename(path)
        eventually(lambda: status(server, "three") == 200)
        assert status(server, "two") == 401
    lines = [record.getMessage() for record in caplog.records if "authentication" in record.getMessage()]
    assert [line for line in lines if "token read" in line][-1] == "authentication: 1 token read"
    assert any("the tokens read before stay in use" in line for line in lines)
    assert "s3cret" not in caplog.text


def test_content_that_is_still_being_written_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every part of this file is a right file: only that it goes on growing tells."""
    monkeypatch.setattr(token_file, "INTERVAL", 0.05)
    path = tmp_path / "tokens"
    path.write_text("one,alice\n")
    with guarded(path) as (server, _):
        looks = 0
        read = token_file.read_small

        def growing(file: Path) -> bytes:
            nonlocal looks
            looks += 1
            return b"two,bob\n" + b"".join(b"t%d,x\n" % n for n in range(min(looks, 40)))

        monkeypatch.setattr(token_file, "read_small", growing)
        eventually(lambda: looks >= 8)
        assert (status(server, "two"), looks < 40) == (401, True)
        eventually(lambda: status(server, "t39") == 200)
        monkeypatch.setattr(token_file, "read_small", read)
        eventually(lambda: status(server, "one") == 200)
