"""``specmux validate``: what it prints and how it ends."""

from __future__ import annotations

import gzip
import io
import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from fakes.openapi_server import Reference, Reply, Request
from fakes.openapi_thread import serving_in_thread
from shared_data import DATA, documents, read
from specmux_converters.crd import build
from specmux_converters.yaml import parse_yaml_stream
from specmux_tools.commands import validate as validate_module
from specmux_tools.commands.validate import validate
from specmux_tools.inputs.validated_objects import Manifest, ObjectVerdict, VerdictOptions, check
from specmux_tools.kinds import DocumentSet
from specmux_tools.reports import FORMS
from specmux_tools.validation import Validator
from specmux_tools.validation.decoding.streams import parts_of

DEFINITION = """apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boxes.example.com}
spec:
  group: example.com
  names: {plural: boxes, kind: Box, singular: box, listKind: BoxList}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [size]
            properties:
              size: {type: integer, maximum: 9}
              colour: {type: string}
"""
GOOD = "apiVersion: example.com/v1\nkind: Box\nmetadata: {name: good}\nspec: {size: 1}\n"
BAD = """# Source: chart/templates/box.yaml
apiVersion: example.com/v1
kind: Box
metadata: {name: bad, namespace: shop}
spec:
  size: 10
  color: red
"""
COLOUR = 'unknown field "spec.color" (did you mean "colour"?)'
NO_KIND = 'no kind "Crate" is registered for version "example.com/v1"'
SIZE = "spec.size: Invalid value: 10: spec.size in body should be less than or equal to 9"


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    """Paths by name. The definition is a source of schemas of its own."""
    written = {"crd": DEFINITION, "good": GOOD, "bad": BAD, "both": f"{GOOD}---\n{BAD}"}
    for name, text in written.items():
        (tmp_path / f"{name}.yaml").write_text(text)
    return {name: str(tmp_path / f"{name}.yaml") for name in written}


def run(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(validate, list(arguments), input=stdin, catch_exceptions=False)


def against(files: dict[str, str], *arguments: str, stdin: str | None = None) -> Result:
    return run("--file", files["crd"], *arguments, stdin=stdin)


def test_what_is_valid_is_not_talked_about(files: dict[str, str]) -> None:
    result = against(files, files["good"])
    assert (result.exit_code, result.stdout) == (0, "")


def test_what_is_wrong_is_told_with_its_place(files: dict[str, str]) -> None:
    result = against(files, files["both"], "--summary")
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        f"{files['both']}:12:3: error: Box shop/bad: {COLOUR} (chart/templates/box.yaml)",
        f"{files['both']}:11:3: error: Box shop/bad: {SIZE} (chart/templates/box.yaml)",
        "Summary: 2 objects in 1 file: 1 valid, 1 invalid; validated: 2 Box",
    ]


def test_unknown_fields_may_be_warnings(files: dict[str, str]) -> None:
    text = BAD.replace("10", "1")
    result = against(files, "--field-validation", "warn", "-", stdin=text)
    assert (result.exit_code, result.stdout.count("warning:")) == (0, 1)
    result = against(files, "--field-validation", "Ignore", "-", stdin=text)
    assert (result.exit_code, result.stdout) == (0, "")


def test_kinds_are_taken_from_definitions_among_the_files(files: dict[str, str], tmp_path: Path) -> None:
    result = run("--directory", str(tmp_path), files["good"], files["bad"])
    assert result.exit_code == 1
    text = f"{GOOD}---\n{DEFINITION}"
    result = against(files, "--ignore-missing-schemas", "-", stdin=text)
    assert result.exit_code == 0


