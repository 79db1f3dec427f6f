"""``specmux convert`` as users run it."""

from __future__ import annotations

import gzip
import io
import json
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml
from click.testing import CliRunner, Result

from data.built_in_swagger import swagger_of
from deadline import DEADLINE
from shared_data import DATA, PUBLISHED, SHARED, documents, files, read
from specmux_aggregator.console import progress
from specmux_converters import codecs, media_types
from specmux_converters.group_versions import GroupVersion
from specmux_converters.yaml import to_yaml
from specmux_tools.command_line.output_files import file_of
from specmux_tools.commands.convert import convert

OK = {"200": {"description": "OK", "schema": {"$ref": "#/definitions/A"}}}
SWAGGER: dict[str, Any] = {
    "swagger": "2.0",
    "info": {"title": "t", "version": "1"},
    "definitions": {"A": {"type": "string", "enum": ["on", "=", "0e0", "x"]}, "Unused": {}},
    "paths": {"/api/v1/a": {"get": {"responses": OK}}, "/apis/apps/v1/": {"get": {"responses": OK}}},
}
NOTED = {**SWAGGER, "security": [{}]}
LOSSY = {**NOTED, "unknown": 1}
OPENAPI = {"paths": {"/apis/apps/v1/": {}}, "openapi": "3.0.0", "info": {"version": "1", "title": "t"}}


def run(*arguments: Any, stdin: bytes = b"") -> Result:
    return CliRunner().invoke(convert, [str(each) for each in arguments], input=stdin)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "swagger.json"
    path.write_bytes(orjson.dumps(SWAGGER))
    return path


def test_one_document_on_standard_output(path: Path) -> None:
    result = run(path)
    assert (result.exit_code, result.stderr) == (0, "")
    document = orjson.loads(result.stdout_bytes)
    assert document["openapi"] == "3.0.0"
    assert document["components"]["schemas"].keys() == {"A", "Unused"}
    assert result.stdout_bytes == orjson.dumps(document, option=orjson.OPT_SORT_KEYS)


def test_one_document_in_a_file(path: Path, tmp_path: Path) -> None:
    result = run(path, "--output-file", tmp_path / "v3.json")
    assert (result.exit_code, result.output) == (0, "")
    assert (tmp_path / "v3.json").read_bytes() == run(path).stdout_bytes
    both = run(path, "--output-file", tmp_path / "v3.json", "--split", tmp_path / "out")
    assert both.exit_code == 2


def test_profile(path: Path) -> None:
    assert orjson.loads(run(path, "--profile", "oas").stdout_bytes)["openapi"] == "3.0.3"


@pytest.mark.parametrize(
    "data",
    [
        orjson.dumps(SWAGGER),
        gzip.compress(orjson.dumps(SWAGGER)),
        to_yaml(SWAGGER),
        orjson.dumps(SWAGGER, option=orjson.OPT_INDENT_2),
    ],
)
def test_input_is_recognised_on_standard_input(path: Path, data: bytes) -> None:
    assert run("-", stdin=data).stdout_bytes == run(path).stdout_bytes


@pytest.mark.parametrize(
    ("form", "suffix"), [("json", ".json"), ("yaml", ".yaml"), ("pb", ".pb"), ("cbor", ".cbor")]
)
def test_split_writes_a_file_for_each_group_version(
    path: Path, tmp_path: Path, form: str, suffix: str
) -> None:
    result = run(path, "--split", tmp_path / "out", "--to", form)
    assert (result.exit_code, result.stdout) == (0, "")
    written = {
        str(each.relative_to(tmp_path / "out")) for each in (tmp_path / "out").rglob("*") if each.is_file()
    }
    assert written == {f"api/v1{suffix}", f"apis/apps/v1{suffix}"}
    again = run(tmp_path / "out" / f"apis/apps/v1{suffix}")
    assert orjson.loads(again.stdout_bytes)["components"]["schemas"].keys() == {"A"}


