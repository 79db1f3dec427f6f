"""Rules compiled: what an apiserver makes of the rules of one place in a schema, or why it refuses them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.releases import NEWEST
from specmux_tools.validation.report import Path
from specmux_tools.validation.rules.cel.checking.declarations import Environment
from specmux_tools.validation.rules.cel.checking.types import BOOL, STRING, CelType, optional_of
from specmux_tools.validation.rules.cel.compiling import (
    CompiledExpression,
    NotInstantiable,
    WrongResult,
    compile_expression,
)
from specmux_tools.validation.rules.cel.parsing.syntax import InvalidExpression
from specmux_tools.validation.rules.cel.releases import environment
from specmux_tools.validation.rules.rule_tree import BadFieldPath, RuleNode, ValidationRule, follow_field_path
from specmux_tools.validation.rules.schema_types import SELF_TYPE, Declaration, Declarations

SELF: Final = "self"
OLD_SELF: Final = "oldSelf"
NOT_INSTANTIATED: Final = "messageExpression instantiation failed"
"""The beginning of the fault of a message that compiles."""

UNTYPED: Final = "failed to convert to declType for CEL validation rules"
"""The fault of rules over a value that CEL has no type for."""


_NO_PATH: Final[tuple[Path, str]] = ((), "")


@dataclass(frozen=True, slots=True, eq=False)
class CompiledRule:
    """``fault`` and ``message_fault`` are what an apiserver says of a rule or message that it refuses."""

    rule: ValidationRule
    expression: CompiledExpression | None = None
    message: CompiledExpression | None = None
    fault: str = ""
    message_fault: str = ""
    path: Path = ()
    """The place that it speaks of, below its own."""
    shown_path: str = ""

    @property
    def uses_old(self) -> bool:
        return self.expression is not None and OLD_SELF in self.expression.names


class RuleCompiler:
    """Keeps what it compiled, by node. ``is_new``: as for a definition that is written for the first time."""

    def __init__(self, minor: int = NEWEST, *, is_new: bool = False) -> None:
        self.minor = minor
        self._environment: Environment = environment(minor, is_new=is_new)
        self._compiled: dict[RuleNode, tuple[CompiledRule, ...]] = {}
        self.declarations = Declarations(minor)

    def rules(self, node: RuleNode, typed: RuleNode | None = None) -> tuple[CompiledRule, ...]:
        """``typed`` says what the value is where the node stands in allOf."""
        found = self._compiled.get(node)
        if found is None:
            found = self._compiled[node] = tuple(self._compile(node, typed or node))
        return found

    def _compile(self, node: RuleNode, typed: RuleNode) -> Iterator[CompiledRule]:
        declared = self.declarations.of(typed)
        for rule in node.rules:
            if not rule.text.strip():
                yield CompiledRule(rule)
            elif declared is None:
                yield CompiledRule(rule, fault=UNTYPED)
            else:
                yield self._rule(rule, typed, declared)

    def _rule(self, rule: ValidationRule, node: RuleNode, declared: Declaration) -> CompiledRule:
        of = declared.type
        variables = {SELF: of, OLD_SELF: optional_of(of) if rule.optional_old else of}
        expression, fault = self._expression(rule.text, variables, BOOL)
        # Each place with rules names its types anew.
        fault = fault.replace(declared.name, SELF_TYPE)
        if expression is None:
            return CompiledRule(rule, fault=fault)
        message, message_fault = None, ""
        if rule.message_expression:
            message, message_fault = self._expression(rule.message_expression, variables, STRING)
            message_fault = message_fault.replace(declared.name, SELF_TYPE)
        # As upstream: a message that does not compile loses the path, too.
        path, shown = _NO_PATH if message_fault else _field_path(rule, node)
        return CompiledRule(rule, expression, message, "", message_fault, path, shown)

    def _expression(
        self, text: str, variables: Mapping[str, CelType], wanted: CelType
    ) -> tuple[CompiledExpression | None, str]:
        """The compiled expression, or an apiserver's message."""
        is_message = wanted is STRING
        name = "messageExpression " if is_message else ""
        try:
            structs = self.declarations.structs
            return compile_expression(text, self._environment, variables, structs, wanted), ""
        except InvalidExpression as invalid:
            return None, f"{name}compilation failed: {invalid}"
        except NotInstantiable as fault:
            return None, f"{name or 'program '}instantiation failed: {fault}"
        except WrongResult as fault:
            return None, f"{'messageExpression' if is_message else 'cel expression'} {fault}"


def _field_path(rule: ValidationRule, node: RuleNode) -> tuple[Path, str]:
    try:
        return follow_field_path(rule.field_path, node)[:2] if rule.field_path else _NO_PATH
    except BadFieldPath:
        return _NO_PATH