def test_definitions_among_the_files_are_judged_beside_their_objects_without_a_kubeconfig(
    files: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "SPECMUX_SERVER"):
        monkeypatch.delenv(name, raising=False)
    result = run(files["crd"], files["bad"])
    assert (result.exit_code, SIZE in result.stdout) == (1, True)
    assert "CustomResourceDefinition boxes.example.com" not in result.stdout
    assert run(files["crd"], files["good"]).exit_code == 0
    wrong = DEFINITION.replace("kind: CustomResourceDefinition", "kind: CustomResourceDefinition\nspecs: {}")
    refused = run("-", stdin=wrong.replace("scope: Namespaced", "scope: Everywhere"))
    assert refused.exit_code == 1
    assert 'unknown field "specs"' in refused.stdout
    assert 'spec.scope: Unsupported value: "Everywhere"' in refused.stdout
    unknown = run(files["good"])
    assert (unknown.exit_code, "--directory" in unknown.stderr, "a --server" in unknown.stderr) == (
        1,
        True,
        True,
    )


def test_a_kind_without_a_schema(files: dict[str, str]) -> None:
    text = "apiVersion: example.com/v1\nkind: Crate\n"
    result = against(files, "-", stdin=text)
    assert result.exit_code == 1
    assert (
        'stdin:2:1: error: Crate: no kind "Crate" is registered for version "example.com/v1"' in result.stdout
    )
    result = against(files, "--ignore-missing-schemas", "--summary", "-", stdin=text)
    assert (result.exit_code, result.stdout) == (
        0,
        "Summary: 1 object in 1 file: 0 valid, 0 invalid, 1 without a schema; skipped: 1 Crate\n",
    )


@pytest.mark.parametrize("kind", ["Box", "example.com/v1/Box", "Secret,Box"])
def test_kinds_are_skipped(files: dict[str, str], kind: str) -> None:
    result = against(files, "--skip", kind, "--summary", files["bad"])
    assert (result.exit_code, result.stdout, result.stderr) == (
        0,
        "Summary: 1 object in 1 file: 0 valid, 0 invalid, 1 skipped; skipped: 1 Box\n",
        "",
    )


SEALED = """apiVersion: example.com/v1
kind: Box
metadata: {name: a}
spec: {size: 1}
sops:
  mac: x
"""


@pytest.mark.parametrize(
    ("field", "code"),
    [("/sops", 0), ("Box:/sops", 0), ("example.com/v1/Box:/sops", 0), ("Secret:/sops", 1), ("/sops/mac", 1)],
)
@pytest.mark.parametrize("form", ["object", "list", "json"])
def test_fields_are_ignored(files: dict[str, str], form: str, field: str, code: int) -> None:
    text = SEALED
    if form == "list":
        text = "apiVersion: v1\nkind: List\nitems:\n- " + SEALED.replace("\n", "\n  ").rstrip(" ")
    if form == "json":
        text = json.dumps(yaml.safe_load(SEALED))
    assert against(files, "-", stdin=text).exit_code == 1
    assert against(files, "--ignore-field", field, "-", stdin=text).exit_code == code


def test_what_is_wrong_beside_an_ignored_field_is_told_where_it_is(files: dict[str, str]) -> None:
    text = SEALED.replace("size: 1", "size: one, size: two, extra: 1")
    result = against(files, "--ignore-field", "/sops", "-", stdin=text)
    assert result.exit_code == 1
    assert all(word in result.stdout for word in ("stdin:4:", "spec.size", "spec.extra"))
    assert "sops" not in result.stdout
    assert against(files, "--ignore-field", "/spec/size", "-", stdin=text).exit_code == 1


@pytest.mark.parametrize("field", ["sops", "/", "Secret:", "/a//b", ""])
def test_what_is_no_field_is_refused(files: dict[str, str], field: str) -> None:
    result = against(files, "--ignore-field", field, files["good"])
    assert result.exit_code == 2
    assert "is no field: write /sops" in result.output


def test_json(files: dict[str, str]) -> None:
    document = json.loads(against(files, "-o", "json", "--summary", files["both"]).stdout)
    good, bad = document["objects"]
    assert (good["status"], good["violations"]) == ("valid", [])
    assert (bad["kind"], bad["name"], bad["namespace"], bad["source"]) == (
        "Box",
        "bad",
        "shop",
        "chart/templates/box.yaml",
    )
    assert [(each["path"], each["line"]) for each in bad["violations"]] == [
        ("spec.color", 12),
        ("spec.size", 11),
    ]
    assert document["summary"] == {
        **dict.fromkeys(ObjectVerdict, 0),
        "valid": 1,
        "invalid": 1,
    }


