"""Objects as they would be stored, printed as YAML or JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import orjson

from specmux_aggregator.sources.judged.validated_objects import ObjectVerdict, ValidatedObject
from specmux_converters.yaml.writer import to_yaml

OBJECT_FORMS: Final = ("yaml", "object-json")


def stored_text(checked: Sequence[ValidatedObject], form: str) -> bytes:
    """Of those that are valid: a stream of YAML documents; as JSON the object, or a List of several."""
    objects = [orjson.loads(orjson.dumps(each, default=float)) for each in _stored(checked)]
    if form == "yaml":
        return b"---\n".join(map(to_yaml, objects))
    listed = {"apiVersion": "v1", "kind": "List", "items": objects}
    return orjson.dumps(objects[0] if len(objects) == 1 else listed, option=orjson.OPT_INDENT_2) + b"\n"


def _stored(checked: Sequence[ValidatedObject]) -> list[Any]:
    return [
        each.report.stored
        for each in checked
        if each.outcome is ObjectVerdict.VALID and each.report.stored is not None and each.key.kind != "List"
    ]
