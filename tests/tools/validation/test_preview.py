"""What 1.38 changes, read from the source of 0.38.0-beta.0: no judge can be built of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest
from click.testing import CliRunner

from specmux_aggregator.cli import main
from specmux_converters.crd import build
from specmux_converters.releases import NEWEST, PREVIEW, UnknownRelease, minor_release, nearest_minor
from specmux_tools.kinds import DocumentSet
from specmux_tools.validation import Check, Validator
from specmux_tools.validation.messages import status_of

HEAD = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}}
SPEC = {
    "type": "object",
    "minProperties": 5,
    "properties": {
        "name": {"type": "string", "minLength": 2},
        "one": {"type": "string", "minLength": 1},
        "parts": {"type": "array", "minItems": 1, "items": {"type": "string"}},
    },
}
NAMED_IN_1_37 = {
    ("FieldValueInvalid", 'Invalid value: "a": spec.name in body should be at least 2 chars long'),
    ("FieldValueInvalid", 'Invalid value: "": spec.one in body should be at least 1 chars long'),
    ("FieldValueInvalid", "Invalid value: 0: spec.parts in body should have at least 1 items"),
    ("FieldValueInvalid", "Invalid value: 3: spec in body should have at least 5 properties"),
}
NAMED_IN_1_38 = {
    ("FieldValueTooShort", "Too short: must be at least 2 characters"),
    ("FieldValueTooShort", "Too short: must be at least 1 character"),
    ("FieldValueTooFew", "Too few: 0: must have at least 1 item"),
    ("FieldValueTooFew", "Too few: 3: must have at least 5 items"),
}


def definition(spec: dict[str, Any]) -> dict[str, Any]:
    names = {"plural": "widgets", "kind": "Widget", "listKind": "WidgetList", "singular": "widget"}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    made = {"group": "example.com", "names": names, "scope": "Namespaced", "versions": [version]}
    head = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    return {**head, "metadata": {"name": "widgets.example.com"}, "spec": made}


def validator(spec: dict[str, Any], release: str | None) -> Validator:
    return Validator(DocumentSet(build([definition(spec)]).documents), release=release)


@pytest.mark.parametrize(("release", "named"), [(None, NAMED_IN_1_37), ("1.38", NAMED_IN_1_38)])
def test_least_lengths_and_numbers_have_causes_of_their_own(
    release: str | None, named: set[tuple[str, str]]
) -> None:
    body = orjson.dumps({**HEAD, "spec": {"name": "a", "one": "", "parts": []}})
    status = status_of(validator(SPEC, release).validate(body))
    assert status is not None
    assert {(each["reason"], each["message"]) for each in status["details"]["causes"]} == named


@pytest.mark.parametrize(
    ("release", "rule", "checks"),
    [
        ("1.38", "cidr(self).isMask()", []),
        ("1.38", "!cidr(self).isMask()", [Check.RULE]),
        ("1.37", "cidr(self).isMask()", [Check.NOT_CHECKED]),
    ],
)
def test_is_mask(release: str, rule: str, checks: list[Check]) -> None:
    spec = {"type": "string", "maxLength": 64, "x-kubernetes-validations": [{"rule": rule}]}
    for text, is_mask in (("192.168.0.0/16", True), ("192.168.0.1/16", False), ("fd00::/8", True)):
        report = validator(spec, release).validate(orjson.dumps({**HEAD, "spec": text}))
        found = [each.check for each in report.violations]
        wanted = checks if is_mask or Check.NOT_CHECKED in checks else [Check.RULE] * (not checks)
        assert found == wanted, text


def test_it_is_for_servers_of_it_alone() -> None:
    assert (minor_release(None), nearest_minor("v1.38.0")) == (NEWEST, NEWEST)
    assert nearest_minor("v1.38.0", newest=PREVIEW) == nearest_minor("v1.40.0", newest=PREVIEW) == PREVIEW
    with pytest.raises(UnknownRelease):
        minor_release("1.38")


@pytest.mark.parametrize(
    ("version", "note", "words"),
    [
        ("v1.37.2", "", "should be at least 2 chars long"),
        ("v1.38.0", "the cluster is v1.38", "Too short: must be at least 2 characters"),
    ],
)
def test_validate_says_once_that_its_server_is_newer(
    version: str, note: str, words: str, tmp_path: Path
) -> None:
    ((key, document),) = build([definition(SPEC)]).documents.items()
    place = tmp_path / "documents" / f"{key}.json"
    place.parent.mkdir(parents=True)
    place.write_bytes(orjson.dumps({**document, "info": {**document["info"], "version": version}}))
    for name in ("a", "b"):
        (tmp_path / f"{name}.json").write_bytes(orjson.dumps({**HEAD, "spec": {"name": "a"}}))
    files = [str(tmp_path / f"{name}.json") for name in ("a", "b")]
    asked = ["validate", "--directory", str(tmp_path / "documents"), *files]
    done = CliRunner().invoke(main, asked)
    assert done.exit_code == 1
    assert (done.stderr.count("checked by the rules of Kubernetes 1.38"), words in done.stdout) == (
        bool(note),
        True,
    )
    assert note in done.stderr
    told = CliRunner().invoke(main, [*asked, "--release", "1.37"])
    assert "checked by the rules" not in told.stderr