def test_junit(files: dict[str, str]) -> None:
    suites = ET.fromstring(against(files, "-o", "junit", files["both"]).stdout)
    (suite,) = suites
    assert (suite.attrib["tests"], suite.attrib["failures"], suite.attrib["name"]) == (
        "2",
        "1",
        files["both"],
    )
    good, bad = suite
    assert not list(good)
    assert [failure.attrib["message"] for failure in bad] == [COLOUR, SIZE]


def test_tap(files: dict[str, str]) -> None:
    lines = against(files, "-o", "tap", files["both"]).stdout.splitlines()
    assert lines[:3] == ["TAP version 13", "1..2", f"ok 1 - {files['both']}: Box good"]
    assert lines[3] == f"not ok 2 - {files['both']}: Box shop/bad"


def test_sarif(files: dict[str, str]) -> None:
    document = json.loads(against(files, "-o", "sarif", files["bad"]).stdout)
    (run_,) = document["runs"]
    assert {rule["id"] for rule in run_["tool"]["driver"]["rules"]} == {"unknown-field", "schema"}
    region = run_["results"][0]["locations"][0]["physicalLocation"]["region"]
    assert region == {"startLine": 7, "startColumn": 3}


def test_github(files: dict[str, str]) -> None:
    first = against(files, "-o", "github", files["bad"]).stdout.splitlines()[0]
    assert first == f"::error file={files['bad']},line=7,col=3,title=Box shop/bad::{COLOUR}"


@pytest.mark.parametrize("arguments", [[], ["-o", "xml", "-"], ["--field-validation", "Maybe", "-"]])
def test_usage_errors(files: dict[str, str], arguments: list[str]) -> None:
    assert against(files, *arguments, stdin="").exit_code == 2


def test_a_server_that_is_not_reached(files: dict[str, str]) -> None:
    result = run("--server", "http://127.0.0.1:9", files["good"])
    assert result.exit_code == 4
    assert result.stderr.startswith("Error: ")


