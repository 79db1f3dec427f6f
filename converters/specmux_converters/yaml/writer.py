"""Write documents as YAML that every reader reads alike: YAML 1.1, YAML 1.2 and Go's readers differ in the
meaning of plain words, so a string that any of them reads as something else is quoted.

libyaml's emitter quotes what PyYAML would misread. This module adds the rest: go-yaml reads ``y`` as true,
``0X1F``, ``1_e3`` and ``-_1`` as numbers, and ``2001-1-1T1:2:3Z`` as a time. So everything that starts like a
number is quoted.
"""

from __future__ import annotations

import re
from typing import Any, Final

import yaml

from specmux_converters.errors import LimitExceeded, Unrepresentable
from specmux_converters.go.yaml_dialects import is_plain_text

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
