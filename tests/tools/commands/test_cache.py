from __future__ import annotations

import json
import os
import re
import ssl
import zipfile

import pytest
import trustme
from click.testing import CliRunner

from fakes.bare_authority import BareAuthority
from fakes.openapi_server import Reference, Reply, document
from fakes.openapi_thread import serving_in_thread
from specmux_tools.commands.cache import cache

CORE = document("core")
COMMANDS = (
    "paths",
    "get",
    "warm",
    "fetch",
    "ls",
    "stats",
    "verify",
    "compact",
    "clear",
    "export",
    "import",
    "doctor",
)


@pytest.fixture
def server():
    with serving_in_thread(Reference({"api/v1": CORE, "apis/apps/v1": document("apps")})) as running:
        yield running


@pytest.fixture
def run(tmp_path):
    def call(*arguments, code=0):
        result = CliRunner().invoke(cache, ["--directory", str(tmp_path / "c"), *map(str, arguments)])
        assert result.exit_code == code, (result.output, result.exception)
        return result

    return call


def test_commands_when_listed_are_all_there_and_take_json():
    assert sorted(cache.commands) == sorted(COMMANDS)
    for command in cache.commands.values():
        assert "--json" in {option for parameter in command.params for option in parameter.opts}


def test_get_when_the_server_is_there_and_when_it_is_not(run, server):
    assert run("get", "v1", "--server", server.url).stdout_bytes == CORE
    known = json.loads(run("get", "v1", "--json", "--server", server.url).stdout)
    assert (known["from_cache"], known["size"], known["group_version"]) == (True, len(CORE), "api/v1")
    server.stop()
    stale = run("get", "v1", "--server", server.url)
    assert stale.stdout_bytes == CORE
    assert "stale" in stale.stderr
    assert run("get", "v1", "--server", server.url, "--offline").stdout_bytes == CORE


def test_get_when_the_authority_is_given_and_when_it_is_not(run, tmp_path):
    authority = BareAuthority(tmp_path)
    with serving_in_thread(Reference({"api/v1": CORE}), tls=authority.context) as server:
        assert run("get", "v1", "--server", server.url, "--ca-file", authority.ca_file).stdout_bytes == CORE
        run("clear")
        assert "certificate was refused" in run("get", "v1", "--server", server.url, code=4).stderr


def test_get_when_an_intermediate_authority_is_trusted_alone(run, tmp_path):
    authority = trustme.CA().create_child_ca()
    authority.cert_pem.write_to_path(tmp_path / "intermediate.crt")
    own = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(own)
    with serving_in_thread(Reference({"api/v1": CORE}), tls=own) as server:
        known = run("get", "v1", "--server", server.url, "--ca-file", tmp_path / "intermediate.crt")
        assert known.stdout_bytes == CORE


def test_exit_codes_when_something_is_not_found_or_down(run, server):
    assert "nope" in run("get", "nope/v1", "--server", server.url, code=1).stderr
    run("get", "apps/v1", "--server", server.url, "--offline", code=1)
    run("get", code=2)
    run("get", "v1", "--server", "ftp://x", code=2)
    run("get", "v1", "--server", server.url, "--media", "cbor", code=4)
    server.stop()
    run("paths", "--server", server.url, code=0)
    run("paths", "--server", "http://127.0.0.1:1", code=4)


def test_paths_and_warm_when_printed_for_people_and_programs(run, server):
    assert "apis/apps/v1" in run("paths", "--server", server.url).stdout
    assert json.loads(run("paths", "--json", "--server", server.url).stdout)["stale"] is False
    assert "2 fetched" in run("warm", "--server", server.url).stdout
    assert json.loads(run("warm", "--json", "--server", server.url).stdout)["present"] == [
        "api/v1",
        "apis/apps/v1",
    ]
    run("warm", "nope/v1", "--server", server.url, code=1)
    server.server.answer = lambda request: Reply(503)
    run("warm", "--server", server.url.replace("127.0.0.1", "localhost"), code=4)


