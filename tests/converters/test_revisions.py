"""What is parsed where it differs is what is parsed as a whole: documents, errors and losses."""

from __future__ import annotations

import json
import re
from random import Random
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data.random_swagger import random_swagger, with_faults
from shared_data import DATA, files, read
from specmux_converters import ConversionMemo, ConverterError, Limits, convert, parse
from specmux_converters.incremental.revisions import Revisions
from specmux_converters.losses import Loss
from specmux_converters.recognise import DocumentKind, recognise

SECTIONS = ("definitions", "paths")
INSERTED = (
    b"",
    b'"',
    b"{",
    b"}",
    b",",
    b":",
    b"\\",
    b" ",
    b"\n",
    b"1",
    b"null",
    b'"a":1,',
    b'{"a":1}',
    b"\xff",
)
LAYOUTS: tuple[Any, ...] = (
    orjson.dumps,
    lambda value: orjson.dumps(value, option=orjson.OPT_INDENT_2),
    lambda value: orjson.dumps(value).replace(b"<", b"\\u003c").replace("«".encode(), b"\\u00ab"),
)


def outcome(read_text: Any, data: bytes, limits: Limits) -> Any:
    """What came of it, with the order of keys, or the refusal in all its parts."""
    losses: list[Loss] = []
    try:
        return orjson.dumps(read_text(data, limits=limits, losses=losses)), losses
    except ConverterError as error:
        return type(error), str(error)


def in_other_layout(random: Random, document: Any) -> bytes:
    made: bytes = random.choice(LAYOUTS)(document)
    return made


def edited(random: Random, data: bytes) -> bytes:
    """The text with a few bytes left out and some others put in, anywhere."""
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        start = random.randrange(len(data) + 1)
        end = start + random.choice((0, 0, 1, 2, 5))
        data = data[:start] + random.choice(INSERTED) + data[end:]
    return data


def changed(random: Random, document: Any) -> Any:
    """Another document: members changed, added, taken away or put elsewhere."""
    document = {**document}
    for section in random.sample(SECTIONS, random.randint(1, 2)):
        found = document.get(section)  # a fault may have put anything there
        members = [*found.items()] if isinstance(found, dict) else []
        for _ in range(random.randint(1, 2)):
            if members:
                index = random.randrange(len(members))
                new: Any = {"description": random.choice(("a", "Pa«ge", "} , {", '"x":{', "<&>" * 40))}
                value = random.choice(
                    (new, 1, "x", [], None, {}, 10**400 * 0, 1.5, {"$ref": "#/definitions/A"})
                )
                members[index] = members[index][0], value
        match random.randrange(8):
            case 0 if members:
                members.pop()
            case 1:
                members.append(("New", {}))
            case 2:
                random.shuffle(members)
        document[section] = dict(members)
    if random.random() < 0.1:
        document["info"] = {"title": "other", "version": "2"}
    return document


@given(st.randoms(use_true_random=False))
@settings(max_examples=100)
def test_a_revision_is_parsed_as_any_text(random: Random) -> None:
    revisions = Revisions(min_bytes=0)
    document = random_swagger(random)
    layout = random.choice(LAYOUTS)
    limits = Limits(max_depth=random.choice((6, 9, 200)))
    for _ in range(5):
        data = layout(document)
        if random.random() < 0.4:
            data = edited(random, data)
        assert outcome(revisions.parse, data, limits) == outcome(parse, data, limits)
        if random.random() < 0.2:
            layout = random.choice(LAYOUTS)
        document = changed(random, document)


@given(st.randoms(use_true_random=False))
@settings(max_examples=25)
def test_a_revision_is_converted_as_any_document(random: Random) -> None:
    memo = ConversionMemo()
    memo.revisions = Revisions(min_bytes=0)
    document = random_swagger(random)
    if random.random() < 0.3:
        document = with_faults(random, document)
    for _ in range(3):
        text = json.dumps(document).encode()  # orjson refuses the integers beyond 64 bits that faults bring
        for profile in random.sample(("kubernetes", "oas"), random.randint(1, 2)):
            assert converted(text, memo, profile) == converted(text, None, profile)
        document = changed(random, document)


