from __future__ import annotations

from typing import Any

import pytest

from shared_data import SHARED, load
from specmux_converters.codecs.gnostic import MessageField, messages_of, read_facts

MESSAGES = {"v2": messages_of("v2"), "v3": messages_of("v3")}


def test_a_fact_is_a_field_when_read() -> None:
    assert read_facts({"A": "1 a! string=b|c, 2 ^x- {Any}, 30 =b [@A]"}) == {
        "A": (
            MessageField(1, "a", "string", required=True, values=frozenset("bc")),
            MessageField(2, "^x-", "{Any}", required=False),
            MessageField(30, "=b", "[@A]", required=False),
        )
    }


@pytest.mark.parametrize("version", MESSAGES)
def test_every_type_is_known_when_a_fact_names_it(version: str) -> None:
    messages = MESSAGES[version]
    named = {field.type.strip("@[]{}") for fields in messages.values() for field in fields}
    assert named <= messages.keys() | {"string", "bool", "int64", "double"}
    for fields in messages.values():
        numbers = [field.number for field in fields]
        assert len(numbers) == len(set(numbers))


@pytest.mark.parametrize("version", MESSAGES)
def test_the_facts_are_those_of_the_specification(version: str) -> None:
    specified = load(SHARED / "spec" / f"gnostic_{version}_fields.json")["messages"]
    for name, fields in MESSAGES[version].items():
        expected = {field["number"]: field for field in specified[name]["fields"] if field["type"][0] != "g"}
        assert {field.number for field in fields} == expected.keys(), name
        for field in fields:
            check(field, expected[field.number], specified)
            assert field.required == (field.key in specified[name].get("required_json_keys", ()))


def check(field: MessageField, expected: dict[str, Any], specified: dict[str, Any]) -> None:
    assert expected["repeated"] == (field.is_pattern or field.type.startswith("["))
    if field.is_pattern:
        assert type_names(field.type[1:-1], specified) == {expected["map_value"]}
    else:
        assert expected["type"].split(".")[-1] in type_names(field.type, specified)
    if not field.is_pattern and not field.is_keyless:
        assert field.key == expected["json_key"]


def type_names(kind: str, specified: dict[str, Any]) -> set[str]:
    """The messages that a type of the facts may stand for, by the names of the .proto."""
    kind = kind.strip("[]")
    if kind.startswith("@"):
        return {f"{kind[1:]}OrReference"}
    if not kind.startswith("{"):
        return {kind}
    lists = (
        (name, message) for name, message in specified.items() if message["shape"].startswith("ordered-map")
    )
    values = type_names(kind[1:-1], specified)
    return {name for name, message in lists if message["fields"][0]["map_value"] in values}