def test_verify_reads_back_what_is_written(path: Path, tmp_path: Path) -> None:
    assert run(path, "--to", "pb", "--verify").stdout_bytes == run(path, "--to", "pb").stdout_bytes
    assert run(path, "--verify").exit_code == 2
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(40):
        schema = {"type": "array", "items": schema}
    deep = {**SWAGGER, "definitions": {"A": schema}}
    refused = run("-", "--to", "pb", "--verify", stdin=orjson.dumps(deep))
    assert refused.exit_code == 3
    assert "100 messages" in refused.stderr
    assert refused.stdout == ""
    assert run("-", "--to", "pb", stdin=orjson.dumps(deep)).exit_code == 0


def test_yaml_means_the_same_to_readers_of_1_1_and_1_2(path: Path) -> None:
    text = run(path, "--to", "yaml").stdout_bytes
    assert yaml.safe_load(text) == orjson.loads(run(path).stdout_bytes)
    assert b'"0e0"' in text
    assert b"&" not in text
    assert run("-", stdin=text).stdout_bytes == orjson.dumps(yaml.safe_load(text))


@pytest.mark.parametrize("media_type", [media_types.JSON, media_types.CBOR, media_types.PROTOBUF])
def test_openapi_is_passed_through_to_the_encoder(media_type: media_types.MediaType) -> None:
    result = run("-", "--to", "json", stdin=codecs.encode(OPENAPI, media_type))
    assert result.exit_code == 0
    assert orjson.loads(result.stdout_bytes) == OPENAPI


def test_openapi_keeps_its_key_order_and_its_name(tmp_path: Path) -> None:
    assert run("-", stdin=orjson.dumps(OPENAPI)).stdout_bytes == orjson.dumps(OPENAPI)
    assert run("-", "--split", tmp_path, stdin=orjson.dumps(OPENAPI)).exit_code == 0
    assert (tmp_path / "apis/apps/v1.json").read_bytes() == orjson.dumps(OPENAPI)
    several = {**OPENAPI, "paths": {"/api/v1/": {}, "/version/": {}}}
    assert run("-", "--split", tmp_path, stdin=orjson.dumps(several)).exit_code == 3


def test_losses_are_counted_listed_and_dumped() -> None:
    data = orjson.dumps(LOSSY)
    counts = "1 loss: 1 × field unknown; 1 note: 1 × security (--losses text lists them)\n"
    assert run("-", stdin=data).stderr == counts
    lines = run("-", "--losses", "text", stdin=data).stderr.splitlines()
    assert lines[0].startswith("/unknown: field unknown: ")
    assert lines[1].startswith("note, 1 × security: ")
    assert lines[1].endswith(" (/security)")
    dumped = json.loads(run("-", "--losses", "json", stdin=data).stderr)
    assert [(each["pointer"], each["construct"], each["grade"]) for each in dumped] == [
        ("/security", "security", "note"),
        ("/unknown", "field unknown", "loss"),
    ]
    assert json.loads(run("-", "--losses", "json", stdin=orjson.dumps(SWAGGER)).stderr) == []


def test_strict_writes_nothing_when_something_is_lost(tmp_path: Path) -> None:
    result = run("-", "--strict", "--split", tmp_path / "out", stdin=orjson.dumps(LOSSY))
    assert result.exit_code == 1
    assert not (tmp_path / "out").exists()
    assert run("-", "--strict", stdin=orjson.dumps(SWAGGER)).exit_code == 0
    assert run("-", "--strict", stdin=orjson.dumps(NOTED)).exit_code == 0


def whole_release() -> bytes:
    """Swagger 2.0 as Kubernetes publishes it, else made of the built-in release."""
    published = SHARED / PUBLISHED
    return read(published) if published.exists() else orjson.dumps(swagger_of("1.35"))


