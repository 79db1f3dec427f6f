"""Files of other tools that lie among manifests and never reach an API server: of Helm charts, of Skaffold,
and OpenAPI documents. They are skipped where a folder is read, and never where a file is named itself.

A template is skipped for what it has, not for where it lies: one without ``{{`` is a manifest. A stream that
has a manifest beside another tool's document is read whole.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from pathlib import PurePath
from typing import Final

from specmux_aggregator.console import warn
from specmux_converters.counted_nouns import counted, listed
from specmux_converters.errors import cut
from specmux_tools.sources.input import Input

_SHOWN: Final = 5
_VALUES: Final = re.compile(r"(?:values[^/]*|ci/[^/]*-values)\.(?:ya?ml|json)|values\.schema\.json")
_SKAFFOLD: Final = re.compile(rb"^apiVersion:[ \t]*[\"']?skaffold/", re.MULTILINE)
_DOCUMENT: Final = re.compile(rb"\A\s*(?:\{\s*)?(?:#[^\n]*\n\s*)*\"?(?:swagger|openapi)\"?[ \t]*:")
"""A member that stands first: a manifest that has one is a manifest."""
_SEPARATOR: Final = re.compile(rb"^---.*$", re.MULTILINE)
_CONTENT: Final = re.compile(rb"^[ \t]*[^#\s]", re.MULTILINE)
"""A line that is more than a comment."""

ADVICE: Final = {
    "a Helm chart": "render it: helm template CHART | specmux validate -",
    "OpenAPI": "specmux check validates documents",
}


def without_tool_files(inputs: Iterable[Input], *, by_name: bool = False) -> list[Input]:
    """The inputs that are not other tools'; one line for each tool names those that are. ``inputs`` are in
    memory. ``by_name``: skip files that were named themselves, too. Raises FileRefused."""
    given = tuple(inputs)
    charts = {PurePath(each.name).parent for each in given if PurePath(each.name).name == "Chart.yaml"}
    kept: list[Input] = []
    skipped: dict[str, list[str]] = {}
    for each in given:
        tool = _tool_of(PurePath(each.name), each.read(), charts) if each.relative or by_name else None
        if tool is None:
            kept.append(each)
        else:
            skipped.setdefault(tool, []).append(cut(each.name))
    for tool, names in skipped.items():
        advice = f" ({ADVICE[tool]})" if tool in ADVICE else ""
        warn(f"{counted(len(names), 'file')} of {tool} skipped: {listed(names, _SHOWN)}{advice}")
    return kept


def _tool_of(path: PurePath, data: bytes, charts: Collection[PurePath]) -> str | None:
    chart = next((folder for folder in path.parents if folder in charts), None)
    if chart is not None:
        inside = path.relative_to(chart).as_posix()
        is_template = inside.startswith("templates/") and b"{{" in data
        if is_template or inside == "Chart.yaml" or _VALUES.fullmatch(inside):
            return "a Helm chart"
    documents = [each for each in _SEPARATOR.split(data) if _CONTENT.search(each)]
    if not documents:
        return None
    if all(map(_SKAFFOLD.search, documents)):
        return "Skaffold"
    return "OpenAPI" if all(map(_DOCUMENT.match, documents)) else None
