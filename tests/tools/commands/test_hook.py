"""The pre-commit hook, really run: in a repository with more than manifests."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import orjson
import pytest

pytest.importorskip("pre_commit", reason="pre-commit is not installed")

ROOT = Path(__file__).parents[3]
PATHS = ("aggregator", "cache", "converters", "tools", "pyproject.toml", "hatch_build.py", "README.md")
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
            properties:
              least: {type: integer}
              most: {type: integer}
            x-kubernetes-validations:
            - {rule: "self.least <= self.most", message: the least is more than the most}
"""
BOX = "apiVersion: example.com/v1\nkind: Box\nmetadata: {name: a}\nspec: {least: 1, most: 2}\n"
FILES = {
    "schemas/box.yaml": DEFINITION,
    "manifests/box.yaml": BOX,
    "manifests/kustomization.yaml": (
        "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [box.yaml]\n"
    ),
    "other/kustomization.yaml": "resources: [../manifests]\n",
    "package.json": '{"name": "shop", "version": "1.0.0"}\n',
    "tsconfig.json": '{\n  // comments\n  "compilerOptions": {},\n}\n',
    "chart/Chart.yaml": "apiVersion: v2\nname: shop\nversion: 0.1.0\n",
    "chart/values.yaml": "replicas: 1\n",
    "chart/templates/box.yaml": BOX.replace("name: a", 'name: "{{ .Release.Name }}"'),
    "chart/templates/more.yaml": "{{- if .Values.more }}\n" + BOX + "{{- end }}\n",
}


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_hook_judges_the_manifests_of_a_repository_and_nothing_else(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    repository = repository_of(tmp_path / "shop", FILES)
    hooks = hooks_of(tmp_path / "specmux")
    (repository / ".pre-commit-config.yaml").write_bytes(
        orjson.dumps(
            {
                "repos": [
                    {
                        "repo": str(hooks),
                        "rev": git(hooks, "rev-parse", "HEAD").strip(),
                        "hooks": [
                            {
                                "id": "specmux-validate",
                                "args": ["--directory", "schemas"],
                                "exclude": "^schemas/",
                            }
                        ],
                    }
                ]
            }
        )
    )
    git(repository, "add", "-A")
    good = hook(repository, home)
    if "Could not find a version" in good.stdout or "Failed to establish" in good.stdout:
        pytest.skip("no package registry")
    assert good.returncode == 0, good.stdout

    (repository / "manifests/box.yaml").write_text(BOX.replace("least: 1", "least: 3"))
    bad = hook(repository, home)
    assert bad.returncode == 1, bad.stdout
    assert "the least is more than the most" in bad.stdout
    assert "documents in" in bad.stdout

    (repository / "manifests/box.yaml").write_text(BOX.replace("metadata: {name", "metadata: {{name"))
    broken = hook(repository, home)
    assert broken.returncode == 1, broken.stdout


def hook(repository: Path, home: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PRE_COMMIT_HOME": str(home), "SPECMUX_CACHE": str(home)}
    command = [sys.executable, "-m", "pre_commit", "run", "--all-files", "--color", "never"]
    return subprocess.run(
        command, cwd=repository, env=environment, capture_output=True, text=True, timeout=900, check=False
    )


def hooks_of(folder: Path) -> Path:
    """This checkout's working tree as a repository."""
    folder.mkdir()
    for name in PATHS:
        source = ROOT / name
        if source.is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "node_modules")
            shutil.copytree(source, folder / name, ignore=ignored)
        else:
            shutil.copy(source, folder / name)
    shutil.copy(ROOT / ".pre-commit-hooks.yaml", folder)
    return committed(folder)


def repository_of(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return committed(folder)


def committed(folder: Path) -> Path:
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-q", "-m", "all")
    return folder


def git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
