"""Unmodified programs of others against ``/schemas`` of a running service."""

from __future__ import annotations

import asyncio
import gzip
import json
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from data import catalogue_documents as catalogue
from deadline import DEADLINE
from running.schema_clients import MISSING, LanguageServer, kubeconform, node_modules
from running.service import directory, service
from shared_data import CRDS, GOLDEN, SHARED, needs
from specmux_aggregator.config.settings import SchemaSettings
from specmux_converters.json_schema.forms import STRICT

pytestmark = pytest.mark.long

GROUPED = "{{.Group}}/{{.ResourceKind}}_{{.ResourceAPIVersion}}.json"
HAS_CUSTOM_RESOURCES = (SHARED / CRDS).exists()
OF_RELEASE = ("-kubernetes-version", "1.35.0")


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Of the catalogue of Kubernetes 1.35 with all custom resources of the reference data."""
    folder = tmp_path_factory.mktemp("documents")
    for key, document in (catalogue.of_kubernetes() | catalogue.of_custom_resources()).items():
        path = folder / f"{key}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(orjson.dumps(document))
    started, ended, found = threading.Event(), threading.Event(), []

    async def serve() -> None:
        async with service(directory("files", folder), schemas=SchemaSettings(release="v1.35.2")) as client:
            await client.ready()
            found.append(f"{client.base}/schemas")
            started.set()
            await asyncio.to_thread(ended.wait)

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    assert started.wait(DEADLINE)
    yield found[0]
    ended.set()
    thread.join(DEADLINE)


def checked(*arguments: str) -> tuple[int, dict[str, Any]]:
    program = kubeconform()
    if program is None:
        pytest.skip(MISSING)
    command = [str(program), "-output", "json", "-summary", *arguments]
    run = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE, check=False)
    return run.returncode, json.loads(run.stdout)


def golden(name: str) -> str:
    return str(GOLDEN / "json-schema" / name)


@pytest.mark.parametrize("options", [(), OF_RELEASE, ("-kubernetes-version", "1.35.7")])
@pytest.mark.parametrize("layout", ["", f"/{GROUPED}"])
def test_kubeconform(
    address: str, layout: str, options: tuple[str, ...], tally: Callable[[str, int], None]
) -> None:
    status, told = checked(
        "-strict", *options, "-schema-location", address + layout, golden("dep.yaml"), golden("cel.yaml")
    )
    assert status == 1
    # Three of the seven are custom resources, one of them wrong: without definitions none has a schema.
    counts = [told["summary"][key] for key in ("valid", "invalid", "errors", "skipped")]
    assert counts == ([5, 2, 0, 0] if HAS_CUSTOM_RESOURCES else [3, 1, 3, 0])
    words = {each["kind"]: each["msg"] for each in told["resources"]}
    assert "'imagePolicy' not allowed" in words["Deployment"]
    of_custom = "'foo' not allowed" if HAS_CUSTOM_RESOURCES else "could not find schema"
    assert of_custom in words["Certificate"]
    tally("kubeconform: runs as recorded", 1)


def test_kubeconform_that_is_not_strict(address: str) -> None:
    status, told = checked("-schema-location", address, golden("dep.yaml"))
    assert (status, told["summary"]["valid"]) == ((0, 3) if HAS_CUSTOM_RESOURCES else (1, 2))


def test_kubeconform_asks_elsewhere_for_another_release_and_keeps_what_it_got(
    address: str, tmp_path: Path
) -> None:
    _, other = checked("-kubernetes-version", "1.34.0", "-schema-location", address, golden("dep.yaml"))
    assert "could not find schema" in other["resources"][0]["msg"]
    for _ in range(2):
        _, told = checked("-cache", str(tmp_path), "-schema-location", address, golden("dep.yaml"))
        assert told["summary"]["errors"] == (not HAS_CUSTOM_RESOURCES)
    assert list(tmp_path.iterdir())


@pytest.fixture(scope="module")
def editor() -> Iterator[LanguageServer]:
    modules = node_modules()
    if modules is None:
        pytest.skip(MISSING)
    server = LanguageServer(modules)
    yield server
    server.close()


NOT_HERE = ("401", "410", "404", "429", "301", "internet")


def recorded() -> list[Any]:
    """Cases that ask for nothing but a catalogue."""
    path = GOLDEN / "json-schema" / "yaml-language-server.jsonl.gz"
    if not path.exists():
        return []
    cases = [orjson.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    return [
        pytest.param(case, id=f"{case['server']}: {case['case']}")
        for case in cases
        # That of an unknown group-version was silent when it was recorded: it is told by now.
        if not any(word in case["case"] for word in (*NOT_HERE, "all.json, unknown group-version"))
    ]


@needs("golden/json-schema/yaml-language-server.jsonl.gz")
@pytest.mark.parametrize("case", recorded())
def test_yaml_language_server(
    address: str, editor: LanguageServer, case: Any, tally: Callable[[str, int], None]
) -> None:
    text, settings = (
        json.loads(json.dumps(case[name]).replace("BASE", address)) for name in ("text", "settings")
    )
    uri, told = editor.open(text, settings)
    assert [each["range"]["start"]["line"] for each in told] == [each["line"] for each in case["diagnostics"]]
    for asked in case.get("completions", []):
        labels = {each["label"] for each in editor.at("completion", uri, *asked["at"])["items"]}
        # Names that are titles depend on how parts are titled; names of fields and values do not.
        wanted = {label for label in asked["labels"] if label[:1].islower() and "." not in label}
        assert wanted <= labels
    for asked in case.get("hovers", []):
        words = asked["value"].split("\n")[2]
        assert words[:20] in editor.at("hover", uri, *asked["at"])["contents"]["value"]
    tally("yaml-language-server: cases as recorded", 1)


def test_an_error_is_told_as_it_is(address: str, editor: LanguageServer) -> None:
    text = f"# yaml-language-server: $schema={address}/nope/x_v1.json\nkind: X\n"
    _, told = editor.open(text, {})
    assert "no document has a kind for nope/x_v1.json" in told[0]["message"]


def all_kinds(address: str) -> dict[str, Any]:
    return {"schemas": {f"{address}/all.json": "*.yaml"}}


def test_editor_offers_the_fields_of_the_kind_alone(address: str, editor: LanguageServer) -> None:
    """Kinds whose names another one begins with: CertificateRequest, PodList."""
    certificate = "apiVersion: cert-manager.io/v1\nkind: Certificate\nspec:\n  \n"
    for text, line, other in (
        *([(certificate, 3, {"request", "groups", "extra"})] if HAS_CUSTOM_RESOURCES else ()),
        ("apiVersion: v1\nkind: Pod\n\n", 2, {"items", "template"}),
    ):
        uri, _ = editor.open(text, all_kinds(address))
        items = editor.at("completion", uri, line, len(text.split("\n")[line]))["items"]
        labels = {each["label"] for each in items}
        assert labels
        assert not labels & other


@pytest.mark.parametrize(
    ("version", "kind", "words"),
    [
        ("app/v1", "Deployment", "Deployment is in apps/v1"),
        ("extensions/v1beta1", "Ingress", "Ingress is in networking.k8s.io/v1"),
        ("policy/v1beta1", "PodSecurityPolicy", "has this apiVersion"),
    ],
)
def test_editor_warns_of_an_api_version_that_is_not_there(
    address: str, editor: LanguageServer, version: str, kind: str, words: str
) -> None:
    _, told = editor.open(f"apiVersion: {version}\nkind: {kind}\n", all_kinds(address))
    assert [each["range"]["start"]["line"] for each in told] == [0]
    assert words in told[0]["message"]


COMPILE = """
const Ajv = require("ajv").default, formats = require("ajv-formats").default
const lines = require("fs").readFileSync(0, "utf8")
let count = 0
for (const line of lines.split("\\n").filter(Boolean)) {
  const ajv = new Ajv({strict: false, allErrors: true}); formats(ajv)
  ajv.compile(JSON.parse(line)); count++
}
console.log(count)
"""


def test_ajv_compiles_every_schema(tally: Callable[[str, int], None]) -> None:
    modules = node_modules()
    if modules is None:
        pytest.skip(MISSING)
    text = b"\n".join(orjson.dumps(owner.kind(kind, STRICT)) for owner, kind in catalogue.kinds().values())
    run = subprocess.run(
        ["node", "-e", COMPILE], input=text, capture_output=True, cwd=modules.parent, timeout=280, check=False
    )
    assert run.stderr == b""
    assert int(run.stdout) == len(catalogue.kinds())
    tally("ajv: schemas that compile", len(catalogue.kinds()))


def judged() -> list[Any]:
    """The recorded objects that say rightly what they are."""
    found = []
    for name in ("verdicts-typed", *(["verdicts-cr"] if HAS_CUSTOM_RESOURCES else ())):
        for line in gzip.decompress((GOLDEN / "json-schema" / f"{name}.jsonl.gz").read_bytes()).splitlines():
            case = orjson.loads(line)
            key, kind = case["id"].split("|")[:2]
            version = key.removeprefix("apis/").removeprefix("api/")
            if (case["object"].get("apiVersion"), case["object"].get("kind")) == (version, kind):
                found.append(case["object"])
    return found


def test_kubeconform_says_what_the_schemas_say(
    address: str, tmp_path: Path, tally: Callable[[str, int], None]
) -> None:
    """Of every recorded object, and of one of each kind: so Go compiles every schema."""
    begun = [{"apiVersion": version, "kind": kind} for version, kind in catalogue.kinds()]
    objects = [*judged(), *begun]
    for number, each in enumerate(objects):
        (tmp_path / f"{number}.json").write_bytes(orjson.dumps(each))
    _, told = checked("-strict", "-verbose", "-schema-location", address, str(tmp_path))
    assert not [each["msg"] for each in told["resources"] if "could not find schema" in each["msg"]]
    # An object whose metadata is no object is an error to it, before it looks at a schema.
    taken = {int(Path(each["filename"]).stem): each["status"] == "statusValid" for each in told["resources"]}
    wrong = [
        each
        for number, each in enumerate(objects)
        if taken[number] != catalogue.validator(each["apiVersion"], each["kind"]).is_valid(each)
    ]
    assert not wrong[:5]
    tally("kubeconform: objects judged as by jsonschema-rs", len(objects))
