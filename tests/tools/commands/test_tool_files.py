"""Files of other tools among manifests: skipped in folders, each tool in one line, and never by a mistake."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from specmux_aggregator.cli import main

POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: a, imagee: b}]}\n"
FILES = {
    "pod.yaml": POD,
    "chart/Chart.yaml": "apiVersion: v2\nname: c\nversion: 1.0.0\n",
    "chart/values.yaml": "secret: hunter2\n",
    "chart/values.schema.json": "{}",
    "chart/ci/tls-values.yaml": "a: 1\n",
    "chart/templates/cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\n",
    "skaffold.yaml": "apiVersion: skaffold/v4beta11\nkind: Config\nbuild: {}\n",
    "swagger.json": '{"swagger": "2.0", "info": {"title": "x", "version": "1"}, "paths": {}}',
    "openapi.yaml": "# made by hand\nopenapi: 3.0.0\npaths: {}\n",
}


def validated(folder: Path, files: dict[str, str], *paths: str) -> Result:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return CliRunner().invoke(main, ["validate", "--release", "1.37", *paths])


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_folder_with_files_of_other_tools_names_them_in_a_line_each(here: Path) -> None:
    done = validated(here, FILES, ".")
    assert done.exit_code == 1
    assert done.stdout.splitlines() == [
        'pod.yaml:4:31: error: Pod a: unknown field "spec.containers[0].imagee" (did you mean "image"?)'
    ]
    assert sorted(line for line in done.stderr.splitlines() if "skipped" in line) == [
        "Warning: 1 file of Skaffold skipped: skaffold.yaml",
        "Warning: 2 files of OpenAPI skipped: openapi.yaml, swagger.json (specmux check validates documents)",
        "Warning: 5 files of a Helm chart skipped: chart/Chart.yaml, chart/values.schema.json, "
        "chart/values.yaml, chart/ci/tls-values.yaml, chart/templates/cm.yaml "
        "(render it: helm template CHART | specmux validate -)",
    ]
    assert "hunter2" not in done.output


def test_nothing_but_files_of_other_tools_is_not_valid(here: Path) -> None:
    del (others := dict(FILES))["pod.yaml"]
    done = validated(here, others, ".")
    assert done.exit_code == 5
    assert "nothing was validated" in done.stderr


@pytest.mark.parametrize("name", ["skaffold.yaml", "openapi.yaml"])
@pytest.mark.parametrize("is_first", [True, False], ids=["before", "behind"])
def test_manifest_in_a_stream_with_another_tool_is_validated(here: Path, name: str, is_first: bool) -> None:
    parts = (FILES[name], POD) if is_first else (POD, FILES[name])
    done = validated(here, {"both.yaml": "# by hand\n---\n" + "---\n".join(parts)}, ".")
    assert done.exit_code == 1
    assert 'unknown field "spec.containers[0].imagee"' in done.stdout
    assert "skipped" not in done.stderr


def test_stream_of_another_tool_alone_is_skipped(here: Path) -> None:
    text = f"# by hand\n---\n{FILES['skaffold.yaml']}---\n# and\n{FILES['skaffold.yaml']}---\n"
    done = validated(here, {"pod.yaml": POD, "both.yaml": text}, ".")
    assert "Warning: 1 file of Skaffold skipped: both.yaml" in done.stderr


@pytest.mark.parametrize("name", sorted(FILES.keys() - {"pod.yaml"}))
def test_file_that_is_named_is_validated(here: Path, name: str) -> None:
    done = validated(here, FILES, name)
    assert done.exit_code == 1
    assert done.stdout.startswith(f"{name}:")


def test_hook_skips_them_by_name_too(here: Path) -> None:
    done = validated(here, FILES, "--skip-non-objects", "skaffold.yaml", "swagger.json", "--allow-empty")
    assert (done.exit_code, done.stdout) == (0, "")
    assert "1 file of Skaffold skipped: skaffold.yaml" in done.stderr


@pytest.mark.parametrize(
    "name",
    [
        "chart/templates/plain.yaml",
        "chart/crds/plain.yaml",
        "charts/plain.yaml",
        "values.yaml",
        "chart/other.yaml",
    ],
)
def test_manifest_is_validated_wherever_it_lies(here: Path, name: str) -> None:
    done = validated(here, {**FILES, name: POD}, ".")
    assert f"{name}:4:31: error: Pod a" in done.stdout


def test_manifest_that_names_another_tool_in_its_text_is_validated(here: Path) -> None:
    text = f"{POD}---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: b}}\ndatas: {{openapi: a}}\n"
    done = validated(here, {"a.yaml": text}, ".")
    assert 'unknown field "datas"' in done.stdout
