"""Nothing of a document reaches a terminal as what the terminal obeys, whether it is one or a pipe."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from deadline import DEADLINE
from specmux_aggregator.cli import main
from specmux_converters.printing import printable, printable_lines

HOSTILE = "\x1b]52;c;cm0gLXJmIH4K\x07\x1b[2J\x1b]8;;http://evil\x07text\x1b]8;;\x07 \x9b31m\u202e \x00\rend"
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
KIND = {"group": "evil.example.io", "version": "v1", "kind": "Thing"}
DOCUMENT = {
    "openapi": "3.0.0",
    "info": {"title": "t", "version": "v1"},
    "paths": {
        "/apis/evil.example.io/v1/things": {
            "get": {
                "operationId": "l",
                "x-kubernetes-action": "list",
                "x-kubernetes-group-version-kind": KIND,
                "responses": {"200": {"description": "OK"}},
            }
        }
    },
    "components": {
        "schemas": {
            "io.Thing": {
                "type": "object",
                "description": f"A kind. {HOSTILE}",
                "x-kubernetes-group-version-kind": [KIND],
                "properties": {
                    "apiVersion": {"type": "string"},
                    "kind": {"type": "string"},
                    "metadata": {"type": "object"},
                    "spec": {
                        "type": "object",
                        "description": f"A field. {HOSTILE}",
                        "properties": {
                            "size": {
                                "type": "string",
                                "description": HOSTILE,
                                "enum": [HOSTILE],
                                "default": HOSTILE,
                                "pattern": HOSTILE,
                            },
                            f"name{HOSTILE}": {"type": "string", "description": HOSTILE},
                        },
                    },
                },
            }
        }
    },
}
OBJECT = {
    "apiVersion": "evil.example.io/v1",
    "kind": "Thing",
    "metadata": {"name": f"a{HOSTILE}"},
    "spec": {"size": f"x{HOSTILE}", f"other{HOSTILE}": 1},
}
COMMANDS = {
    "explain": ("explain", "things"),
    "explain a field": ("explain", "things.spec.size"),
    "explain all fields": ("explain", "things", "--recursive"),
    "explain as kubectl": ("explain", "things.spec", "-o", "plaintext"),
    "skeleton": ("explain", "things", "-o", "skeleton", "--recursive"),
    "unknown field": ("explain", "things.spec.nam"),
    "unknown kind": ("explain", f"Thin{HOSTILE.replace(chr(0), '')}"),
    "no type": ("explain", f".spec{HOSTILE.replace(chr(0), '').replace(' ', '')}"),
    "unknown option": ("explain", "things", f"--thin{HOSTILE.replace(chr(0), '')}"),
    "unknown choice": ("explain", "things", "-o", HOSTILE.replace(chr(0), "")),
    "search": ("search", "field"),
    "search a name": ("search", "name"),
    "validate": ("validate", "OBJECT"),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    documents = tmp_path / "documents/apis/evil.example.io"
    documents.mkdir(parents=True)
    (documents / "v1.json").write_text(json.dumps(DOCUMENT))
    (tmp_path / "object.json").write_text(json.dumps(OBJECT))
    return tmp_path


def words_of(folder: Path, name: str) -> list[str]:
    words = [str(folder / "object.json") if word == "OBJECT" else word for word in COMMANDS[name]]
    return [*words, "--directory", str(folder / "documents")]


def environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "XDG_CACHE_HOME": str(folder / "cache"), "NO_COLOR": "1"}


@pytest.mark.parametrize("name", COMMANDS)
def test_pipe(folder: Path, name: str) -> None:
    said = CliRunner().invoke(main, words_of(folder, name), env=environment(folder)).output
    assert len(said) > 20
    assert "Traceback" not in said
    assert OBEYED.findall(said) == []


@pytest.mark.parametrize("name", ["explain", "search", "validate"])
def test_terminal(folder: Path, name: str) -> None:
    ours, theirs = pty.openpty()
    program = "from specmux_aggregator.cli import main; main()"
    with subprocess.Popen(
        [sys.executable, "-c", program, *words_of(folder, name)],
        stdout=theirs,
        stderr=theirs,
        env=environment(folder),
    ) as run:
        os.close(theirs)
        said = b""
        try:
            while data := os.read(ours, 65536):
                said += data
        except OSError:  # how Linux says that the other side is closed
            pass
        run.wait(timeout=DEADLINE)
    os.close(ours)
    text = said.decode().replace("\r\n", "\n")
    assert len(text) > 20
    assert OBEYED.findall(text) == []


@given(st.text())
def test_lines_keep_what_is_harmless(text: str) -> None:
    shown = printable_lines(text)
    assert OBEYED.search(shown) is None
    shown.encode()
    assert shown == text or not text.isprintable()
    assert printable(shown.replace("\n", "").replace("\t", "")).isprintable()