def test_many_objects_are_checked_in_processes_and_told_in_order(
    files: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("specmux_tools.commands.validate.FEW_OBJECTS", 10)
    text = "---\n".join(GOOD.replace("size: 1", f"size: {number}") for number in range(30))
    alone = against(files, "--workers", "1", "-", stdin=text)
    together = against(files, "--workers", "2", "-", stdin=text)
    assert together.stdout == alone.stdout
    assert alone.stdout.count("error:") == 20


def test_each_json_object_of_a_stream_is_one() -> None:
    stream = io.BytesIO(b'{"kind": "A"}\n{"kind": "B"} {')
    parts = list(parts_of(stream.getvalue()))
    assert [(part.data, part.line) for part in parts] == [
        (b'{"kind": "A"}', 0),
        (b'{"kind": "B"}', 1),
        (b"{", 1),
    ]
    checked: list[Any] = check(Manifest("f", parts[2]), Validator(DocumentSet({})), VerdictOptions())
    assert checked[0].report.fatal.endswith("unexpected end of JSON input")


def test_unions_are_checked_where_it_is_asked_for(tmp_path: Path) -> None:
    kind = {"group": "example.com", "version": "v1", "kind": "Box"}
    unions = [{"discriminator": "type", "fields-to-discriminateBy": {"a": "A", "b": "B"}}]
    texts = {name: {"type": "string"} for name in ("apiVersion", "kind", "type", "a", "b")}
    schema = {"properties": texts, "x-kubernetes-unions": unions, "x-kubernetes-group-version-kind": [kind]}
    document = {
        "openapi": "3.0.0",
        "info": {"title": "Boxes", "version": "v1"},
        "paths": {"/apis/example.com/v1/boxes": {"post": {"x-kubernetes-group-version-kind": kind}}},
        "components": {"schemas": {"com.example.v1.Box": schema}},
    }
    served = tmp_path / "apis__example.com__v1_openapi.json"
    served.write_text(json.dumps(document))
    text = "apiVersion: example.com/v1\nkind: Box\ntype: B\na: x\nb: z\n"

    def checked(*options: str) -> Result:
        return run("--file", str(served), *options, "-", stdin=text)

    assert (checked().exit_code, checked("--unions", "off").stdout) == (0, "")
    assert checked("--unions", "seed").exit_code == 1
    assert "multiple union members set (a, b)" in checked("--unions", "seed").stdout
    assert "multiple new fields added: a, b" in checked("--unions", "legacy").stdout
    assert checked("--unions", "both").exit_code == 2


@pytest.mark.parametrize(
    ("manifest", "hint"),
    [
        ("apiVersion: v1\nkind: Box\nmetadata: {name: a}\n", "v1 Box: example.com/v1 has Box"),
        ("apiVersion: example.com/v1\nkind: box\nmetadata: {name: a}\n", "did you mean Box?"),
        (
            "apiVersion: extensions/v1beta1\nkind: Ingress\nmetadata: {name: a}\n",
            "Ingress is in networking.k8s.io/v1 since 1.19; Kubernetes 1.22 removed extensions/v1beta1",
        ),
    ],
)
def test_kind_that_is_elsewhere_is_said_to_be_there(
    files: dict[str, str], tmp_path: Path, manifest: str, hint: str
) -> None:
    path = tmp_path / "elsewhere.yaml"
    path.write_text(manifest)
    result = against(files, str(path))
    assert result.exit_code == 1
    assert hint in result.stderr
    assert "give the CustomResourceDefinition" not in result.stderr


def test_rules_have_the_libraries_of_a_release(files: dict[str, str], tmp_path: Path) -> None:
    rule = '[{rule: "[3, self].sort()[0] == self"}]'
    written = DEFINITION.replace("maximum: 9", f"x-kubernetes-validations: {rule}")
    definition = tmp_path / "rules.yaml"
    definition.write_text(written)
    good = GOOD.replace("size: 1", "size: 4")
    found = run("--file", str(definition), "-", stdin=good)
    assert (found.exit_code, "failed rule: [3, self].sort()" in found.stdout) == (1, True)
    found = run("--file", str(definition), "--release", "1.33", "-", stdin=good)
    assert found.exit_code == 5
    assert "an apiserver refuses the definition: compilation failed" in found.stdout


@pytest.mark.parametrize("given", [(), ("--file",)])
def test_unions_that_a_definition_declares_are_judged(given: tuple[str, ...]) -> None:
    """Among the manifests, and as the source."""
    folder = DATA / "defects/unions"
    source = (*given, str(folder / "unioncrd.yaml")) if given else ("--file", str(folder / "anyunion.json"))
    paths = (str(folder / "u.yaml"), *(() if given else ("--skip", "CustomResourceDefinition")))
    defined = () if given else (str(folder / "unioncrd.yaml"),)
    result = run(*source, "--unions", "seed", *defined, *paths)
    assert result.exit_code == 1
    assert "u.yaml:4:1: error: U u: spec: Invalid value: " in result.stdout
    assert "multiple union members set (a, b)" in result.stdout
    assert run(*source, *defined, *paths).exit_code == 0


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("40-crd-bad-schema", "properties[replicas].type: Required value"),
        ("41-crd-name-mismatch", "metadata.name"),
    ],
)
def test_a_refused_definition_is_an_error_and_its_objects_are_not_blamed(
    name: str, place: str, tmp_path: Path
) -> None:
    document = tmp_path / "v1.json"
    document.write_bytes(read(documents("1.35")["apis/apiextensions.k8s.io/v1"]))
    cron = tmp_path / "cron.yaml"
    cron.write_text("apiVersion: shop.example.org/v1\nkind: Cron\nmetadata: {name: a}\nspec: {schedule: a}\n")
    crd = DATA / f"defects/mistakes/{name}.yaml"
    result = run("--file", str(document), str(crd), str(cron))
    assert result.exit_code == 1
    error, note = result.stdout.splitlines()
    assert re.match(rf"{re.escape(str(crd))}:\d+:\d+: error: CustomResourceDefinition ", error)
    assert place in error
    assert note.startswith(f"{cron}:1:1: note: Cron a: not checked: its definition is refused: ")
    assert "unknown field" not in result.output


