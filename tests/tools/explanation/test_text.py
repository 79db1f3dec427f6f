"""The text adds lines to kubectl's and changes none."""

from __future__ import annotations

from random import Random

import pytest

from data.explained_documents import KIND, bed, random_path, release_kinds
from specmux_converters.resources import GroupVersionKind
from specmux_tools.errors import UnknownField, UnknownKind
from specmux_tools.explanation.text import plaintext, text
from specmux_tools.explanation.tree import FieldPlace, as_json, tree_of


def test_what_is_added() -> None:
    document = bed(
        side={
            "type": "string", "enum": ["left", "right"], "default": "left", "maxLength": 5, "format": "side",
            "x-kubernetes-validations": [{"rule": "self != ''", "message": "say one"}],
        }
    )  # fmt: skip
    told = text(document, KIND, ["spec", "side"], also_in=["garden.example.org/v2"])
    assert told.endswith("ALSO IN:\n    garden.example.org/v2\n\n")
    for label in (
        'DEFAULT:\n    "left"\n',
        "ENUM:\n    left\n    right\n",
        "LIMITS:\n    maxLength 5\n",
        "FORMAT:\n    side\n",
        "RULES:\n    self != ''  (say one)\n",
    ):
        assert told.count(label) == 1
    listed = text(document, KIND, ["spec"])
    assert '  default: "left"\n  limits: maxLength 5\n' in listed


def test_an_integer_or_a_string_is_called_so() -> None:
    either = {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}
    named = {"allOf": [either], "default": 1}
    fields = {
        "one": either,
        "list": {"type": "array", "items": either},
        "map": {"type": "object", "additionalProperties": either},
        "named": named,
        "no": {"type": "object", "x-kubernetes-int-or-string": False},
    }
    document = bed(**fields)
    told, as_kubectl = (each(document, KIND, ["spec"]) for each in (text, plaintext))
    shown = {"one": "{}", "list": "[]{}", "map": "map[string]{}", "named": "{}"}
    for name, form in shown.items():
        assert f"  {name}\t<{form.format('int-or-string')}>\n" in told
        assert f"  {name}\t<{form.format('Object')}>\n" in as_kubectl
        assert f"FIELD: {name} <{form.format('int-or-string')}>" in text(document, KIND, ["spec", name])
    assert "  no\t<Object>\n" in told


def test_a_kind_tells_the_media_types_of_its_operations() -> None:
    document = bed(a={"type": "string"})
    kind = {"group": KIND.group, "version": KIND.version, "kind": KIND.kind}
    named = {"x-kubernetes-group-version-kind": kind, "responses": {"200": {"content": {"a/json": {}}}}}
    body = {"requestBody": {"content": {"*/*": {}, "a/cbor": {}}}}
    document["paths"]["/apis/x/beds/{name}"] = {"put": named | body, "get": named, "delete": named}
    told = text(document, KIND, [])
    assert told.endswith(
        "MEDIA TYPES:\n    get, delete: gives a/json\n    update: takes */*, a/cbor; gives a/json\n\n"
    )
    assert "MEDIA TYPES" not in text(document, KIND, ["spec"])
    found = as_json(
        document, KIND, (), tree_of(document, FieldPlace((), document["components"]["schemas"]["Bed"]))
    )
    assert found["mediaTypes"][1] == {
        "verbs": ["update"],
        "consumes": ["*/*", "a/cbor"],
        "produces": ["a/json"],
    }


def test_what_is_not_described_is_unknown() -> None:
    document = bed(a={"type": "string"})
    with pytest.raises(UnknownKind):
        plaintext(document, GroupVersionKind("g", "v", "Rock"), [])
    with pytest.raises(UnknownField):
        plaintext(document, KIND, ["spec", "b"])


@pytest.mark.parametrize("recursive", [False, True])
def test_without_its_additions_it_is_kubectls(recursive: bool) -> None:
    random = Random(5)
    compared = 0
    for found in release_kinds():
        path = random_path(found.document["components"]["schemas"], dict(found.schema), random)
        try:
            plain = plaintext(found.document, found.kind, path, recursive=recursive)
        except UnknownField:
            continue
        told = text(found.document, found.kind, path, recursive=recursive)
        more = iter(told.replace("int-or-string>", "Object>").splitlines())
        assert all(line in more for line in plain.splitlines()), (found.kind, path)
        compared += 1
    assert compared > 200
