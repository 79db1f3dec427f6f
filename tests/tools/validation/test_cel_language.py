"""The language: syntax, types, arithmetic, limits. What Kubernetes says is in ``test_cel_recorded``."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampling import examples
from specmux_tools.validation.rules.cel.checking.types import DYN, STRING, list_of
from specmux_tools.validation.rules.cel.compiling import NotInstantiable, compile_expression
from specmux_tools.validation.rules.cel.libraries.times import (
    any_timestamp,
    civil_from_days,
    days_from_civil,
    duration_text,
    read_duration,
    timestamp_text,
)
from specmux_tools.validation.rules.cel.parsing.parser import MOST_CHARACTERS, MOST_DEPTH, parse
from specmux_tools.validation.rules.cel.parsing.syntax import InvalidExpression
from specmux_tools.validation.rules.cel.releases import environment
from specmux_tools.validation.rules.cel.values.arithmetic import (
    add,
    divide,
    modulo,
    multiply,
    negate,
    subtract,
)
from specmux_tools.validation.rules.cel.values.values import (
    INT_MAX,
    INT_MIN,
    UINT_MAX,
    CelError,
    CostExceeded,
    Duration,
    LiteralMap,
    UInt,
    UndecidedRule,
    compare,
    equal,
)

LIMIT = 1_000_000
quick = examples(200)
int64 = st.one_of(
    st.integers(INT_MIN, INT_MAX), st.sampled_from([INT_MIN, INT_MAX, -1, 0, 1]), st.integers(-9, 9)
)


def value(text: str, **variables: Any) -> Any:
    types = dict.fromkeys(variables, DYN)
    return compile_expression(text, environment(), types, {}).program.evaluate(variables, LIMIT)[0]


def fault(text: str, **variables: Any) -> str:
    with pytest.raises(CelError) as caught:
        value(text, **variables)
    return str(caught.value)


def go(apply: Any, wanted: int) -> Any:
    """The exact result, or the error where it does not fit."""
    try:
        return apply() == wanted and INT_MIN <= wanted <= INT_MAX
    except CelError as error:
        return str(error) == "integer overflow" and not INT_MIN <= wanted <= INT_MAX


@quick
@given(int64, int64)
def test_integers_of_64_bits_do_not_wrap(left: int, right: int) -> None:
    assert go(lambda: add(left, right), left + right)
    assert go(lambda: subtract(left, right), left - right)
    assert go(lambda: multiply(left, right), left * right)
    assert go(lambda: negate(left), -left)


@quick
@given(int64, int64.filter(bool))
def test_division_is_toward_zero(left: int, right: int) -> None:
    if (left, right) == (INT_MIN, -1):
        with pytest.raises(CelError, match="integer overflow"):
            divide(left, right)
        with pytest.raises(CelError, match="integer overflow"):
            modulo(left, right)
        return
    quotient, rest = divide(left, right), modulo(left, right)
    assert quotient * right + rest == left
    assert abs(rest) < abs(right)
    assert rest == 0 or (rest < 0) == (left < 0)


@quick
@given(st.integers(0, UINT_MAX), st.integers(0, UINT_MAX))
def test_unsigned_integers_do_not_wrap(left: int, right: int) -> None:
    for apply, wanted in ((add, left + right), (subtract, left - right), (multiply, left * right)):
        try:
            assert apply(UInt(left), UInt(right)) == wanted
        except CelError as error:
            assert str(error) == "unsigned integer overflow"
            assert not 0 <= wanted <= UINT_MAX


@quick
@given(int64, st.floats(allow_nan=False))
def test_order_over_types_is_one_order(whole: int, number: float) -> None:
    assert compare(whole, number) == -compare(number, whole)
    assert equal(whole, number) == (compare(whole, number) == 0)


def test_true_is_no_one() -> None:
    assert not equal(True, 1)
    assert value("dyn(true) == dyn(1)") is False


@quick
@given(st.integers(-719_162, 2_932_896))
def test_days_are_those_of_the_calendar(days: int) -> None:
    assert days_from_civil(*civil_from_days(days)) == days


@quick
@given(st.datetimes())
def test_times_are_read_as_they_are_written(moment: Any) -> None:
    text = moment.strftime("%Y-%m-%dT%H:%M:%S").rjust(19, "0") + f".{moment.microsecond:06d}Z"
    found = any_timestamp(text)
    assert found is not None
    assert any_timestamp(timestamp_text(found)) == found


@quick
@given(st.integers(-(2**53), 2**53))
def test_durations_are_read_as_they_are_written(millis: int) -> None:
    """As exactly as seconds in a float are."""
    nanos = millis // 1000 * 1_000_000
    found = read_duration(duration_text(Duration(nanos)))
    assert found is not None
    assert abs(found - nanos) <= 1 + abs(nanos) / 2**51


expressions = st.recursive(
    st.sampled_from(["1", "2u", "1.5", "'a'", "b'a'", "true", "null", "x", "x.y", "[1]", "{'a': 1}", "-3"]),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*", "==", "<", "&&", "||", "in"]), inner).map(" ".join),
        inner.map(lambda each: f"({each})"),
        inner.map(lambda each: f"!{each}"),
        st.tuples(inner, inner).map(lambda pair: f"[{pair[0]}, {pair[1]}]"),
        st.tuples(inner, inner, inner).map(lambda each: f"({each[0]} ? {each[1]} : {each[2]})"),
        inner.map(lambda each: f"[{each}].all(v, v == {each})"),
        inner.map(lambda each: f"size({each})"),
        inner.map(lambda each: f"x.?y.orValue({each})"),
    ),
    max_leaves=8,
)


@quick
@given(expressions)
def test_what_is_written_is_parsed_and_evaluated_or_refused(text: str) -> None:
    with suppress(InvalidExpression, NotInstantiable, CelError, CostExceeded):
        value(text, x=LiteralMap())


@quick
@given(st.text("abx1.'\"\\()[]{}?:&|!=<>+-*/%, \n`#r", max_size=30))
def test_no_text_crashes_the_parser(text: str) -> None:
    try:
        parse(text, environment().macros)
    except InvalidExpression as invalid:
        assert str(invalid).startswith("ERROR: <input>:")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "1:1: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!'"),
        ("1 +", "1:4: Syntax error: mismatched input '<EOF>' expecting"),
        ("a b", "1:3: Syntax error: extraneous input 'b' expecting <EOF>"),
        ("#", "1:1: Syntax error: token recognition error at: '#'"),
        ("for + 1", "1:1: reserved identifier: for"),
        ("9223372036854775808", "1:1: invalid int literal"),
        ("[1].all(x.y, true)", "1:10: argument must be a simple name"),
        ("has(x)", "1:5: invalid argument to has() macro"),
        ("x.nofunc()", "1:9: undeclared reference to 'nofunc' (in container '')"),
        ("1 + 'a'", "1:3: found no matching overload for '_+_' applied to '(int, string)'"),
        ("[1, 'a']", "1:5: expected type 'int' but found 'string'"),
        ("duration('1d')", "1:10: invalid duration argument"),
        ("'a'.matches('[')", "1:13: invalid matches argument"),
        ("'%d'.format(['a'])", "1:14: error during formatting: decimal clause can only be used on integers"),
        ("'é' + 1", "1:5: found no matching overload"),
    ],
)
def test_faults_are_said_as_an_apiserver_says_them(text: str, said: str) -> None:
    with pytest.raises(InvalidExpression) as caught:
        value(text, x=LiteralMap())
    assert str(caught.value).startswith(f"ERROR: <input>:{said}")


def test_constants_are_computed_when_an_expression_is_compiled() -> None:
    with pytest.raises(NotInstantiable, match="type conversion error from 'string' to 'int'"):
        value("int('x') == 1")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1 / 0", "division by zero"),
        ("1 % 0", "modulus by zero"),
        ("9223372036854775807 + 1", "integer overflow"),
        ("1u - 2u", "unsigned integer overflow"),
        ("[1][5]", "index out of bounds: 5"),
        ("{'a': 1}['b']", "no such key: b"),
        ("x + 1", "no such overload"),
        ("optional.none().value() == 1", "optional.none() dereference"),
        ("'abc'.substring(2, 1)", "invalid substring range. start: 2, end: 1"),
        ("int(dyn(quantity('1')))", "no such overload: int(kubernetes.Quantity)"),
        ("[].min() == 1", "min called on empty list"),
        ("quantity('1' + 'kk')", "unable to parse quantity's suffix"),
    ],
)
def test_errors_are_said_as_cel_go_says_them(text: str, said: str) -> None:
    assert fault(text, x="a") == said


@pytest.mark.parametrize(
    "text",
    ["1 / 0 == 1 || true", "true || 1 / 0 == 1", "[0, 2].exists(v, 4 / v == 2)", "!(1 / 0 == 1 && false)"],
)
def test_what_decides_absorbs_errors(text: str) -> None:
    assert value(text) is True


@pytest.mark.parametrize(
    "text",
    [
        "x.all(a, x.all(b, x.all(c, a + b + c != 'z')))",
        "x.map(a, x.map(b, a + b)).size() > 0",
        "x.distinct().size() > 0",
        "sets.equivalent(x, x)",
        "lists.range(2000000).size() > 0",
        "x.join('').replace('', x.join('').replace('', x.join(''))).size() > 0",
        "x.exists(a, x.join('').matches('(a|b)*(c|d)*(e|f)*z'))",
    ],
)
def test_cost_ends_what_would_take_long(text: str) -> None:
    # From 1.37 on ``lists.range`` has a limit of its own.
    expression = compile_expression(text, environment(36), {"x": list_of(STRING)}, {})
    with pytest.raises(CostExceeded):
        expression.program.evaluate({"x": tuple(f"a{index}" for index in range(2_000))}, LIMIT)


@pytest.mark.parametrize(
    "text",
    ["(" * 200 + "1" + ")" * 200, "[" * 200 + "]" * 200, "!" * 5_000 + "true", " + ".join(["1"] * 5_000)],
)
def test_depth_is_bounded(text: str) -> None:
    try:
        assert value(text) is not None
    except (InvalidExpression, NotInstantiable, CelError) as error:
        assert f"limit exceeded: {MOST_DEPTH}" in str(error)


def test_size_is_bounded() -> None:
    with pytest.raises(InvalidExpression, match="expression code point size exceeds limit"):
        value("1" * (MOST_CHARACTERS + 1))


@pytest.mark.parametrize(
    "text", ["int(x)", "uint(x)", "duration(x + 's')", "quantity(x)", "semver(x + '.0.0')"]
)
def test_numbers_of_many_digits_are_refused(text: str) -> None:
    with pytest.raises(CelError):
        value(text, x="9" * 10_000)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("timestamp('2021-06-15T23:30:00Z').getHours('America/New_York')", 19),
        ("timestamp('2021-06-15T23:30:00Z').getDate('+02:30')", 16),
        ("timestamp('2020-12-31T00:00:00Z').getDayOfYear()", 365),
        ("timestamp('1969-12-31T23:59:59Z').getDayOfWeek()", 3),
        ("string(timestamp('2020-01-01T00:00:00.5+05:00'))", "2020-01-01T00:00:00.5+05:00"),
        ("string(duration('1h1ms'))", "3600.001s"),
        ("string(1e21)", "1e+21"),
        ("'%f %e'.format([1234567.891, 0.00012])", "1,234,567.891000 1.200000×10⁻⁰⁴"),
        ("url('https://h/a b?k=v%26w&k=2').getEscapedPath()", "/a%20b"),
        ("cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16')", True),
        ("[3, 1, 2].sortBy(v, -v)", (3, 2, 1)),
        ("{'a': 1, 'b': 2}.transformList(k, v, v > 1, k)", ("b",)),
        ("[?optional.of(1), ?optional.none()]", (1,)),
        ("optional.of({'a': [1]}).?a[?0].orValue(2)", 1),
        ("strings.quote('a\\nb\"')", '"a\\nb\\""'),
    ],
)
def test_libraries(text: str, wanted: Any) -> None:
    assert value(text) == wanted


def test_a_zone_that_is_not_known_is_named() -> None:
    assert fault("timestamp(0).getHours('No/Where')") == "unknown time zone No/Where"


@pytest.mark.parametrize(("minor", "found"), [(36, [9, -1, 9, -1]), (37, [2, "index out of range: -1"] * 2)])
def test_empty_text_is_found_within_the_text_since_1_37(minor: int, found: list[Any]) -> None:
    """cel-go 0.26 and 0.29, ext/strings.go."""

    def answer(text: str) -> Any:
        program = compile_expression(text, environment(minor), {}, {}).program
        try:
            return program.evaluate({}, LIMIT)[0]
        except CelError as error:
            return str(error)

    calls = (
        "'bb'.indexOf('', 9)",
        "'bb'.indexOf('', -1)",
        "'bb'.lastIndexOf('', 9)",
        "'bb'.lastIndexOf('', -1)",
    )
    assert [answer(text) for text in calls] == found
    assert answer("'abcb'.lastIndexOf('b', 2)") == answer("'abcb'.indexOf('b', 1)") == 1


def test_number_becomes_a_duration_before_1_37() -> None:
    """cel-go 0.29 has no int64_to_duration."""
    assert compile_expression("duration(1)", environment(36), {}, {}).program.evaluate({}, LIMIT)
    with pytest.raises(InvalidExpression, match="no matching overload for 'duration' applied to '\\(int\\)'"):
        compile_expression("duration(1)", environment(37), {}, {})


@pytest.mark.parametrize(
    ("key", "of"),
    [
        ("b'a'", "types.Bytes"),
        ("null", "types.Null"),
        ("[1]", "*types.baseList"),
        ("{1: 2}", "*types.baseMap"),
    ],
)
def test_keys_of_other_types_are_refused(key: str, of: str) -> None:
    """cel-go, interpreter/attributes.go: when the program is made, and when it runs."""
    with pytest.raises(NotInstantiable, match=f"invalid qualifier type: {re.escape(of)}"):
        value(f"{{}}[{key}]")
    with pytest.raises(NotInstantiable, match=f"invalid qualifier type: {re.escape(of)}"):
        value(f"[1][dyn({key})]")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("dyn({1u: 2})[1]", 2),
        ("dyn({1: 2})[1u]", 2),
        ("dyn({1: 2})[1.0]", 2),
        ("{dyn(1): 1, dyn(1u): 2}[1]", 1),
        ("{dyn(1): 1, dyn(1.0): 2}[1.0]", 2),
        ("1 in {dyn(1.0): 1}", False),
        ("{1: 2} == {dyn(1.0): 2}", False),
        ("dyn({1: 2}) == dyn({1u: 2})", True),
        ("dyn(type('')).matches('str')", True),
        ("dyn(type('')).find('str')", "str"),
        ("dyn(optional.of('a')).matches('a')", True),
    ],
)
def test_values_meet_as_in_cel_go(text: str, found: Any) -> None:
    """types/map.go, refValMapAccessor; interpreter/optimizations.go. Recorded of apiextensions 0.37.2."""
    assert value(text) == found


def test_formats_are_in_the_words_of_metadata() -> None:

    def said(form: str, text: str) -> str:
        rule = f"format.named('{form}').value().validate('{text}').value()[0]"
        return str(compile_expression(rule, environment(), {}, {}).program.evaluate({}, LIMIT)[0])

    assert "a valid label key must" in said("qualifiedName", "a/b/c")
    assert "63 bytes" in said("qualifiedName", "a" * 64)
    assert "63 bytes" in said("labelValue", "a" * 64)


def test_what_an_any_holds_is_not_decided() -> None:
    with pytest.raises(UndecidedRule, match="is not read here"):
        value("google.protobuf.Any{type_url: 'a'} == null")


def test_a_pattern_that_is_computed_is_refused_in_other_words() -> None:
    assert fault("dyn(1).matches('x')") == "no such overload"
    assert fault("dyn(1).matches(s)", s="x") == "no such overload: matches"
    assert fault("dyn(1.5).find(s)", s="x") == "no such overload: find(double, string)"
