"""Line numbers of findings in documents that are text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import yaml

from specmux_converters.document import Document
from specmux_converters.losses import tokens_of
from specmux_tools.document_checks.findings import DocumentFinding
from specmux_tools.validation.decoding.positions import Places

BYTES_MAX: Final = 16 * 1024 * 1024
"""Bytes of the largest text that is parsed again for line numbers."""


def with_lines(findings: Sequence[DocumentFinding], data: bytes, document: Document) -> list[DocumentFinding]:
    """``document``: the parsed ``data``. A finding whose pointer does not exist has no line."""
    paths = [_path(document, finding.pointer) for finding in findings]
    places = Places(path for path in paths if path)
    if not any(paths) or len(data) > BYTES_MAX or not _read(data, places):
        return list(findings)
    found = []
    for finding, path in zip(findings, paths, strict=True):
        line, column = (places.of(path) if path else None) or (None, None)
        found.append(finding._replace(line=line, column=column))
    return found


def _read(data: bytes, places: Places) -> bool:
    """False if it is not text: Protobuf, CBOR."""
    try:
        text = data.decode("utf-8-sig")
        if text.lstrip()[:1] == "{":
            places.read_json(text)
        else:
            loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
            events = [*yaml.parse(text, Loader=loader)]
            places.read_yaml(events[2:])  # after the start of the stream and of the document
    except (UnicodeDecodeError, yaml.YAMLError, IndexError):
        return False
    return True


def _path(document: Document, pointer: str) -> tuple[str | int, ...]:
    """The pointer as keys and indexes, as far as it exists in the document."""
    node: Any = document
    path: list[str | int] = []
    for token in tokens_of(pointer):
        if isinstance(node, dict) and token in node:
            path.append(token)
            node = node[token]
        elif isinstance(node, list) and token.isdecimal() and int(token[:9]) < len(node):
            path.append(int(token))
            node = node[int(token)]
        else:
            break
    return tuple(path)