@pytest.fixture
def stored(tmp_path: Path) -> str:
    """An object whose size is too large already, and one that no manifest has."""
    path = tmp_path / "stored.yaml"
    path.write_text(GOOD.replace("size: 1", "size: 12") + "---\n" + GOOD.replace("good", "gone"))
    return str(path)


def test_old_makes_updates_of_the_objects_that_are_stored(files: dict[str, str], stored: str) -> None:
    path = Path(files["good"])
    path.write_text(GOOD.replace("size: 1", "size: 12, colour: red") + "---\n" + GOOD.replace("good", "new"))
    assert run("--file", files["crd"], str(path)).exit_code == 1
    result = run("--file", files["crd"], "--old", stored, str(path))
    assert result.exit_code == 0, result.output
    assert f"1 object is not in {stored}, checked as created: Box new" in result.stderr
    assert f"1 object is in {stored} alone, not checked: Box gone" in result.stderr
    required = run("--file", files["crd"], "--old", stored, "--operation", "update", str(path))
    assert required.exit_code == 5
    assert "Box new: the update was not checked" in required.stdout


def test_updates_without_stored_objects_are_a_usage_error(files: dict[str, str], stored: str) -> None:
    assert run("--operation", "update", files["good"]).exit_code == 2
    assert run("--operation", "create", "--old", stored, files["good"]).exit_code == 2
    assert run("--old", "git:main", files["good"]).exit_code == 3


def test_old_from_cluster_asks_the_server(files: dict[str, str]) -> None:
    definition = yaml.safe_load(DEFINITION)
    ((key, document),) = build([definition]).documents.items()
    stored = {**yaml.safe_load(GOOD), "spec": {"size": 12}}
    reference = Reference({key: json.dumps(document).encode()})

    def answer(request: Request) -> Any:
        if request.path == f"/{key}/namespaces/default/boxes/good":
            return Reply(body=json.dumps(stored).encode())
        return reference(request) if request.path.startswith("/openapi") else Reply(404)

    path = Path(files["good"])
    path.write_text(
        GOOD.replace("size: 1", "size: 12, colour: red") + "---\n" + BAD.replace("color:", "colour:")
    )
    with serving_in_thread(answer) as server:
        options = ("--server", server.url, "--cache-directory", str(path.parent / "cache"), str(path))
        alone = run(*options)
        result = run(*options, "--old-from-cluster")
    assert alone.stdout.count(SIZE.replace("10", "12")) == 1
    assert SIZE.replace("10", "12") not in result.stdout
    assert SIZE in result.stdout
    assert f"1 object is not in {server.url}, checked as created: Box shop/bad" in result.stderr


@pytest.mark.parametrize("body", [b"<html>Log in</html>", b"[]", b'{"a":' * 100_000, b""])
def test_an_old_object_that_is_none_is_an_error_of_the_server(files: dict[str, str], body: bytes) -> None:
    ((key, document),) = build([yaml.safe_load(DEFINITION)]).documents.items()
    reference = Reference({key: json.dumps(document).encode()})

    def answer(request: Request) -> Any:
        return reference(request) if request.path.startswith("/openapi") else Reply(body=body)

    cache = str(Path(files["good"]).parent / "cache")
    with serving_in_thread(answer) as server:
        options = ("--server", server.url, "--cache-directory", cache, "--old-from-cluster")
        result = run(*options, files["good"])
    assert result.exit_code == 4
    assert f"{server.url}/{key}/namespaces/default/boxes/good: its answer is no object: " in result.stderr


def test_field_validation_takes_the_words_of_kubectl(files: dict[str, str]) -> None:
    path = Path(files["bad"])
    path.write_text(BAD.replace("size: 10", "size: 1"))
    codes = {
        word: run("--file", files["crd"], "--field-validation", word, str(path)).exit_code
        for word in ("true", "strict", "Strict", "warn", "Warn", "ignore", "false")
    }
    assert codes == {"true": 1, "strict": 1, "Strict": 1, "warn": 0, "Warn": 0, "ignore": 0, "false": 0}


