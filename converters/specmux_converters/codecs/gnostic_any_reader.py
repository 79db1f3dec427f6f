"""Parse the text of gnostic's ``Any{yaml}`` as a JSON value, with the semantics of go-yaml v3.

Aliases, tags and directives are refused: Go writes none, aliases expand small texts without bound, and
libyaml compares each %TAG with all previous ones.
"""

from __future__ import annotations

import re
from typing import Any, Final

from specmux_converters.document import Limits
from specmux_converters.errors import InvalidDocument
from specmux_converters.go.yaml_dialects import GNOSTIC
from specmux_converters.go.yaml_reader import read_all

_DIRECTIVE: Final = re.compile("(?:\\A\ufeff?|[\n\r\x85\u2028\u2029])%(?:TAG|YAML)")


def read_yaml(text: str, *, max_depth: int) -> Any:
    """Raises InvalidDocument unless it is one YAML document within JSON's data model; "" is null."""
    if "%" in text and _DIRECTIVE.search(text):
        raise InvalidDocument("YAML with a directive")
    documents = read_all(text, dialect=GNOSTIC, limits=Limits(max_depth=max_depth))
    first = next(documents, None)
    if next(documents, None) is not None:
        raise InvalidDocument("more than one YAML document")
    return None if first is None else first.value
