"""Read YAML node by node: every error has its line and key, and all are reported together.

Tags construct nothing: a node is a mapping, a list or a scalar with its text.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, Final, Protocol

import yaml

from specmux_cache.errors import BadValue
from specmux_converters.errors import cut

DEPTH_MAX: Final = 32

FAULTS_MAX: Final = 20
"""Errors reported together; a foreign file has as many as it has lines."""

_TAG: Final = "tag:yaml.org,2002:"
_SECRETS: Final = ("token", "password", "secret", "_data", "bearer", "authorization")


_TOO_DEEP: Final = "exceeded maximum nesting depth"
"""libyaml's own limit, from 0.2.6 on: it reads ahead of the events counted here."""


class Refusal(Protocol):
    """A class of exceptions."""

    def __call__(self, reason: str, *, where: str = "") -> Exception: ...


class YAMLReader:
    """Reads one file and collects its errors."""

    def __init__(self, path: Path, refusal: Refusal) -> None:
        """``refusal``: creates the exception from a reason and ``where``."""
        self._path = path
        self._refusal = refusal
        self._faults: list[tuple[int, str]] = []

    def compose(self, text: str) -> yaml.Node | None:
        """The root node; None for an empty file. Raises the refusal unless it is a single YAML document."""
        # CSafeLoader is absent if PyYAML was built without libyaml.
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        try:
            self._refuse_depth(text, loader)
            root: yaml.Node | None = yaml.compose(text, Loader=loader)
        except yaml.MarkedYAMLError as error:
            where = self._where(error.problem_mark or error.context_mark)
            if error.problem == _TOO_DEEP:
                raise self._refusal(f"nested deeper than {DEPTH_MAX} levels", where=where) from error
            raise self._refusal(f"not YAML: {error.problem or error.context}", where=where) from error
        except yaml.YAMLError as error:
            raise self._refusal("not YAML: a character is not allowed", where=str(self._path)) from error
        return root

    def _refuse_depth(self, text: str, loader: Any) -> None:
        # libyaml composes recursively in C, without a limit.
        depth = 0
        for event in yaml.parse(text, Loader=loader):
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
            if depth > DEPTH_MAX:
                raise self._refusal(
                    f"nested deeper than {DEPTH_MAX} levels", where=self._where(event.start_mark)
                )

    def _where(self, mark: Any) -> str:
        return f"{self._path}:{mark.line + 1}" if mark else str(self._path)

    def members(
        self, node: yaml.Node | None, key: str, known: Collection[str], *, is_open: bool = False
    ) -> dict[str, yaml.Node]:
        """The members of a mapping by name, without unknown, repeated and empty ones.

        ``is_open``: unknown members are allowed; they belong to others.
        """
        if node is None or is_null(node):
            return {}
        if not isinstance(node, yaml.MappingNode):
            self.fault(node, key, "wants a mapping (name: value)")
            return {}
        found: dict[str, yaml.Node] = {}
        seen: set[str] = set()
        for name_node, value in node.value:
            name = name_node.value if isinstance(name_node, yaml.ScalarNode) else ""
            full = f"{key}.{cut(name)}" if key else cut(name)
            if name not in known:
                if is_open:
                    continue
                self.fault(name_node, full, _describe_unknown(name, known))
            elif name in seen:
                self.fault(name_node, full, "given twice")
            elif not is_null(value):
                found[name] = value
            seen.add(name)
        return found

    def items(self, node: yaml.Node | None, key: str) -> list[yaml.Node]:
        """The items of a list."""
        if node is None or is_null(node):
            return []
        if not isinstance(node, yaml.SequenceNode):
            self.fault(node, key, "wants a list (- item)")
            return []
        return list(node.value)

    @staticmethod
    def is_mapping(node: yaml.Node) -> bool:
        return isinstance(node, yaml.MappingNode)

    @staticmethod
    def is_list(node: yaml.Node) -> bool:
        return isinstance(node, yaml.SequenceNode)

    def scalar(
        self,
        node: yaml.Node,
        key: str,
        wanted: type,
        read: Callable[[str], object],
        *,
        words: Collection[str] = (),
    ) -> Any:
        """The scalar's text converted by ``read``, if YAML's type fits; else None, with an error.

        ``words`` need no quotes, whatever type YAML assigns to them: ``off``.
        """
        if not isinstance(node, yaml.ScalarNode):
            self.fault(node, key, "wants a single value")
            return None
        tag = node.tag.removeprefix(_TAG)
        if wanted is bool and tag != "bool":
            self.fault(node, key, "wants true or false")
        elif wanted in (int, float) and tag not in ("int", "float", "str"):
            self.fault(node, key, "wants a number")
        elif wanted not in (bool, int, float) and tag != "str" and node.value not in words:
            self.fault(node, key, f"wants a text, and YAML reads this as {cut(tag)}: put it in quotes")
        else:
            try:
                return read(node.value)
            except BadValue as bad:
                self.fault(node, key, str(bad))
        return None

    def fault(self, node: yaml.Node, key: str, reason: str) -> None:
        self._faults.append((node.start_mark.line + 1, f"{key}: {reason}" if key else reason))

    def finish(self) -> None:
        """Raises the refusal if there were errors: one per line, in the order of the file."""
        faults = sorted(set(self._faults))
        if not faults:
            return
        lines = [f"{self._path}:{line}: {text}" for line, text in faults[:FAULTS_MAX]]
        if len(faults) > FAULTS_MAX:
            lines.append(f"{self._path}: and {len(faults) - FAULTS_MAX} more")
        raise self._refusal("\n".join(lines))


def is_null(node: yaml.Node) -> bool:
    """``key:`` without a value, or null: equivalent to an absent key."""
    return isinstance(node, yaml.ScalarNode) and node.tag == f"{_TAG}null"


def _describe_unknown(name: str, known: Collection[str]) -> str:
    if any(part in name.lower() for part in _SECRETS):
        return "unknown key; a secret is never written here but named by file (credentials.token_file)"
    import difflib

    close = difflib.get_close_matches(name, known, n=1)
    return f"unknown key; did you mean {close[0]}?" if close else f"unknown key; known: {', '.join(known)}"
