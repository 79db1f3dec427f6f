"""Exit codes: each that a command's help, or its page in docs/, names is one that it ends with."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from specmux_aggregator.cli import main

TESTS = Path(__file__).parents[2]
DOCS = TESTS.parent / "docs"
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
        properties: {spec: {type: object, properties: {size: {type: integer}FIELD}}}
"""
FILES = {
    "old/crd.yaml": DEFINITION.replace("FIELD", ", colour: {type: string}"),
    "new/crd.yaml": DEFINITION.replace("FIELD", ""),
    "other/crd.yaml": DEFINITION.replace("FIELD", "").replace("integer", "string"),
    "half/crd.yaml": DEFINITION.replace("FIELD", ", broken: {type: strin}"),
    "good.yaml": "apiVersion: example.com/v1\nkind: Box\nmetadata: {name: a}\nspec: {size: 1}\n",
    "bad.yaml": "apiVersion: example.com/v1\nkind: Box\nmetadata: {name: a}\nspec: {size: x}\n",
    "policy.yaml": "severity: {no-such-change: breaking}\n",
    "config.yaml": "backends: []\n",
    "wrong.yaml": "backendz: []\n",
    "dead.yaml": "backends: [{name: a, url: 'http://127.0.0.1:9'}]\n",
    "broken.json": "{",
    "small.json": '{"openapi": "3.0.0", "info": {"title": "a", "version": "1"}, "paths": {}}',
    "bundle.tar": "no bundle",
}
DEAD = "http://127.0.0.1:9"

LINES = """
0 check small.json
1 check empty
2 check no-such-file
4 check DEAD
5 check broken.json
0 check-config config.yaml
2 check-config
3 check-config wrong.yaml
4 check-config --probe dead.yaml
0 cache --directory state ls --server DEAD
2 cache get
3 cache --directory state import --server DEAD bundle.tar
4 cache --directory state get --server DEAD apps/v1
2 conformance --no-such-option
4 conformance DEAD
0 convert small.json
1 convert broken.json
2 convert no-such-file
3 convert --strict half
4 convert DEAD --split out
0 diff new new
1 diff old broken.json
2 diff old no-such-folder
3 diff old new --policy policy.yaml
4 diff old DEAD
5 diff old new
0 explain boxes --directory old
1 explain crates --directory old
2 explain boxes --no-such-option
4 explain boxes --server DEAD
0 get --directory old
1 get apps/v1 --directory old
2 get --no-such-option
4 get --server DEAD
1 mcp --directory empty
2 mcp --no-such-option
4 mcp --server DEAD
0 merge small.json
0 merge old/crd.yaml
1 merge broken.json
2 merge --no-such-option
4 merge DEAD
0 schemas --directory old out
1 schemas --directory empty out
2 schemas
4 schemas out --server DEAD
0 search size --directory old
1 search nowhere --directory old
2 search
4 search size --server DEAD
2 serve --no-such-option
3 serve --config wrong.yaml
2 status --no-such-option
4 status --server DEAD
2 ui --no-such-option
2 ui --kubeconfig wrong.yaml
0 upgrade good.yaml --to new --directory old
1 upgrade good.yaml --to other --directory old
2 upgrade --no-such-option
4 upgrade good.yaml --to DEAD --directory old
0 validate good.yaml --directory old
1 validate bad.yaml --directory old
2 validate --no-such-option
4 validate good.yaml --server DEAD
"""
ROWS = [(int(line[0]), line[2:]) for line in LINES.strip().splitlines()]

ELSEWHERE = {
    ("cache", 1): "tools/commands/test_cache.py",
    ("conformance", 0): "tools/document_checks/test_conformance.py",
    ("conformance", 5): "tools/document_checks/test_conformance.py",
    ("mcp", 0): "tools/mcp/test_mcp.py",
    ("serve", 0): "integration/test_signals.py",
    ("serve", 1): "aggregator/test_mistakes.py",
    ("status", 0): "tools/commands/test_status_get_init.py",
    ("status", 1): "tools/commands/test_status_get_init.py",
    ("ui", 0): "tools/commands/test_ui.py",
    ("ui", 1): "aggregator/test_mistakes.py",
}
"""Codes of what runs for a while, or asks a server that answers, and the tests that have them."""


def documented() -> set[tuple[str, int]]:
    found = set()
    with click.Context(main) as context:
        for name in main.list_commands(context):
            command = main.get_command(context, name)
            text = re.search(
                r"Exit codes: (.*?)\.(?: |$)", " ".join(((command and command.help) or "").split())
            )
            found |= {(name, int(code)) for code in re.findall(r"(?:^|, )(\d) ", text[1] if text else "")}
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    made = tmp_path_factory.mktemp("codes")
    (made / "empty").mkdir()
    for name, text in FILES.items():
        (made / name).parent.mkdir(exist_ok=True)
        (made / name).write_text(text)
    yield made


@pytest.mark.parametrize(("code", "line"), ROWS, ids=[line for _, line in ROWS])
def test_each_code_is_returned(code: int, line: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    done = CliRunner().invoke(main, shlex.split(line.replace("DEAD", DEAD)), input="")
    assert done.exit_code == code, done.output


def test_each_documented_code_has_a_row() -> None:
    tried = {(line.split()[0], code) for code, line in ROWS}
    assert documented() - tried - ELSEWHERE.keys() == set()
    assert tried - documented() == set()
    assert all((TESTS / file).is_file() for file in ELSEWHERE.values())


@pytest.mark.parametrize(
    ("page", "command", "sentence"),
    [
        ("validation.md", "validate", r"Exit codes: (.*)\. `# Source:`"),
        ("check.md", "check", r"what ends with exit code (5\. The others: .*?)\. Text"),
        ("client.md", "cache", r"Exit codes: (.*?)\.\n"),
        ("diff.md", "diff", r"decides the exit code:\n\n\| code \| \|\n\|---\|---\|\n((?:\|[^\n]*\n)+)"),
    ],
)
def test_pages_name_the_codes_that_help_names(page: str, command: str, sentence: str) -> None:
    found = re.search(sentence, (DOCS / page).read_text(), re.DOTALL)
    assert found is not None
    codes = {int(code) for code in re.findall(r"(?<![0-9-])[0-9](?![0-9])", found[1])}
    assert codes == {code for name, code in documented() if name == command}
