"""Each row of the table, at the releases before and after: there, and only there, the answer changes."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import orjson
import pytest

from converters.crd.widgets import KEY, of_spec, widget
from specmux_converters import releases as table
from specmux_converters.crd import build, templates_for
from specmux_converters.crd.templates import _DATA as TEMPLATES
from specmux_converters.group_versions import GroupVersion
from specmux_converters.merge_types import to_merge_schema
from specmux_converters.releases import (
    DIFFERENCES,
    NEWEST,
    OLDEST,
    PREVIEW,
    RELEASES,
    ReleaseDifference,
    UnknownRelease,
    minor_release,
)
from specmux_tools.kinds import DocumentSet
from specmux_tools.validation import Validator
from specmux_tools.validation.messages import status_of
from specmux_tools.validation.metadata.names import name_rule
from specmux_tools.validation.rules.cel.compiling import compile_expression
from specmux_tools.validation.rules.cel.costs.estimates import estimate
from specmux_tools.validation.rules.cel.parsing.syntax import InvalidExpression
from specmux_tools.validation.rules.cel.releases import environment
from specmux_tools.validation.rules.cel.values.values import CelError
from specmux_tools.validation.rules.compiled_rule import RuleCompiler
from specmux_tools.validation.rules.rule_tree import rule_tree
from specmux_tools.validation.rules.schema_types import Declarations

Probe = Callable[[int], Any]
STRING = {"type": "string"}
LINKED = {**STRING, "externalDocs": {"url": "https://a.example"}}


def published(spec: Any) -> Probe:
    return lambda minor: build([widget(of_spec(spec))], templates=templates_for(f"1.{minor}")).documents


def judged(schema: Any, value: Any) -> Probe:
    documents = DocumentSet(build([widget(of_spec(schema))]).documents)
    body = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": value}

    def texts(minor: int) -> list[str]:
        report = Validator(documents, release=f"1.{minor}").validate(orjson.dumps(body))
        return [each.message for each in report.violations]

    return texts


def judged_types(schema: Any, value: Any) -> Probe:
    documents = DocumentSet(build([widget(of_spec(schema))]).documents)
    body = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": value}

    def reasons(minor: int) -> list[str]:
        status = status_of(Validator(documents, release=f"1.{minor}").validate(orjson.dumps(body)))
        return [] if status is None else [each["reason"] for each in status["details"]["causes"]]

    return reasons


def compiled(rule: str, *, is_new: bool = False) -> Probe:
    """Whether a rule of a list of numbers is one."""
    schema = {"type": "array", "items": {"type": "integer"}, "x-kubernetes-validations": [{"rule": rule}]}

    def fault(minor: int) -> bool:
        (found,) = RuleCompiler(minor, is_new=is_new).rules(rule_tree(of_spec(schema), {}).fields["spec"])
        return not found.fault

    return fault


def longest_name(minor: int) -> int:
    declared = Declarations(minor).of(
        rule_tree({"type": "object", "x-kubernetes-embedded-resource": True}, {})
    )
    assert declared is not None
    return declared.fields["metadata"].fields["name"].most


def longest_int_or_string(minor: int) -> int:
    declared = Declarations(minor).of(rule_tree({"x-kubernetes-int-or-string": True, "maxLength": 9}, {}, 1))
    assert declared is not None
    return declared.most


def cost_of_an_equality(minor: int) -> int:
    compiled = compile_expression("quantity('1') == quantity('2')", environment(minor), {}, {})
    return estimate(compiled.checked, lambda path: None).most


null_of_an_optional = judged(
    {
        "type": "object",
        "properties": {"a": {**STRING, "nullable": True}},
        "x-kubernetes-validations": [{"rule": "optional.of(self).a.hasValue()"}],
    },
    {"a": None},
)


def refuses_a_range(minor: int) -> bool:
    try:
        compile_expression("lists.range(-1)", environment(minor), {}, {}).program.evaluate({}, 99)
    except CelError:
        return True
    except InvalidExpression:
        return False
    return False


def selects_a_keyword(minor: int) -> bool:
    rule = {"rule": "self.namespace == ''"}
    schema = {"type": "object", "properties": {"namespace": STRING}, "x-kubernetes-validations": [rule]}
    (found,) = RuleCompiler(minor).rules(rule_tree(of_spec(schema), {}).fields["spec"])
    return not found.fault


PROBES: dict[ReleaseDifference, Probe] = {
    table.EMPTY_SELECTABLE_FIELDS: lambda minor: (
        "x-kubernetes-selectable-fields"
        in published(STRING)(minor)[GroupVersion(KEY)]["components"]["schemas"]["com.example.v1.Widget"]
    ),
    table.EXAMPLES: lambda minor: b"a.example" in orjson.dumps(published(LINKED)(minor)[GroupVersion(KEY)]),
    table.NULLABLE: lambda minor: to_merge_schema(
        {"components": {"schemas": {"A": {"properties": {"a": {**STRING, "nullable": True}}}}}},
        release=f"1.{minor}",
    ),
    table.NAME_FORMATS: judged({**STRING, "format": "k8s-short-name"}, "A"),
    table.NUMERIC_FORMATS: judged({"type": "integer", "format": "int32"}, 1 << 31),
    table.NEARLY_WHOLE: judged({"type": "number", "multipleOf": 1}, 0.99999999999),
    table.LEAST_TYPED: judged_types({**STRING, "minLength": 2}, "A"),
    table.RELAXED_SERVICES: lambda minor: name_rule("", "Service", minor),
    table.SHORT_NAMES: longest_name,
    table.BOUNDED_INT_OR_STRING: longest_int_or_string,
    table.CEL_ADDRESSES: compiled("isIP('::1')", is_new=True),
    table.CEL_KEYWORD_FIELDS: selects_a_keyword,
    table.CEL_FORMATS: compiled("format.named('uuid').hasValue()"),
    table.CEL_VALUE_EQUALITY: cost_of_an_equality,
    table.CEL_TWO_VARIABLES: compiled("self.all(i, v, v > i)"),
    table.CEL_VERSIONS: compiled("isSemver('1.2.3')"),
    table.CEL_OPTIONAL_LISTS: compiled("self.first().hasValue()"),
    table.CEL_EXTENDED_LISTS: compiled("self.sort() == self"),
    table.CEL_INCLUDES: compiled("self.includes(1)"),
    table.CEL_MASKS: compiled("cidr('::/8').isMask()"),
    table.CEL_EMPTY_PARTS: lambda minor: compile_expression(
        "'a'.indexOf('', 9)", environment(minor), {}, {}
    ).program.evaluate({}, 99)[0],
    table.CEL_DURATIONS_OF_INTS: compiled("duration(1) == duration('1ns')"),
    table.CEL_RANGE_SIZES: refuses_a_range,
    table.CEL_OPTIONAL_VALUES: lambda minor: bool(null_of_an_optional(minor)),
}
"""What shows a row: an answer by release."""


def test_each_row_is_shown() -> None:
    assert set(PROBES) == set(DIFFERENCES)


@pytest.mark.parametrize("row", DIFFERENCES, ids=lambda row: row.what[:40])
def test_a_row_shows_at_the_releases_that_it_names(row: ReleaseDifference) -> None:
    # A definition may use what the release before knew: there it shows a release later.
    later = row is table.CEL_ADDRESSES
    newest = PREVIEW if row.since == PREVIEW else NEWEST
    answers = {minor: PROBES[row](minor) for minor in range(OLDEST, newest + 1)}
    changes = [new for old, new in pairwise(answers) if answers[old] != answers[new]]
    assert changes == [minor + later for minor in (row.since, row.until) if OLDEST < minor + later <= newest]


def test_each_release_has_texts_of_its_own_where_upstream_changed_them() -> None:
    rows = [row["until"] for row in TEMPLATES["older"]]
    digests = {minor: templates_for(f"1.{minor}").digest for minor in range(OLDEST, NEWEST + 1)}
    assert [new for old, new in pairwise(digests) if digests[old] != digests[new]] == rows[::-1]


@pytest.mark.parametrize("release", ["1.29", "1.38", "v1.9", "35", "", "newest"])
def test_an_unknown_release_is_told_with_those_that_are_known(release: str) -> None:
    with pytest.raises(UnknownRelease, match=f'no release "{release}": give one of 1.30 to 1.37'):
        templates_for(release)
    with pytest.raises(UnknownRelease):
        to_merge_schema({}, release=release)


def test_known_releases() -> None:
    assert [minor_release(each) for each in RELEASES] == list(range(OLDEST, NEWEST + 1))
    assert minor_release(None) == minor_release("v1.37") == NEWEST
