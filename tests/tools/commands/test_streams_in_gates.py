"""What a gate must not pass in silence: text behind separators, empty streams, kinds without schemas."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from specmux_tools.commands.validate import validate
from specmux_tools.queries import validate as validate_text

FIRST = "apiVersion: example.com/v1\nkind: Box\nmetadata: {name: a}\n"
FLOW = "{apiVersion: example.com/v1, kind: Box, metadata: {name: b}}"


def run(folder: Path, text: str, *options: str) -> Result:
    (folder / "none.json").write_text('{"openapi": "3.0.0", "info": {}, "paths": {"/apis/x.io/v1/": {}}}')
    arguments = ["--file", str(folder / "none.json"), *options, "-"]
    return CliRunner().invoke(validate, arguments, input=text, catch_exceptions=False)


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        (f"{FIRST}--- {FLOW}\n", FLOW),
        (f"--- {FLOW}\n", FLOW),
        (f"{FIRST}----\n{FIRST}", "-"),
        (f"{FIRST}---{FIRST}", "apiVersion: example.com/v1"),
        (f"{FIRST}--- |\n  text\n", "|"),
    ],
)
def test_text_behind_a_separator_is_refused_where_it_stands(text: str, rest: str) -> None:
    *_, last = validate_text({}, text)
    assert last.fatal == f"invalid Yaml document separator: {rest}"
    assert last.violations[0].line == (1 if text.startswith("---") else 4)


@pytest.mark.parametrize("separator", ["---", "---   ", "--- # second", "---\t#x", "---\r"])
def test_blanks_and_a_comment_may_follow_a_separator(separator: str) -> None:
    assert [each.name for each in validate_text({}, f"{FIRST}{separator}\n{FIRST}")] == ["a", "a"]


def test_a_broken_separator_is_no_file_without_objects(tmp_path: Path) -> None:
    result = run(tmp_path, f"---{FIRST}", "--skip-non-objects")
    assert (result.exit_code, "invalid Yaml document separator" in result.stdout) == (1, True)


@pytest.mark.parametrize("text", ["", "# only a comment\n---\n# and another\n", "---\n---\n"])
def test_a_stream_without_objects_fails_unless_that_is_allowed(text: str, tmp_path: Path) -> None:
    result = run(tmp_path, text)
    assert result.exit_code == 5
    assert "no object in -: nothing was validated; --allow-empty accepts that" in result.stderr
    assert run(tmp_path, text, "--allow-empty").exit_code == 0


def test_objects_without_a_schema_are_counted_with_their_kinds(tmp_path: Path) -> None:
    result = run(tmp_path, f"{FIRST}---\n{FIRST}", "--ignore-missing-schemas")
    assert result.exit_code == 0
    assert "2 objects skipped: no document describes example.com/v1 Box" in result.stderr


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
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object}}}}
"""


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        ("type: object}}", "type: objct}}", 'Unsupported value: "objct"'),
        ("scope: Namespaced", "scope: Local", 'spec.scope: Unsupported value: "Local"'),
        ("name: boxes.example.com", "name: box.example.com", "metadata.name: Invalid value"),
        ("metadata:", "metadat:", 'unknown field "metadat"'),
        ("storage: true", "storage: false", "exactly one version marked as storage version"),
    ],
)
@pytest.mark.parametrize("form", ["alone", "in a list"])
def test_a_broken_definition_is_never_skipped(
    form: str, right: str, wrong: str, said: str, tmp_path: Path
) -> None:
    """Here no document describes CustomResourceDefinition."""
    assert right in DEFINITION
    for text, code in ((DEFINITION, 0), (DEFINITION.replace(right, wrong), 1)):
        if form == "in a list":
            text = "apiVersion: v1\nkind: List\nitems:\n- " + "  ".join(text.splitlines(keepends=True))
        result = run(tmp_path, text, "--ignore-missing-schemas")
        assert (result.exit_code, said in result.stdout) == (code, bool(code)), result.output