def test_warnings_fail_where_that_is_asked_for(files: dict[str, str]) -> None:
    path = Path(files["bad"])
    path.write_text(BAD.replace("size: 10", "size: 1"))
    options = ("--file", files["crd"], "--field-validation", "warn", "--summary")
    assert run(*options, "--fail-on", "error", str(path)).exit_code == 0
    failed = run(*options, "--fail-on", "warning", str(path))
    assert (failed.exit_code, "1 invalid" in failed.stdout) == (1, True)
    assert 'failures="1"' in run(*options, "--fail-on", "warning", "-o", "junit", str(path)).stdout
    assert against(files, "--fail-on", "never", str(path)).exit_code == 0


@pytest.mark.parametrize(
    ("patch_type", "patch", "expected"),
    [
        ("merge", "spec: {size: 9}", (0, "")),
        ("merge", "spec: {size: 10}", (1, SIZE)),
        ("merge", '{"spec":{"color":"red","color":"red"}}', (1, 'duplicate field "spec.color"')),
        ("json", '[{"op":"add","path":"/spec/color","value":"red"}]', (1, 'unknown field "spec.color"')),
        (
            "json",
            "- {op: test, path: /spec/size, value: 3}",
            (1, "testing value /spec/size failed: test failed"),
        ),
        ("strategic", "spec: {size: 9}", (1, "accepted media types include")),
        ("apply", GOOD.replace("size: 1", "size: 10"), (1, SIZE)),
        ("apply", GOOD.replace("size", "siez"), (1, ".spec.siez: field not declared in schema")),
    ],
)
def test_patches_are_judged(
    files: dict[str, str], tmp_path: Path, patch_type: str, patch: str, expected: tuple[int, str]
) -> None:
    path = tmp_path / "patch"
    path.write_text(patch)
    result = against(files, files["good"], "--patch", str(path), "--patch-type", patch_type)
    assert (result.exit_code, expected[1] in result.stdout) == (expected[0], True), result.output


def test_what_is_applied_may_be_new(files: dict[str, str]) -> None:
    result = against(files, "--patch", files["good"], "--patch-type", "apply", "--summary")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "1 valid" in result.stdout
    wrong = Path(files["both"])
    wrong.write_text(GOOD.replace("size", "siez"))
    refused = against(files, files["good"], "--patch", str(wrong), "--patch-type", "apply")
    assert (refused.exit_code, refused.stderr) == (1, "")
    beside = against(files, files["bad"], "--patch", files["good"], "--patch-type", "apply")
    assert f"1 object is not in {files['bad']}, checked as created: Box good" in beside.stderr


def test_options_of_patches_go_together(files: dict[str, str]) -> None:
    for options in (
        ["--patch", files["good"]],
        ["--patch-type", "merge"],
        ["--patch", files["good"], "--patch-type", "merge", "--old", files["good"]],
    ):
        assert against(files, files["good"], *options).exit_code == 2
    assert run().exit_code == 2
    assert against(files, "--patch", files["good"], "--patch-type", "merge").exit_code == 2


DEFAULTED = DEFINITION.replace(
    "              colour: {type: string}", "              colour: {type: string, default: blue}"
).replace("    storage: true\n", "    storage: true\n    subresources: {status: {}}\n")


def test_objects_are_printed_as_they_would_be_stored(files: dict[str, str], tmp_path: Path) -> None:
    Path(files["crd"]).write_text(DEFAULTED)
    text = GOOD.replace("size: 1", "size: 1, color: red") + "status: {x: 1}\n---\n" + BAD
    result = against(files, "--field-validation", "warn", "-o", "yaml", "-", stdin=text)
    assert result.exit_code == 1
    assert SIZE in result.stderr
    assert SIZE not in result.stdout
    expected = {
        "apiVersion": "example.com/v1",
        "kind": "Box",
        "metadata": {"name": "good"},
        "spec": {"size": 1, "colour": "blue"},
    }
    assert list(yaml.safe_load_all(result.stdout)) == [expected]
    as_json = against(files, "-o", "object-json", files["good"])
    assert json.loads(as_json.stdout) == expected
    both = against(files, "-o", "object-json", files["good"], files["good"])
    assert json.loads(both.stdout) == {"apiVersion": "v1", "kind": "List", "items": [expected, expected]}