def test_strict_converts_a_release_of_kubernetes_and_says_its_notes_in_a_few_lines() -> None:
    data = whole_release()
    result = run("-", "--strict", "--losses", "text", stdin=data)
    assert result.exit_code == 0
    lines = result.stderr.splitlines()
    if not (SHARED / PUBLISHED).exists():  # what is made has no schemes
        assert len(lines) < 3
        return
    assert len(lines) == 3
    assert lines[0].startswith("note, 1067 × operation schemes: ")
    assert lines[0].endswith(" and 1064 more)")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "0 documents"),
        (b'{"swagger": "2.0", "paths": {"/a": []}}', "/paths/~1a: a path item object is required"),
        (b'{"swagger": "2.0", "a": 1, "a": 2}', "/a: the key is there twice"),
        (b"\x1f\x8b\x08cut", "gzip"),
        (b"\xff\xfe\x00", ""),
    ],
)
def test_refused(data: bytes, words: str) -> None:
    result = run("-", stdin=data)
    assert (result.exit_code, result.stdout) == (3, "")
    assert result.stderr.startswith("Error: standard input: ")
    assert words in result.stderr


def test_folder_with_one_document(path: Path) -> None:
    assert run(path.parent).stdout_bytes == run(path).stdout_bytes
    (path.parent / "other.json").write_text("{}")
    result = run(path.parent, "--losses", "text")
    assert result.stdout_bytes == run(path).stdout_bytes
    assert "other.json" in result.stderr


def test_folder_without_documents_says_so(tmp_path: Path) -> None:
    for name in ("Chart.yaml", "values.yaml"):
        (tmp_path / name).write_text("kind: Kustomization")
    result = run(tmp_path)
    assert result.exit_code == 3
    assert "no document in it can be read" in result.stderr
    assert "Chart.yaml" in result.stderr


@pytest.mark.parametrize("form", ["json", "v2"])
def test_a_kustomization_alone_is_no_document(form: str, tmp_path: Path) -> None:
    file = tmp_path / "kustomization.yaml"
    file.write_text("resources: [a.yaml]\n")
    result = run(file, "--to", form)
    assert result.exit_code == 3
    assert "no document in it can be read" in result.stderr


def test_folder_of_documents_is_split_together(path: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    named = {**OPENAPI, "paths": {}}
    (path.parent / "apis__batch__v1_openapi.json").write_bytes(orjson.dumps(named))
    (path.parent / "other.json").write_bytes(orjson.dumps({**OPENAPI, "paths": {"/apis/o/v1/": {}}}))
    (path.parent / "index.json").write_text("{}")
    result = run(path.parent, "--split", out, "--losses", "text")
    assert result.exit_code == 0
    assert "index.json" in result.stderr
    assert sorted(each.relative_to(out).as_posix() for each in out.rglob("*.json")) == [
        "api/v1.json", "apis/apps/v1.json", "apis/batch/v1.json", "apis/o/v1.json",
    ]  # fmt: skip
    assert (out / "apis/batch/v1.json").read_bytes() == orjson.dumps(named)


def test_folder_with_one_group_version_twice_is_refused(path: Path, tmp_path: Path) -> None:
    (path.parent / "apps.json").write_bytes(orjson.dumps(OPENAPI))
    result = run(path.parent, "--split", tmp_path / "out")
    assert result.exit_code == 3
    assert "in another file too" in result.stderr


def test_usage() -> None:
    assert run("/does/not/exist").exit_code == 3
    assert run("-", "--to", "xml").exit_code == 2
    assert run("-", "--profile", "other").exit_code == 2


def test_file_that_cannot_be_written(path: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "api").write_text("in the way")
    result = run(path, "--split", tmp_path / "out")
    assert result.exit_code == 3
    assert "Error: " in result.stderr


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("apis/apps/v1", "apis/apps/v1.json"),
        (".well-known/openid-configuration", ".well-known/openid-configuration.json"),
        ("../../etc/passwd", "%2E%2E/%2E%2E/etc/passwd.json"),
        ("a/./b", "a/%2E/b.json"),
        ("a\x00b\\c:d", "a%00b%5Cc%3Ad.json"),
    ],
)
def test_file_name_stays_in_the_folder(tmp_path: Path, key: str, name: str) -> None:
    assert file_of(tmp_path, GroupVersion(key), ".json") == tmp_path / name


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_told_on_a_terminal_after_a_second_and_cleared() -> None:
    slow, fast, pipe = Terminal(), Terminal(), io.StringIO()
    with progress("converting", stream=slow):
        time.sleep(1.2)
    with progress("converting", stream=fast), progress("converting", stream=pipe):
        pass
    assert slow.getvalue() == "\rconverting … 1 s\r\x1b[K"
    assert fast.getvalue() == pipe.getvalue() == ""


