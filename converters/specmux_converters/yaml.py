"""Parse YAML under limits, and write YAML that every reader reads alike.

YAML 1.1, YAML 1.2 and Go's readers differ in the meaning of plain words, so a string that any of them reads
as something else is quoted.

libyaml's emitter quotes what PyYAML would misread. This module adds the rest: go-yaml reads ``y`` as true,
``0X1F``, ``1_e3`` and ``-_1`` as numbers, and ``2001-1-1T1:2:3Z`` as a time. So everything that starts like a
number is quoted.
"""

from __future__ import annotations

import re
from typing import Any, Final

import yaml

from specmux_converters.document import DEFAULT_LIMITS, Document, Limits
from specmux_converters.errors import InvalidDocument, LimitExceeded, Unrepresentable
from specmux_converters.go.yaml_dialects import CORE, KUBERNETES, is_plain_text
from specmux_converters.go.yaml_reader import Duplicates, read_all
from specmux_converters.losses import Loss


def parse_yaml_stream(
    data: bytes,
    *,
    limits: Limits = DEFAULT_LIMITS,
    is_manifest: bool = False,
    losses: list[Loss] | None = None,
) -> tuple[Document, ...]:
    """The non-empty documents in ``data``. Manifests are parsed as in Kubernetes, where the last of duplicate
    keys counts; others as YAML 1.2. Changes made by parsing are added to ``losses``.

    Raises as ``document.parse``. Aliased values are the same object at every place: treat them as read-only.
    """
    limits.check_bytes(data)
    dialect = KUBERNETES if is_manifest else CORE
    duplicates = Duplicates.REPORTED if is_manifest else Duplicates.REFUSED
    documents = []
    for parsed in read_all(data, dialect=dialect, duplicates=duplicates, limits=limits):
        if parsed.value is None:
            continue
        if not isinstance(parsed.value, dict):
            raise InvalidDocument("not a YAML mapping")
        documents.append(parsed.value)
        if losses is not None:
            losses += parsed.losses
    return tuple(documents)


_WORDS: Final = frozenset(("y", "n", "yes", "no", "on", "off", "true", "false", "null"))
_NUMBER_START: Final = re.compile(r"[-+._]*[0-9]")
_OLD_BREAK: Final = re.compile("[\x85\u2028\u2029]")
"""Line breaks of YAML 1.1 alone: unescaped, a reader folds them."""


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]  # libyaml is optional
    def ignore_aliases(self, data: Any) -> bool:
        """Documents share objects; anchors for them would be noise."""
        return True

    def represent_text(self, data: str) -> yaml.ScalarNode:
        node: yaml.ScalarNode = self.represent_scalar(
            "tag:yaml.org,2002:str", data, style=None if _is_text_to_all(data) else '"'
        )
        return node


_Dumper.add_representer(str, _Dumper.represent_text)


def _is_text_to_all(text: str) -> bool:
    """Whether every reader reads it as a string without quotes."""
    is_odd = text.lower() in _WORDS or _NUMBER_START.match(text) or _OLD_BREAK.search(text)
    return not is_odd and is_plain_text(text)


def to_yaml(document: Any) -> bytes:
    """In the document's key order, as UTF-8."""
    try:
        text: bytes = yaml.dump(
            document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, encoding="utf-8"
        )
    except yaml.YAMLError as error:
        raise Unrepresentable(f"YAML: {error}") from error
    except RecursionError:
        raise LimitExceeded("nested too deeply") from None
    return text
