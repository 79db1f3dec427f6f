"""check-jsonschema over what ``specmux schemas`` writes."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import orjson
import pytest
from click.testing import CliRunner

from data import catalogue_documents as catalogue
from deadline import DEADLINE
from specmux_converters.json_schema.forms import STRICT
from specmux_tools.commands.schemas import schemas

PROGRAM = shutil.which("check-jsonschema", path=str(Path(sys.executable).parent)) or shutil.which(
    "check-jsonschema"
)
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="check-jsonschema is not installed (group dev)")

BED = """apiVersion: garden.example.org/v1
kind: Bed
spec:
  width: 3
"""
DEFINITION = """apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: beds.garden.example.org}
spec:
  group: garden.example.org
  scope: Namespaced
  names: {plural: beds, singular: bed, kind: Bed, listKind: BedList}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {width: {type: integer, minimum: 1}}}
"""


def checked(*arguments: str | Path) -> tuple[int, str]:
    command = [str(PROGRAM), "--color", "never", *map(str, arguments)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE, check=False)
    return run.returncode, run.stdout + run.stderr


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of one custom resource."""
    source, target = tmp_path_factory.mktemp("definitions"), tmp_path_factory.mktemp("schemas")
    (source / "beds.yaml").write_text(DEFINITION)
    run = CliRunner().invoke(schemas, [str(target), "--directory", str(source), "--layout", "grouped"])
    assert run.exit_code == 0, run.output
    return target


@pytest.mark.parametrize("name", ["garden.example.org/bed_v1.json", "all.json"])
@pytest.mark.parametrize(
    ("old", "new", "words"),
    [("", "", "ok"), ("3", "0", "less than the minimum"), ("width", "wide", "'wide' was unexpected")],
)
def test_objects(written: Path, tmp_path: Path, name: str, old: str, new: str, words: str) -> None:
    manifest = tmp_path / "bed.yaml"
    manifest.write_text(BED.replace(old, new) if old else BED)
    status, told = checked("--schemafile", written / name, manifest)
    assert status == (1 if old else 0), told
    assert words in told


def test_schemas_are_of_their_dialect(written: Path) -> None:
    status, told = checked("--check-metaschema", *written.rglob("*_v1.json"), written / "all.json")
    assert status == 0, told


@pytest.mark.long
def test_a_deployment(tmp_path: Path) -> None:
    owner, kind = catalogue.kinds()["apps/v1", "Deployment"]
    schema, manifest = tmp_path / "schema.json", tmp_path / "deployment.json"
    made = owner.kind(kind, STRICT)
    schema.write_bytes(orjson.dumps(made))
    manifest.write_bytes(orjson.dumps(made["examples"][0]))
    assert checked("--check-metaschema", schema)[0] == 0
    assert checked("--schemafile", schema, manifest)[0] == 0
    manifest.write_bytes(orjson.dumps(made["examples"][0] | {"sepc": {}}))
    status, told = checked("--schemafile", schema, manifest)
    assert status == 1
    assert "'sepc' was unexpected" in told