def test_release_is_split_into_its_documents(tmp_path: Path) -> None:
    """A published one has schemes, and documents beside those of group-versions."""
    is_published = (SHARED / PUBLISHED).exists()
    result = run("-", "--split", tmp_path, stdin=whole_release())
    assert result.exit_code == 0
    assert ("1067 × operation schemes" in result.stderr) == is_published
    written = {str(path.relative_to(tmp_path)).removesuffix(".json") for path in tmp_path.rglob("*.json")}
    assert written >= set(documents("1.35"))
    assert len(written) == (64 if is_published else len(documents("1.35")))


@pytest.mark.parametrize("path", files(DATA / "openapi-v2-protobuf", "**/*.pb.gz"))
def test_protobuf_of_an_old_apiserver(path: Path, tmp_path: Path) -> None:
    result = run(path, "--split", tmp_path)
    assert result.exit_code == 0, result.stderr
    pod = orjson.loads((tmp_path / "api/v1.json").read_bytes())["components"]["schemas"][
        "io.k8s.api.core.v1.Pod"
    ]
    assert pod["x-kubernetes-group-version-kind"] == [{"group": "", "kind": "Pod", "version": "v1"}]
    assert read(path)


def piped(path: Path, redirection: str, *, size: int = 0) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own, with its standard output redirected by a shell."""
    path.write_bytes(orjson.dumps({**SWAGGER, "x-padding": "x" * size}))
    command = f"{shlex.quote(sys.executable)} -m specmux_aggregator.cli convert {shlex.quote(str(path))}"
    return subprocess.run(
        ["/bin/bash", "-c", f"{command} {redirection}; exit ${{PIPESTATUS[0]}}"],
        capture_output=True,
        text=True,
        timeout=DEADLINE,
    )


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
@pytest.mark.parametrize("size", [0, 1_000_000])
def test_full_disk_is_an_error_in_one_line(path: Path, size: int) -> None:
    result = piped(path, ">/dev/full", size=size)
    assert result.returncode == 3
    assert result.stderr.endswith("Error: standard output: No space left on device\n")
    assert "Traceback" not in result.stderr


def test_closed_standard_output_is_an_error_in_one_line(path: Path) -> None:
    result = piped(path, ">&-")
    assert result.returncode == 3
    assert result.stderr.endswith("Error: standard output: closed\n")
    assert "Traceback" not in result.stderr


def test_reader_who_goes_is_no_error_to_speak_of(path: Path) -> None:
    result = piped(path, "| true", size=1_000_000)
    assert result.returncode == 1
    assert "rror" not in result.stderr


def test_documents_of_a_folder_become_one_of_swagger(tmp_path: Path) -> None:
    for name in ("apps/v1", "batch/v1"):
        path = tmp_path / "apis" / f"{name}.json"
        path.parent.mkdir(parents=True)
        schema = {"type": "string", "default": "a"}
        paths = {f"/apis/{name}/x": {"get": {"responses": {"200": {"description": "d"}}}}}
        path.write_text(
            json.dumps(
                {"openapi": "3.0.0", "info": {}, "paths": paths, "components": {"schemas": {"S": schema}}}
            )
        )
    ran = CliRunner().invoke(convert, [str(tmp_path), "--to", "v2", "--losses", "json"])
    assert ran.exit_code == 0, ran.output
    document = json.loads(ran.stdout)
    assert (document["swagger"], list(document["paths"])) == ("2.0", ["/apis/apps/v1/x", "/apis/batch/v1/x"])
    assert document["definitions"] == {"S": {"type": "string"}}
    assert [loss["pointer"] for loss in json.loads(ran.stderr)] == [
        "apis/apps/v1#/components/schemas/S/default", "apis/batch/v1#/components/schemas/S/default",
    ]  # fmt: skip
    refused = CliRunner().invoke(convert, ["-", "--to", "v2"], input='{"swagger": "2.0", "paths": {}}')
    assert (refused.exit_code, "already" in refused.output) == (3, True)
