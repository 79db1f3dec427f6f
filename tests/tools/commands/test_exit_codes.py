"""Exit codes: each that a command's help names is one that it ends with, and docs/exit-codes.md has it."""

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
UNCHECKED = """{"openapi": "3.0.0", "info": {"title": "a", "version": "1"}, "paths": {},
 "components": {"schemas": {"A": {"allOf": [{"$ref": "#/components/schemas/A"}]}}}}"""
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
    "unchecked.json": UNCHECKED,
    "rule.yaml": DEFINITION.replace("FIELD}}", "}, x-kubernetes-validations: [{rule: self.nowhere()}]}"),
    "bundle.tar": "no bundle",
}
DEAD = "http://127.0.0.1:9"

LINES = """
0 check small.json
1 check half
2 check --no-such-option
3 check no-such-file
3 check empty
3 check broken.json
4 check DEAD
5 check unchecked.json
0 check --allow-unchecked unchecked.json
0 check-config config.yaml
2 check-config
3 check-config wrong.yaml
3 check-config no-such-file
4 check-config --probe dead.yaml
0 cache --directory state ls --server DEAD
2 cache get
3 cache --directory state import --server DEAD bundle.tar
3 cache --directory state import --server DEAD no-such-file
4 cache --directory state get --server DEAD apps/v1
2 conformance --no-such-option
3 conformance DEAD --token-file no-such-file
4 conformance DEAD
0 convert small.json
1 convert --strict half
2 convert --no-such-option
3 convert broken.json
3 convert no-such-file
4 convert DEAD --split out
0 diff new new
1 diff old new
2 diff old
3 diff old broken.json
3 diff old no-such-folder
3 diff old new --policy policy.yaml
3 diff old new --policy no-such-file
4 diff old DEAD
0 explain boxes --directory old
1 explain crates --directory old
2 explain boxes --no-such-option
3 explain boxes --directory empty
3 explain boxes --file no-such-file
3 explain boxes --kubeconfig no-such-file
4 explain boxes --server DEAD
0 get --directory old
1 get apps/v1 --directory old
2 get --no-such-option
3 get --directory empty
4 get --server DEAD
0 init -
2 init --no-such-option
3 init --kubeconfig no-such-file -
2 mcp --no-such-option
3 mcp --directory empty
4 mcp --server DEAD
0 merge small.json
0 merge old/crd.yaml
2 merge --no-such-option
3 merge no-such-file
4 merge DEAD
0 schemas --directory old out
2 schemas
3 schemas --directory empty out
4 schemas out --server DEAD
0 search size --directory old
1 search nowhere --directory old
2 search
3 search size --directory empty
4 search size --server DEAD
2 serve --no-such-option
2 serve
3 serve --config wrong.yaml
3 serve --config no-such-file
3 serve --directory no-such-folder
0 snapshot old made
2 snapshot
2 snapshot old other out
3 snapshot oci:no-such-layout made
3 snapshot half fresh
0 snapshot --allow-unread half fresh
4 snapshot DEAD made
2 status --no-such-option
3 status --token-file no-such-file
4 status --server DEAD
2 ui --no-such-option
3 ui --kubeconfig wrong.yaml
0 upgrade good.yaml --to new --directory old
1 upgrade good.yaml --to other --directory old
2 upgrade --no-such-option
3 upgrade no-such-file --to new --directory old
4 upgrade good.yaml --to DEAD --directory old
5 upgrade good.yaml --to rule.yaml --from rule.yaml
0 validate good.yaml --directory old
1 validate bad.yaml --directory old
2 validate --no-such-option
3 validate no-such-file --directory old
3 validate good.yaml --directory no-such-folder
4 validate good.yaml --server DEAD
5 validate good.yaml --file rule.yaml
0 validate --allow-unchecked good.yaml --file rule.yaml
"""
ROWS = [(int(line[0]), line[2:]) for line in LINES.strip().splitlines()]

ELSEWHERE = {
    ("cache", 1): "tools/commands/test_cache.py",
    ("conformance", 0): "tools/document_checks/test_conformance.py",
    ("conformance", 1): "tools/document_checks/test_conformance.py",
    ("conformance", 5): "tools/document_checks/test_conformance.py",
    ("mcp", 0): "tools/mcp/test_mcp.py",
    ("serve", 0): "integration/test_signals.py",
    ("serve", 4): "aggregator/test_mistakes.py",
    ("schemas", 5): "tools/commands/test_schemas.py",
    ("status", 0): "tools/commands/test_status_get_init.py",
    ("status", 1): "tools/commands/test_status_get_init.py",
    ("ui", 0): "tools/commands/test_ui.py",
    ("ui", 4): "aggregator/test_mistakes.py",
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


def test_the_page_names_each_command_that_finds_or_cannot_check() -> None:
    page = (DOCS / "exit-codes.md").read_text()
    rows = dict(re.findall(r"^\| (`[a-z`, ]+) \| (.*) \|$", page, re.MULTILINE))
    named = {word: cells for names, cells in rows.items() for word in re.findall("[a-z]+", names)}
    for name, code in documented():
        if code in (1, 5):
            assert not named[name].split(" | ")[code == 5].startswith("–"), (name, code)
    assert {int(code) for code in re.findall(r"^\| (\d) \|", page, re.MULTILINE)} == set(range(6))


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.name)
def test_pages_speak_of_codes_of_the_contract_alone(page: Path) -> None:
    """The old ones were 5 for findings and 1 for refusals."""
    text = page.read_text()
    assert not re.search(r"exit code 5|exits? with 5|code 3 under", text), page
