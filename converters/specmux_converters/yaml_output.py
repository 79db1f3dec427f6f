"""Documents as YAML that every reader takes for the same: YAML 1.1 and 1.2 differ in what a plain word is, so
a string that either takes for something else is quoted."""

from __future__ import annotations

from typing import Any

import yaml

from specmux_converters.document import Document
from specmux_converters.errors import LimitExceeded, Unrepresentable
from specmux_converters.yaml_input import is_plain_text


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]  # libyaml is optional
    def ignore_aliases(self, data: Any) -> bool:
        """Documents share objects; anchors for that would be noise."""
        return True

    def represent_text(self, data: str) -> yaml.ScalarNode:
        node: yaml.ScalarNode = self.represent_scalar(
            "tag:yaml.org,2002:str", data, style=None if is_plain_text(data) else '"'
        )
        return node


_Dumper.add_representer(str, _Dumper.represent_text)


def to_yaml(document: Document) -> bytes:
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