def converted(data: bytes, memo: ConversionMemo | None, profile: Any) -> Any:
    try:
        made = convert(data, memo=memo, profile=profile)
    except ConverterError as error:
        return type(error), str(error)
    return {key: made.json(key) for key in made.documents}, made.losses


@pytest.mark.parametrize(
    "value",
    [
        b'{}},"x":{"":{"":{}',
        b'{},"x":{}',
        b'{}},"definitions":{"B":{}',
        b"{} {}",
        b"",
        b"{",
        b'{"a":1,"a":2}',
        b"9007199254740993" + b"0" * 10,
        b"{}}",
        b'"\\ud800"',
        b"[" * 250 + b"]" * 250,
    ],
)
def test_what_is_not_one_value_is_read_as_a_whole(value: bytes) -> None:
    revisions = Revisions(min_bytes=0)
    frame = b'{"swagger":"2.0","definitions":{"A":%s,"B":{"type":"object"}},"paths":{"/a":{}}}'
    revisions.parse(frame % b'{"description":"before"}')
    data = frame % value
    assert outcome(revisions.parse, data, Limits()) == outcome(parse, data, Limits())


def test_a_revision_shares_what_is_the_same() -> None:
    revisions = Revisions(min_bytes=0)
    before = {"swagger": "2.0", "definitions": {"A": {"type": "string"}, "B": {}}, "paths": {"/a": {}}}
    after = {**before, "definitions": {"A": {"type": "string"}, "B": {"type": "object"}}}
    first = revisions.parse(orjson.dumps(before))
    second = revisions.parse(orjson.dumps(after))
    assert second == after
    assert first == before
    assert second["definitions"]["A"] is first["definitions"]["A"]
    assert second["paths"] is first["paths"]
    assert revisions.parse(orjson.dumps(after)) is second
    assert revisions.of(second) is not None
    assert revisions.of(first) is None


def test_revisions_stay_below_their_bound_and_the_oldest_goes() -> None:
    documents = [{"swagger": "2.0", "definitions": {f"{number}": {"x-a": "b" * 1000}}} for number in range(9)]
    texts = [orjson.dumps(document) for document in documents]
    revisions = Revisions(max_bytes=5 * 5000, min_bytes=0)
    kept = [revisions.parse(text) for text in texts]
    assert len(revisions) == 5
    assert [revisions.of(document) is not None for document in kept] == [False] * 4 + [True] * 5
    huge = orjson.dumps({"swagger": "2.0", "definitions": {"A": [0] * 1000}})
    assert revisions.of(revisions.parse(huge)) is None
    assert len(revisions) == 5


def test_other_limits_are_kept_to() -> None:
    revisions = Revisions(min_bytes=0)
    data = b'{"swagger":"2.0","definitions":{"A":{"a":{"b":{"c":1}}}}}'
    revisions.parse(data)
    assert outcome(revisions.parse, data, Limits(max_depth=3)) == outcome(parse, data, Limits(max_depth=3))
    assert outcome(revisions.parse, data, Limits(max_bytes=9)) == outcome(parse, data, Limits(max_bytes=9))


@pytest.mark.parametrize(
    "path", files(DATA / "k8s-pairs", "**/v2/*swagger*.json*") + files(DATA / "aggregated-v2")
)
def test_real_documents_after_changes_of_members(path: Any) -> None:
    data = read(path)
    try:
        found = recognise(data)
    except ConverterError:
        pytest.skip("a document that is refused")
    if found.kind is not DocumentKind.SWAGGER_2 or not data.lstrip().startswith(b"{"):
        pytest.skip("no Swagger 2.0 in JSON")
    random = Random(1)
    memo = ConversionMemo()
    memo.revisions = Revisions(min_bytes=0)
    assert converted(data, memo, "kubernetes") == converted(data, None, "kubernetes")
    places = [match.start() for match in re.finditer(b'"description"', data)]
    for place in random.sample(places, min(2, len(places))):
        start = data.index(b'"', place + 13) + 1
        data = data[:start] + b"New. " + data[start:]
        assert converted(data, memo, "kubernetes") == converted(data, None, "kubernetes")
