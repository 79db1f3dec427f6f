"""``specmux diff`` as users run it: files, folders, standard input, git, servers, policies, exit codes."""

from __future__ import annotations

import gzip
import shutil
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml
from click.testing import CliRunner, Result

from data.compared import definition, document
from fakes.apiserver import FakeAPIServer
from running.event_loop import serving
from specmux_aggregator.cli import main

STRING = {"type": "string"}
OLD = {"type": "object", "properties": {"a": STRING, "b": STRING}}
NEW = {"type": "object", "properties": {"a": STRING, "c": STRING}}
TEXT = (
    "breaking  apis/example.com/v1 Widget spec.b\n"
    "          field-removed: the field is gone: string (breaks writers, readers and stored objects)\n"
    "notice    apis/example.com/v1 Widget spec.c\n"
    "          field-added: the field is new: string\n"
    "1 breaking, 1 notice\n"
)


def run(*arguments: Any, stdin: bytes | None = None) -> Result:
    return CliRunner().invoke(main, ["diff", *map(str, arguments)], input=stdin)


def written(path: Path, value: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    data = yaml.safe_dump(value).encode() if path.suffix == ".yaml" else orjson.dumps(value)
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


@pytest.fixture
def old(tmp_path: Path) -> Path:
    return written(tmp_path / "old.json", document(OLD))


@pytest.fixture
def new(tmp_path: Path) -> Path:
    return written(tmp_path / "new.json.gz", document(NEW))


def test_two_files(old: Path, new: Path) -> None:
    result = run(old, new)
    assert (result.exit_code, result.output) == (1, TEXT)


@pytest.mark.parametrize(
    ("fail_on", "one_way", "same"), [("breaking", 1, 0), ("warning", 1, 0), ("notice", 1, 0), ("never", 0, 0)]
)
def test_the_exit_code_is_what_fail_on_asks(
    old: Path, new: Path, fail_on: str, one_way: int, same: int
) -> None:
    assert run(old, new, "--fail-on", fail_on).exit_code == one_way
    assert run(old, old, "--fail-on", fail_on).exit_code == same


def test_an_addition_fails_where_notices_do(tmp_path: Path, old: Path) -> None:
    more = written(
        tmp_path / "more.json", document({**OLD, "properties": {**OLD["properties"], "c": STRING}})
    )  # type: ignore[dict-item]
    assert run(old, more).exit_code == 0
    assert run(old, more, "--fail-on", "notice").exit_code == 1


def test_standard_input(old: Path) -> None:
    assert run(old, "-", stdin=gzip.compress(orjson.dumps(document(NEW)))).output == TEXT


def test_folders_of_definitions_with_what_is_none(tmp_path: Path) -> None:
    written(tmp_path / "1" / "widgets.yaml", definition(OLD))
    written(tmp_path / "2" / "crds" / "renamed.yaml", definition(NEW, deprecated=True))
    written(tmp_path / "2" / "kustomization.yaml", {"resources": ["crds"]})
    result = CliRunner().invoke(main, ["diff", str(tmp_path / "1"), str(tmp_path / "2"), "--format", "json"])
    told = [(change["id"], change["path"]) for change in orjson.loads(result.stdout)["changes"]]
    assert told == [("field-removed", "spec.b"), ("deprecated", ""), ("field-added", "spec.c")]
    assert "1 file of kustomize (kustomizations, patches) skipped: " in result.stderr


def test_definitions_and_the_swagger_of_their_server_are_compared(tmp_path: Path, new: Path) -> None:
    """Two forms of one API: a manifest, and a document."""
    manifest = written(tmp_path / "crd.yaml", definition(OLD))
    told = run(manifest, new, "--format", "json").output
    assert ("field-removed", "spec.b") in {
        (each["id"], each["path"]) for each in orjson.loads(told)["changes"]
    }


def test_one_group_version_of_many(tmp_path: Path) -> None:
    one = written(tmp_path / "1" / "apis" / "example.com" / "v1.json", document(OLD)).parents[2]
    two = written(tmp_path / "2" / "apis" / "example.com" / "v2.json", document(OLD, version="v2")).parents[2]
    assert run(one, two).exit_code == 1
    assert "group-version-added" in run(one, two, "-g", "example.com/v2").output
    assert run(one, two, "-g", "example.com/v2").exit_code == 0


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_a_revision_of_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def git(*arguments: str) -> None:
        identity = ("-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "commit.gpgsign=false")
        subprocess.run(["git", *identity, *arguments], cwd=tmp_path, check=True, capture_output=True)

    git("init", "-q")
    file = written(tmp_path / "crds" / "widgets.yaml", definition(OLD))
    git("add", ".")
    git("commit", "-qm", "one")
    written(file, definition(NEW))
    monkeypatch.chdir(tmp_path)
    assert run("git:HEAD:crds/widgets.yaml", "crds").output == TEXT
    assert run("git:HEAD:crds", "crds").output == TEXT
    assert run("git:HEAD:", "crds").output == TEXT
    refused = run("git:nowhere:crds", "crds")
    assert refused.exit_code == 3
    assert "git:nowhere:crds" in refused.output
    assert run("git:--upload-pack=x:crds", "crds").exit_code == 3
    assert run("git:HEAD", "crds").exit_code == 3


def test_a_server_and_a_document_of_it(old: Path) -> None:
    server = FakeAPIServer({"apis/example.com/v1": orjson.dumps(document(NEW))})
    with serving(server):
        assert run(old, server.url).output == TEXT
        assert run(old, f"{server.url}/openapi/v3/apis/example.com/v1").output == TEXT
        assert run(old, f"{server.url}/openapi/v3/apis/nowhere/v1").exit_code == 3


def test_a_server_that_nobody_has_asked_yet_does_not_answer(old: Path) -> None:
    assert run(old, "http://127.0.0.1:9").exit_code == 4


def test_a_policy_allows_and_says_what_it_allows_in_vain(tmp_path: Path, old: Path, new: Path) -> None:
    entries = [{"path": "spec.b", "reason": "unused"}, {"path": "spec.x", "reason": "unused"}]
    policy = written(tmp_path / "policy.yaml", {"allow": entries})
    result = run(old, new, "--policy", policy)
    assert result.exit_code == 0
    assert "policy: the entry for path spec.x allows nothing that changed" in result.output


def test_a_policy_that_cannot_be_read_is_an_invalid_configuration(tmp_path: Path, old: Path) -> None:
    policy = written(tmp_path / "policy.yaml", {"allow": [{"path": "spec.b"}]})
    result = run(old, old, "--policy", policy)
    assert result.exit_code == 3
    assert f"{policy}: /allow/0/reason: must say why" in result.output


@pytest.mark.parametrize("form", ["text", "json", "markdown", "junit", "sarif", "github"])
def test_every_form_names_the_change(old: Path, new: Path, form: str) -> None:
    result = run(old, new, "--format", form)
    assert result.exit_code == 1
    assert "field-removed" in result.output


def test_what_is_not_there_is_a_usage_error(old: Path) -> None:
    assert run(old, "nowhere.json").exit_code == 3
    assert run(old).exit_code == 2
    assert run(old, old, "--format", "html").exit_code == 2


def test_what_is_no_document_is_refused(tmp_path: Path, old: Path) -> None:
    result = run(old, written(tmp_path / "x.json", {"a": 1}))
    assert result.exit_code == 3
    assert "x.json" in result.output
    (tmp_path / "y.json").write_text("{")
    assert run(old, tmp_path / "y.json").output.startswith(f"Error: {tmp_path / 'y.json'}: /: not JSON")


TEMPLATE = "{{- if .Values.crds }}\n"


def test_a_file_that_cannot_be_read_fails_the_gate(tmp_path: Path) -> None:
    """A template whose definition loses a field, beside one that stays as it is."""
    other = definition({"type": "object"})
    other["metadata"]["name"] = "gizmos.example.org"
    other["spec"] |= {"group": "example.org", "names": {"kind": "Gizmo", "plural": "gizmos"}}
    for side, schema in (("1", OLD), ("2", NEW)):
        written(tmp_path / side / "gizmos.yaml", other)
        text = TEMPLATE + yaml.safe_dump(definition(schema)) + "{{- end }}\n"
        (tmp_path / side / "widgets.yaml").write_text(text)
    refused = run(tmp_path / "1", tmp_path / "2")
    assert refused.exit_code == 3
    assert "widgets.yaml" in refused.stderr
    assert "--allow-unread" in refused.stderr
    allowed = run(tmp_path / "1", tmp_path / "2", "--allow-unread", "--format", "json")
    assert allowed.exit_code == 0
    notes = orjson.loads(allowed.stdout)["summary"]["notes"]
    assert len(notes) == 2
    assert all("widgets.yaml" in note for note in notes)


def test_a_version_that_cannot_be_read_fails_the_gate(tmp_path: Path, old: Path) -> None:
    broken = definition(NEW)
    broken["spec"]["versions"].append({"name": "v2", "served": "yes"})
    refused = run(old, written(tmp_path / "broken.yaml", broken))
    assert refused.exit_code == 3
    assert "/spec/versions/1/served" in refused.stderr
    assert run(old, tmp_path / "broken.yaml", "--allow-unread").exit_code == 1


def test_a_definition_that_two_files_give_in_different_ways_is_refused(tmp_path: Path) -> None:
    for name, schemas in (("1", (OLD, NEW)), ("2", (NEW, OLD)), ("3", (OLD, OLD))):
        for file, schema in zip(("a.yaml", "b.yaml"), schemas, strict=True):
            written(tmp_path / name / file, definition(schema))
    refused = run(tmp_path / "1", tmp_path / "2")
    assert refused.exit_code == 3
    assert "widgets.example.com is defined otherwise in" in refused.stderr
    assert run(tmp_path / "3", tmp_path / "3").exit_code == 0


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_a_path_that_a_revision_does_not_have_is_an_empty_side(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "commit.gpgsign=false")
    (tmp_path / "README.md").write_text("first\n")
    for command in (("init", "-q"), ("add", "."), ("commit", "-qm", "one")):
        subprocess.run(["git", *identity, *command], cwd=tmp_path, check=True, capture_output=True)
    written(tmp_path / "crds" / "widgets.yaml", definition(NEW))
    monkeypatch.chdir(tmp_path)
    added = run("git:HEAD:crds", "crds")
    assert added.exit_code == 0
    assert "group-version-added" in added.output
    assert "git:HEAD:crds: the revision has no such path" in added.output
    assert run("crds", "git:HEAD:crds").exit_code == 1
    assert run("git:HEAD:crds", "git:HEAD:elsewhere").exit_code == 3
    assert run("git:nowhere:crds", "crds").exit_code == 3


def test_a_baseline_allows_what_fails_today_and_nothing_else(tmp_path: Path, old: Path, new: Path) -> None:
    baseline = tmp_path / "baseline.yaml"
    assert run(old, new, "--write-baseline", baseline).exit_code == 0
    (entry,) = yaml.safe_load(baseline.read_text())["allow"]
    assert (entry["id"], len(entry["fingerprint"])) == ("field-removed", 16)
    assert run(old, new, "--policy", baseline).exit_code == 0
    less = written(tmp_path / "less.json", document({"type": "object"}))
    assert run(old, less, "--policy", baseline).exit_code == 1


def stored(number: int, **spec: Any) -> dict[str, Any]:
    head = {"apiVersion": "example.com/v1", "kind": "Widget"}
    return {**head, "metadata": {"name": f"w{number}", "namespace": "shop"}, "spec": spec}


def test_objects_that_exist_are_judged_under_both_sides(tmp_path: Path) -> None:
    old = written(tmp_path / "old.yaml", definition(OLD))
    strict = {"type": "object", "properties": {"a": {**STRING, "maxLength": 2}, "b": STRING}}
    new = written(tmp_path / "new.yaml", definition(strict))
    objects = [
        stored(1, a="ab"),
        stored(2, a="abc"),
        stored(3, a=7),
        stored(4),
        {**stored(5), "kind": "Other"},
    ]
    written(tmp_path / "objects" / "all.yaml", {"apiVersion": "v1", "kind": "List", "items": objects})
    result = run(old, new, "--objects", tmp_path / "objects", "-o", "json")
    assert result.exit_code == 1
    notes = orjson.loads(result.stdout)["summary"]["notes"]
    assert notes[0].startswith(
        "1 of 4 objects of kind Widget (example.com/v1) would be refused, or lose fields: shop/w2: spec.a: "
    )
    assert notes[1] == "1 object of kind Widget refused before and after"
    assert "1 object in" in notes[2]
    wider = written(
        tmp_path / "wider.yaml", definition({**OLD, "x-kubernetes-preserve-unknown-fields": True})
    )
    assert run(old, wider, "--objects", tmp_path / "objects").exit_code == 0
    only = written(tmp_path / "other.yaml", {**stored(5), "kind": "Other"})
    assert run(old, new, "--objects", only).exit_code == 3


def test_objects_that_cannot_be_judged_are_named(tmp_path: Path) -> None:
    old = written(tmp_path / "old.yaml", definition(OLD))
    unknown = {"rule": "size(self.a.matches('(?<x>a)')) == ("}
    new = written(tmp_path / "new.yaml", definition({**OLD, "x-kubernetes-validations": [unknown]}))
    objects = written(tmp_path / "objects.yaml", stored(1, a="ab"))
    result = run(old, new, "--objects", objects)
    assert "1 object of kind Widget not checked in full; specmux validate says why" in result.output
    envelope = tmp_path / "widget.pb"
    envelope.write_bytes(b"k8s\0\n\x13\n\x0eexample.com/v1\x12\x01W")
    refused = run(old, new, "--objects", envelope)
    assert refused.exit_code == 3
    assert "Traceback" not in refused.output
    assert isinstance(refused.exception, SystemExit)


def test_objects_that_a_cluster_stores_are_judged(tmp_path: Path) -> None:
    """Page by page, with the credentials of the context."""
    pages = {
        "/apis/example.com/v1/widgets?limit=500": {
            "apiVersion": "example.com/v1",
            "kind": "WidgetList",
            "metadata": {"continue": "a=b"},
            "items": [
                {key: value for key, value in stored(1, a="abc").items() if key in ("metadata", "spec")}
            ],
        },
        "/apis/example.com/v1/widgets?limit=500&continue=a%3Db": {
            "apiVersion": "example.com/v1",
            "kind": "WidgetList",
            "metadata": {},
            "items": [stored(2, a="x")],
        },
    }
    asked = []

    class Lists(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append((self.path, self.headers.get("Authorization")))
            body = orjson.dumps(pages[self.path])
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Lists)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    cluster = {"server": f"http://127.0.0.1:{server.server_address[1]}"}
    kubeconfig = written(
        tmp_path / "config.yaml",
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "c", "cluster": cluster}],
            "users": [{"name": "u", "user": {"token": "t"}}],
            "contexts": [{"name": "live", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "live",
        },
    )
    old = written(tmp_path / "old.yaml", definition(OLD))
    new = written(
        tmp_path / "new.yaml",
        definition({"type": "object", "properties": {"a": {**STRING, "maxLength": 2}, "b": STRING}}),
    )
    try:
        result = run(old, new, "--objects", "context:live", "--kubeconfig", kubeconfig)
    finally:
        server.shutdown()
        server.server_close()
    assert result.exit_code == 1, result.output
    assert "1 of 2 objects of kind Widget" in result.output
    assert [path for path, _ in asked] == list(pages)