@pytest.mark.parametrize("colour", ["1e3", "0o14", "1_e3", "y", "-_1", "2001-1-1"])
def test_stored_objects_are_printed_so_that_every_reader_of_yaml_reads_their_texts(
    files: dict[str, str], colour: str
) -> None:
    box = {
        "apiVersion": "example.com/v1", "kind": "Box",
        "metadata": {"name": "good", "namespace": "shop"}, "spec": {"size": 1, "colour": colour},
    }  # fmt: skip
    result = against(files, "-o", "yaml", "-", stdin=json.dumps(box))
    for is_manifest in (False, True):
        (stored,) = parse_yaml_stream(result.stdout.encode(), is_manifest=is_manifest)
        assert stored["spec"]["colour"] == colour


def test_patched_objects_are_printed_as_they_would_be_stored(files: dict[str, str], tmp_path: Path) -> None:
    patch = tmp_path / "patch.json"
    patch.write_text('{"spec":{"size":2,"colour":"red"}}')
    options = ("--patch", str(patch), "--patch-type", "merge", "-o", "yaml")
    assert yaml.safe_load(against(files, files["good"], *options).stdout)["spec"] == {
        "size": 2,
        "colour": "red",
    }


def test_unknown_fields_of_built_in_kinds_are_not_stored(tmp_path: Path) -> None:
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, labels: {x: y1}, foo: 1}\n"
    text += "data: {a: b}\ndota: {}\n"
    directory = str(DATA / "k8s-pairs" / "1.35" / "v3")
    result = CliRunner().invoke(
        validate, ["--directory", directory, "--field-validation", "ignore", "-o", "yaml", "-"], input=text
    )
    assert yaml.safe_load(result.stdout) == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "a", "labels": {"x": "y1"}},
        "data": {"a": "b"},
    }


@pytest.mark.parametrize("form", FORMS)
def test_every_form_says_what_was_not_looked_at(form: str, tmp_path: Path) -> None:
    document = tmp_path / "v1.json"
    meta = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
    pod = {
        "type": "object",
        "properties": {"metadata": {"$ref": f"#/components/schemas/{meta}"}},
        "x-kubernetes-group-version-kind": [{"group": "", "version": "v1", "kind": "Policy"}],
    }
    named = {"type": "object", "properties": {"name": {"type": "string"}}}
    components = {"schemas": {"io.k8s.api.core.v1.Policy": pod, meta: named}}
    written = {"openapi": "3.0.0", "paths": {"/api/v1/": {}}, "components": components}
    document.write_text(json.dumps(written))
    objects = "".join(f"---\napiVersion: v1\nkind: Policy\nmetadata: {{name: {name}}}\n" for name in "ab")
    result = run("--file", str(document), "--summary", "-o", form, "-", stdin=objects)
    assert result.exit_code == 0, result.output
    assert "2 Policies: rules that apiservers have in code are not checked" in result.stdout


def test_gzipped_manifests_are_read_as_every_command_reads_files(
    files: dict[str, str], tmp_path: Path
) -> None:
    packed = tmp_path / "good.yaml.gz"
    packed.write_bytes(gzip.compress(GOOD.encode()))
    assert against(files, str(packed)).exit_code == 0
    packed.write_bytes(gzip.compress(GOOD.encode())[:-9])
    cut_short = against(files, str(packed))
    assert (cut_short.exit_code, str(packed) in cut_short.stderr) == (3, True)


def test_no_process_is_started_where_one_processor_is_allowed(
    files: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0})
    monkeypatch.setattr(validate_module, "FEW_OBJECTS", 1)
    monkeypatch.setattr("specmux_aggregator.interruptible_pool.InterruptiblePool", None)
    assert against(files, files["good"], files["good"]).exit_code == 0
