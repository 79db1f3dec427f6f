"""Records what kubectl reads of odd streams: separators, escapes, flow style, JSON that YAML follows.

    (cd tests/benchmarks/go/streams && go build -o /tmp/streams .)
    .venv/bin/python tests/tools/validation/record_streams.py /tmp/streams

The streams are made up here; the answers are those of the program, which reads as kubectl does
(k8s.io/apimachinery 0.37.2, sigs.k8s.io/yaml 1.6).
"""

from __future__ import annotations

import gzip
import subprocess
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from random import Random

import orjson

RECORDED = Path(__file__).parent / "recorded" / "streams.jsonl.gz"
COUNT = 2000

SPACES = (" ", "\t", "\v", "\f", "\r", "\x85", "\xa0", "\u2003", "\u2028", "\u3000", "\x1c", "\u200b")
BEHIND = (
    *(
        "",
        " ",
        "\t",
        "  # c",
        "#c",
        " #",
        "-",
        " -",
        "x",
        " x",
        " {b: 1}",
        " |",
        " >-",
        " !!map",
        " &a",
        " 'x'",
    ),
    *(" ...", "---", " ---", ":", ": x", " %", *SPACES),
)
SEPARATORS = (
    *(
        "---\n",
        "\n---\n",
        " ---\n",
        "...\n",
        "...\n---\n",
        "---\n---\n",
        "--- # c\n",
        "---\r\n",
        "\ufeff---\n",
    ),
    *("%YAML 1.1\n---\n", "# c\n---\n", "--\n", "-- -\n", "—\n", "\r---\r", "\x85---\x85", ""),
)
OBJECTS = (
    *("a: 1\n", "a: 1", "{a: 1}\n", "{a: 1}", '{"a": 1}\n', '{"a":1}', '{"a": 1,}\n', "- a\n", "a\n", "1\n"),
    *("null\n", "~\n", "# c\n", "\n", "", "''\n", "{}\n", "[]\n", "a: {b: [1, 2\n", '{"a": 1\n', "a: b: c\n"),
    *(
        '{\n  # c\n  a: "b",\n}\n',
        "{\n  // c\n}\n",
        '{"a": NaN}\n',
        '{"a": 01}\n',
        "{a: no, b: 0644}\n",
        "{\n",
    ),
    *(
        '{"a": "\\u00e9"}\n',
        "{'a': 1}\n",
        '{"a": 1, "a": 2}\n',
        "}\n",
    ),
    *(
        '{"a":\t1}\n',
        '{\t"a": 1}\n',
        "a:\t1\n",
        "a: |\n  ---\n  x\n",
        'a: "\n---\n"\n',
        "a: 'x\n  y'\n",
        '"a"\n',
    ),
    *(
        "a: x\n  ---\n",
        "no\n",
        "nothing\n",
        ".\n",
        "...\n",
        "? a\n: b\n",
        "name: x\n",
        "Null\n",
        "NULL\n",
        "n\n",
    ),
    *('{"a": "x\\/y"}\n', '{"a": "x\\\'y"}\n', '{"a": "\\x41"}\n', "{a: &x 1, b: *x}\n", "<<: {a: 1}\n"),
)
TEXTS = (
    "\\",
    "\\\\",
    "/",
    "'",
    '"',
    "\\/",
    "\\'",
    "\\\\/",
    "\\\\'",
    "\\\\\\/",
    "\\\\\\'",
    "x",
    " ",
    "\n  ",
    "''",
)
QUOTED = ('a: "{}"\n', '"{}": 1\n', '- "{}"\n', '{{a: "{}"}}\n', '{{"a": "{}"}}\n', 'a: !!str "{}"\n')
UNQUOTED = (
    "a: '{}'\n",
    "a: {}\n",
    "a: |\n  {}\n",
    "a: >\n  {}\n",
    "a: 1 # {}\n",
    "{}: 1\n",
    "a: !{} x\n",
    "&{} a: 1\n",
)


def streams() -> Iterator[str]:
    for behind, first, second in product(BEHIND, ("", "a: 1\n", '{"a":1}\n'), ("b: 2\n", "{b: 2}\n")):
        yield f"{first}---{behind}\n{second}"
    for number, form in product(range(0x21, 0x7F), QUOTED[:1]):
        yield form.format(f"x\\{chr(number)}y")
    for number in range(0x21, 0x7F):
        yield QUOTED[4].format(f"\\{chr(number)}0041")
    for first, separator, second in product(
        ('{"a":1}', '{"a":1}{"b":2}', "{a: 1}"), SEPARATORS, OBJECTS[:12]
    ):
        yield first + separator + second
    for before in (*SPACES, "\n", "\ufeff", " " * 4095, " " * 4096, "# c\n"):
        for text in ('{"a":1}\n', "{a: 1}\n", '{"a":1}\n---\nb: 2\n', '{"a":1} {"b":2} c: 3\n'):
            yield before + text
            yield text + before + "b: 2\n"
    random = Random(37)
    while True:
        yield "".join(
            random.choice(OBJECTS) + random.choice((*SEPARATORS, "---\n", "---\n"))
            for _ in range(random.randint(1, 4))
        )
        text = "".join(random.choices(TEXTS, k=random.randint(1, 5)))
        yield random.choice(QUOTED).format(text)
        yield random.choice((*QUOTED, *UNQUOTED)).format(text)


def unlike() -> Iterator[str]:
    seen: set[str] = set()
    for text in streams():
        if text not in seen and not text.startswith("\ufeff"):  # which kubectl takes off before
            seen.add(text)
            yield text
        if len(seen) == COUNT:
            return


def main(program: str) -> None:
    texts = list(unlike())
    lines = b"".join(orjson.dumps(text) + b"\n" for text in texts)
    done = subprocess.run([program], input=lines, capture_output=True, check=True)
    answers = done.stdout.splitlines()
    rows = [
        orjson.dumps({"stream": text, **orjson.loads(found)})
        for text, found in zip(texts, answers, strict=True)
    ]
    RECORDED.write_bytes(gzip.compress(b"\n".join(rows) + b"\n", mtime=0))
    print(f"{len(rows)} streams, {RECORDED.stat().st_size} bytes")


if __name__ == "__main__":
    main(sys.argv[1])
