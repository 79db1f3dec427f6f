"""Small documents for every field of gnostic's openapi.v3, and what the Go reference answered to them.

``go_reference.txt`` has a line per field and a column per value of ``VALUES``: the first 8 hex digits of the
SHA-256 of the bytes that ``handler3.ToV3ProtoBinary`` gave, or a dash where it refused or panicked.
``go_yaml.jsonl`` has values and the text that gnostic's Any{yaml} has for them. ``go_documents.txt`` has the
same digits, or a dash, for each ``random_document``, by its number.

To record all anew: ``(cd tests/benchmarks/go && go build -o /tmp/peer .)``, then
``python tests/converters/codecs/go_reference.py /tmp/peer``.
"""

from __future__ import annotations

import hashlib
import re
import struct
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import orjson

from specmux_converters.codecs.gnostic import MessageField, messages_of

RECORD = Path(__file__).with_name("go_reference.txt")
YAML_RECORD = Path(__file__).with_name("go_yaml.jsonl")
DOCUMENTS_RECORD = Path(__file__).with_name("go_documents.txt")
MESSAGES = messages_of("v3")

VALUES: tuple[Any, ...] = (
    None, True, False, 0, -7, 2**64 - 1, 1.5, "", "text", [], ["text"], ["x-a", "b"], ["text", 1, None, 2.5],
    [{"type": "string"}], {}, {"$ref": "#/a", "description": "d", "type": "object"}, {"type": "string"},
    {"x-a": [1]}, {"other": {}}, {"url": "u", "name": "n", "in": "query"}, {"/p": {"$ref": None}}, {"a": "b"},
)  # fmt: skip
KEYS = {"^x-": "x-field", "^/": "/path", "^": "{$callback}", "^[0-9X]{3}$": "2XX"}


def digest(data: bytes | None) -> str:
    return "-" if data is None else hashlib.sha256(data).hexdigest()[:8]


def fields() -> Iterator[tuple[str, MessageField]]:
    for message in _routes():
        for field in MESSAGES[message]:
            if not field.is_keyless:
                yield message, field


def document(message: str, field: MessageField, value: Any) -> dict[str, Any]:
    """A document whose only peculiarity is ``value`` at ``field`` of a ``message``."""
    inner = _minimal(message) | {KEYS.get(field.key, field.key): value}
    for outer, step in reversed(_routes()[message]):
        inner = _minimal(outer) | {KEYS.get(step.key, step.key): _wrapped(step, inner)}
    return inner


def _routes() -> dict[str, tuple[tuple[str, MessageField], ...]]:
    """Message -> how to get there from Document: the messages around it, each with the field to go into."""
    routes: dict[str, tuple[tuple[str, MessageField], ...]] = {"Document": ()}
    queue = ["Document"]
    for message in queue:
        for field in MESSAGES[message]:
            target = field.type.strip("@[]{}")
            target = "Schema" if target in ("ItemsItem", "AdditionalPropertiesItem") else target
            if target in MESSAGES and target not in routes and not MESSAGES[target][0].is_keyless:
                routes[target] = (*routes[message], (message, field))
                queue.append(target)
    return routes


def _wrapped(step: MessageField, inner: Any) -> Any:
    if step.is_pattern:
        return inner
    for bracket in reversed(step.type.replace("@", "")):
        inner = [inner] if bracket == "]" else {"name": inner} if bracket == "}" else inner
    return inner


def _minimal(message: str) -> dict[str, Any]:
    return {
        field.key: "text"
        if field.type == "string"
        else _minimal(field.type)
        if field.type in MESSAGES
        else {}
        for field in MESSAGES[message]
        if field.required
    }


_PIECES = (
    *("a", "b1", " ", "  ", "\n", "\n\n", "\t", ":", ": ", " #", "#", "-", "- ", "'", '"', "\\", "[", "]"),
    *("{", "}", ",", "?", "? ", "&", "*", "!", "|", ">", "%", "@", "`", "\u2028", "\u2029", "\x85", "\xa0"),
    *(
        "é",
        "日本",
        "😀",
        "\ufeff",
        "\ufffd",
        "\x7f",
        "\r",
        "\x01",
        "\x1b",
        "/",
        "two words",
        "A" * 130,
        "é" * 65,
    ),
    *(
        "0",
        "1",
        "9",
        ".",
        "e",
        "E",
        "+",
        "_",
        "x",
        "true",
        "null",
        "~",
        "on",
        "yes",
        "y",
        "<<",
        "=",
        "---",
        "...",
    ),
    *("2020-01-01", "2001-12-14T21:59:43Z", "0x1f", "0b1", "0o7", "017", ".5", "1e3", ".inf", ".nan", "1:30"),
    *("1_000", "+1", "-2.5", "0."),
)


def _random_value(random: Random, depth: int = 0) -> Any:
    text = "".join(random.choices(_PIECES, k=random.choice((0, 1, 1, 1, 2, 3, 4))))
    kind = random.random()
    if depth > 3 or kind < 0.5:
        return text
    if kind < 0.6:
        return random.choice((None, True, False, 0, -12, 2**63, 1.5, 1e-7, 1e21))
    if kind < 0.8:
        return [_random_value(random, depth + 1) for _ in range(random.randrange(4))]
    return {text + str(n): _random_value(random, depth + 1) for n in range(random.randrange(4))}


