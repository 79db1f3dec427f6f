"""Path templates with more than a parameter's name, as web frameworks write them.

``{name:[a-z0-9]+}`` is go-restful's (published by KubeVirt's extension server), ``{name=shelves/*}``
grpc-gateway's. Both standards allow only names: the parameters of such a path would be undeclared.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from specmux_converters.errors import cut
from specmux_converters.from_swagger2.reading.source import SwaggerSource
from specmux_converters.from_swagger2.reading.trace import Trace
from specmux_converters.json_values import array, mapping
from specmux_converters.losses import tokens_of

_EXPRESSION: Final = re.compile(r"\{([^{}:=/]+)([:=](?:[^{}]|\{[^{}]*\})*)\}")
_NAME: Final = re.compile(r"\{[^{}]*\}")
_MAYBE: Final = re.compile(r"\{[^{}:=/]+[:=]")


def plain_templates(paths: Mapping[str, Any], source: SwaggerSource) -> dict[str, str]:
    """Each path with such a template -> the path with names only. Empty for most documents."""
    if not _MAYBE.search("\n".join(paths)):
        return {}
    plain = {path: _plain(path, node, source) for path, node in paths.items() if _EXPRESSION.search(path)}
    return {path: written for path, written in plain.items() if path != written}


def note_equal_templates(paths: Mapping[str, Any], trace: Trace) -> None:
    """Report paths that differ only in the names of their parameters: both standards forbid them."""
    first: dict[str, str] = {}
    for path in paths:
        if "{" in path and (other := first.setdefault(_NAME.sub("{}", path), path)) != path:
            reason = f"differs from {cut(other)} in names of parameters only, which OpenAPI forbids; kept"
            trace.note("path template", reason, "paths", path)


def lose_expressions(path: str, trace: Trace) -> None:
    """``path``: as written in the document."""
    for name, expression in _EXPRESSION.findall(path):
        reason = f"OpenAPI 3.0 has the name only; left out of {{{cut(name)}}}: {cut(expression[1:])}"
        trace.lose("path template", reason)


def _plain(path: str, node: Any, source: SwaggerSource) -> str:
    """A declared name is kept, whatever it contains."""
    declared = set(_declared_names(node, source)) if isinstance(node, dict) else set()

    def name_only(match: re.Match[str]) -> str:
        return match[0] if match[0][1:-1] in declared else f"{{{match[1]}}}"

    return _EXPRESSION.sub(name_only, path)


def _declared_names(node: dict[str, Any], source: SwaggerSource) -> Iterator[str]:
    for owner in (node, *node.values()):
        for each in array(mapping(owner).get("parameters")):
            ref = mapping(each).get("$ref")
            parameter = source.resolve(tokens_of(ref)) if isinstance(ref, str) else each
            if isinstance(parameter, dict) and parameter.get("in") == "path":
                yield str(parameter.get("name"))