def test_ls_stats_compact_and_clear(run, server):
    run("warm", "--server", server.url)
    listed = json.loads(run("ls", "--json").stdout)
    assert {row["group_version"] for row in listed} == {"/openapi/v3", "api/v1", "apis/apps/v1"}
    lines = run("ls", "--server", f"{server.url}").stdout.splitlines()
    assert lines[0].split() == ["SERVER", "GROUP-VERSION", "HASH", "SIZE", "STATE", "MEDIA", "TYPE"]
    assert any(re.search(r" api/v1 +[0-9A-F]{12} +[0-9.]+ (B|KiB) ", line) for line in lines)
    assert run("ls", "--server", "http://other:80").stdout == ""
    assert json.loads(run("stats", "--json").stdout)["entries"] == 3
    assert "entries" in run("stats").stdout
    assert "bytes after" in run("compact", "--max-bytes", "5MB", "--dry-run").stdout
    assert json.loads(run("compact", "--max-bytes", "0", "--dry-run", "--json").stdout)["dry_run"]
    assert json.loads(run("stats", "--json").stdout)["entries"] == 3
    run("compact", "--max-age", "1000")
    assert "3 removed" in run("clear").stdout
    assert json.loads(run("ls", "--json").stdout) == []


def test_verify_when_a_body_is_damaged_says_so_and_repairs(run, server, tmp_path):
    run("warm", "--server", server.url)
    assert "nothing wrong" in run("verify").stdout
    index = tmp_path / "c" / "cache.db"
    assert CORE in index.read_bytes()
    index.write_bytes(index.read_bytes().replace(CORE, CORE.swapcase()))
    assert json.loads(run("verify", "--json", code=3).stdout)
    run("verify", "--fix")
    assert "nothing wrong" in run("verify").stdout


@pytest.mark.parametrize("text", [b"AFTER INSERT", b"disk_pickle_protocol"])
def test_verify_when_the_index_is_no_utf8_any_more_repairs(run, server, tmp_path, text):
    run("warm", "--server", server.url)
    index = tmp_path / "c" / "cache.db"
    before, found, after = index.read_bytes().partition(text)
    assert found
    index.write_bytes(before + bytes([text[0] | 0x80]) + text[1:] + after)
    run("verify", "--fix")
    assert "nothing wrong" in run("verify").stdout
    run("warm", "--server", server.url)
    assert json.loads(run("stats", "--json").stdout)["entries"] == 3


def test_export_and_import_when_carried(run, server, tmp_path):
    run("warm", "--server", server.url)
    assert "3 exported" in run("export", tmp_path / "b.zip", "--server", server.url).stdout
    run("clear")
    assert json.loads(run("import", tmp_path / "b.zip", "--json", "--server", server.url).stdout) == {
        "imported": 3
    }
    server.stop()
    assert run("get", "v1", "--offline", "--server", server.url).stdout_bytes == CORE
    with zipfile.ZipFile(tmp_path / "bad.zip", "w") as archive:
        archive.writestr("bundle.json", "{}")
    run("import", tmp_path / "bad.zip", "--server", server.url, code=3)


def test_directory_when_it_cannot_be_used(run, tmp_path):
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "thesis.tex").write_text("x")
    assert "not a cache" in run("stats", code=3).stderr
    assert "BAD" in run("doctor", code=3).stdout


def test_doctor_when_all_is_well_and_when_the_server_is_down(run, server):
    findings = json.loads(run("doctor", "--json", "--server", server.url).stdout)
    assert [one["subject"] for one in findings] == ["directory", "locks", "space", "file system", "server"]
    assert all(one["is_good"] for one in findings)
    server.stop()
    run("doctor", "--server", server.url, code=4)


def test_token_when_read_from_a_file_is_sent_and_not_stored(run, server, tmp_path):
    (tmp_path / "token").write_text("secret-token\n")
    run("get", "v1", "--server", server.url, "--token-file", tmp_path / "token")
    assert server.server.requests[-1].headers["authorization"] == "Bearer secret-token"
    for path in (tmp_path / "c").rglob("*"):
        assert not path.is_file() or b"secret-token" not in path.read_bytes()
        assert path.stat().st_mode & 0o077 == 0
        assert path.stat().st_uid == os.geteuid()