INTEGERS = (0, 1, -7, 2**53 + 1, 2**63 - 1, -(2**63))
FLOATS = (-0.0, 0.0, 1.0, 2.5, 1e-7, 5e-324, 1e21, 1e300)
LARGE_FLOATS = (1e16, 1e20, -float(2**63))
"""Their text, which YAML keeps, is another one from orjson than from Go."""


def random_document(number: int) -> dict[str, Any]:
    """A document with fields of any message at any depth, the same for a number in every Python."""
    return _Draw(Random(number)).object("Document", 0)


class _Draw:
    """Only of ``Random.random``, whose sequence Python promises to keep."""

    def __init__(self, random: Random) -> None:
        self.random = random.random

    def of(self, options: Sequence[Any]) -> Any:
        return options[int(self.random() * len(options))]

    def text(self) -> str:
        return "".join(self.of(_PIECES) for _ in range(self.of((0, 1, 1, 2))))

    def object(self, message: str, depth: int) -> dict[str, Any]:
        share = 0.6 if depth == 0 else self.of((0.05, 0.2, 0.4)) if depth < 6 else 0.0
        fields = sorted(MESSAGES[message], key=lambda _: self.random())
        return {
            self.key(field): self.value(field.type[1:-1] if field.is_pattern else field.type, depth + 1)
            for field in fields
            if field.required or self.random() < share
        }

    def key(self, field: MessageField) -> str:
        if field.key in ("^x-", "^/"):
            return field.key[1:] + self.text()
        return KEYS.get(field.key, field.key)

    def value(self, kind: str, depth: int) -> Any:
        if self.random() < 0.002:
            return self.of(VALUES)
        if kind.startswith("@"):
            return (
                {"$ref": self.text(), "summary": "s"} if self.random() < 0.2 else self.value(kind[1:], depth)
            )
        if kind.startswith("["):
            return [self.value(kind[1:-1], depth + 1) for _ in range(self.of((0, 1, 2)))]
        if kind.startswith("{"):
            return {f"{self.text()}{n}": self.value(kind[1:-1], depth + 1) for n in range(self.of((0, 1, 2)))}
        return self.message(kind, depth)

    def message(self, kind: str, depth: int) -> Any:
        match kind:
            case "string":
                return self.text()
            case "bool":
                return self.random() < 0.7
            case "int64":
                return self.of(INTEGERS)
            case "double":
                return self.of(INTEGERS + FLOATS + LARGE_FLOATS)
            case "StringArray":
                return [self.text()]
            case "Any" | "AnyOrExpression" | "DefaultType":
                return self.of(
                    (self.text(), self.of(INTEGERS + FLOATS), {self.text(): [self.text()]}, self.of(VALUES))
                )
            case "AdditionalPropertiesItem" if self.random() < 0.3:
                return self.random() < 0.5
            case "ItemsItem" | "AdditionalPropertiesItem":
                return self.value("@Schema", depth)
        return self.object(kind, depth)


def _ask(process: subprocess.Popen[bytes], document: dict[str, Any]) -> bytes | None:
    assert process.stdin is not None and process.stdout is not None
    # go-yaml takes these, where they stand unescaped in JSON, for line breaks or refuses them.
    escaped = re.sub(
        "[\x7f-\x9f\u2028\u2029\ufeff]",
        lambda match: f"\\u{ord(match[0]):04x}",
        orjson.dumps(document).decode(),
    )
    data = escaped.encode()
    process.stdin.write(struct.pack(">I", len(data)) + data)
    process.stdin.flush()
    refused, length = struct.unpack(">BI", process.stdout.read(5))
    answer = process.stdout.read(length)
    return None if refused else answer


def _record(peer: str) -> None:
    with subprocess.Popen(
        (peer, "answer", "protobuf"), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        lines = []
        for message, field in fields():
            digests = [digest(_ask(process, document(message, field, value))) for value in VALUES]
            lines.append(f"{message}.{field.key} {' '.join(digests)}\n")
        RECORD.write_text("".join(lines))
        digests = [digest(_ask(process, random_document(number))) for number in range(1000)]
        DOCUMENTS_RECORD.write_text("".join(f"{one}\n" for one in digests))
        random = Random(6)
        values = [_random_value(random) for _ in range(400)]
        pairs = [(value, _ask(process, _minimal("Document") | {"x-v": value})) for value in values]
        YAML_RECORD.write_bytes(
            b"".join(orjson.dumps([value, _yaml_of(answer)]) + b"\n" for value, answer in pairs if answer)
        )


def _yaml_of(answer: bytes) -> str:
    """The text behind ``0a 03 x-v 12 … 12 …``, the two lengths of which say where it begins."""
    text = answer[answer.index(b"\n\3x-v\x12") + 6 :]
    for _ in range(2):
        size = next(n for n, byte in enumerate(text) if byte < 0x80) + 1
        text = text[size:].removeprefix(b"\x12")
    return text.decode()


if __name__ == "__main__":
    _record(sys.argv[1])
