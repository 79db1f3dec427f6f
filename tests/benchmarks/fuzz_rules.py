"""Rules of a grammar of its own beside ``go/cel``: verdicts, texts, faults and estimated costs.

Usage: fuzz_rules.py JUDGE N SEED [OUT]. Prints how many are equal; OUT has the others, one a line.
"""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import orjson

from specmux_tools.validation.report import Check
from specmux_tools.validation.rules.checking import MISSING, check_rules
from specmux_tools.validation.rules.compiled_rule import RuleCompiler
from specmux_tools.validation.rules.rule_faults import expression_cost
from specmux_tools.validation.rules.rule_tree import rule_tree

HEAD = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}}
SHORT = {"type": "string", "maxLength": 64}
ITEM_FIELDS = {"k": SHORT, "p": {"type": "integer"}, "v": SHORT}
ITEM = {"type": "object", "required": ["k"], "properties": ITEM_FIELDS}


def listed(items: Any, **more: Any) -> dict[str, Any]:
    return {"type": "array", "maxItems": 8, "items": items, **more}


def mapped(values: Any) -> dict[str, Any]:
    return {"type": "object", "maxProperties": 8, "additionalProperties": values}


SET, KEYS = "x-kubernetes-list-type", "x-kubernetes-list-map-keys"
FIELDS = {
    "s": SHORT,
    "i": {"type": "integer"},
    "n": {"type": "number"},
    "b": {"type": "boolean"},
    "e": {"type": "string", "enum": ["a", "bb"]},
    "l": listed(SHORT),
    "set": listed(SHORT, **{SET: "set"}),
    "ints": listed({"type": "integer"}, **{SET: "set"}),
    "map1": listed(ITEM, **{SET: "map", KEYS: ["k"]}),
    "map2": listed({**ITEM, "required": ["k", "p"]}, **{SET: "map", KEYS: ["k", "p"]}),
    "sets": listed(listed(SHORT, **{SET: "set"})),
    "m": mapped(SHORT),
    "mm": mapped(mapped({"type": "integer"})),
    "ml": mapped(listed(SHORT)),
    "ios": {"x-kubernetes-int-or-string": True},
    "iosl": listed({"x-kubernetes-int-or-string": True}),
    "d": {"type": "string", "format": "duration"},
    "t": {"type": "string", "format": "date-time"},
    "day": {"type": "string", "format": "date"},
    "by": {"type": "string", "format": "byte", "maxLength": 64},
    "nul": {"type": "string", "nullable": True, "maxLength": 64},
    "nulo": {"type": "object", "nullable": True, "properties": {"a": SHORT}},
    "emb": {
        "type": "object",
        "x-kubernetes-embedded-resource": True,
        "x-kubernetes-preserve-unknown-fields": True,
    },
    "o": {
        "type": "object",
        "properties": {"a-b": SHORT, "if": SHORT, "c.d": {"type": "integer"}, "x__y": SHORT},
    },
    "dflt": {"type": "string", "default": "dd", "maxLength": 64},
}
VALUES: dict[str, list[Any]] = {
    "s": ["abc", "", "é😀", " a\t", "a,b,,c", "A-Z", "10.0.0.1", "1Gi", "x" * 40, "\u00a0ß", "1.2.3", "PT1H"],
    "i": [0, 1, -1, 7, 2**31, 2**53 + 1, 2**63 - 1, -(2**63)],
    "n": [0, 0.5, 1, -2.5, 1e19, 1e300, 0.1, 123456789.123],
    "b": [True, False],
    "e": ["a", "bb"],
    "l": [[], ["a"], ["b", "a", "a"], ["é", "z", ""], ["10", "9"]],
    "set": [[], ["a", "b"], ["b", "a"], ["c", "é"]],
    "ints": [[], [1, 2], [2, 1, 3], [-5, 2**63 - 1]],
    "map1": [[], [{"k": "a", "p": 1}], [{"k": "b"}, {"k": "a", "v": "x"}], [{"k": "a"}, {"k": "b"}]],
    "map2": [
        [],
        [{"k": "a", "p": 1}, {"k": "a", "p": 2, "v": "y"}],
        [{"k": "a", "p": 2}, {"k": "a", "p": 1}],
    ],
    "sets": [[], [["a", "b"], ["b", "a"]], [["a"], []]],
    "m": [{}, {"a": "x"}, {"b": "2", "a": "1"}, {"a/b": "v", "": "e"}],
    "mm": [{}, {"a": {"x": 1}}, {"a": {}, "b": {"y": 2, "x": 1}}],
    "ml": [{}, {"a": ["x", "y"]}, {"a": [], "b": ["a"]}],
    "ios": [0, 1, "1", "50%", "x"],
    "iosl": [[], [1, "1"], ["a", 2]],
    "d": ["1h", "0s", "90m30s", "1h0m0.5s", "-3s", "100ns"],
    "t": ["2020-02-29T23:59:59Z", "1969-12-31T23:59:59.999Z", "2021-06-15T12:30:45.123456789+02:00"],
    "day": ["2020-02-29", "1970-01-01"],
    "by": ["aGk=", "/+8=", "4pyT"],
    "nul": [None, "x"],
    "nulo": [None, {}, {"a": "y"}],
    "emb": [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x", "labels": {"a": "b"}}, "z": [1]}],
    "o": [{}, {"a-b": "x", "if": "y"}, {"c.d": 3, "x__y": "u"}],
    "dflt": ["dd", "x"],
}
ATOMS = {
    "S": """self.s|self.e|self.nul|self.dflt|self.emb.kind|self.emb.metadata.name|self.o.a__dash__b|
self.o.__if__|
self.o.x__underscores__y|self.m['a']|self.m["b"]|self.l[0]|self.set[1]|self.map1[0].k|self.map2[1].v|
self.ml['a'][0]|
self.nulo.a|'abc'|''|'é'|'a,b'|'10.0.0.1'|b'a'|r'\\d'|'1Gi'|string(self.b)|string(self.by)|
string(self.ios)""",
    "I": """self.i|self.ints[0]|self.map1[0].p|self.o.c__dot__d|self.mm['a']['x']|0|1|-1|3|
9223372036854775807|0x10|
int(self.s)|int(self.n)|int(self.t)|int('7')|2u|uint(self.i)|size(self.s)|size(self.m)|size(self.by)|
self.iosl.size()""",
    "D": "self.n|1.0|0.0|-0.5|1e3|double(self.i)|double(self.s)|double('NaN')|double('inf')|0.1+0.2",
    "L": """self.l|self.set|(self.set + self.l)|(self.l + self.set)|(self.set + ['a','zz'])|
(self.set + self.set)|['a','b']|
self.s.split(',')|self.map1.map(x, x.k)|self.sets[0]|self.ml['a']|[]|self.m.map(k, k).sort()|
(self.sets[0] + ['q'])|
self.map2.filter(x, x.p > 1).map(x, x.k)|self.l.sort()|self.set.distinct()|self.l.reverse()|
self.sets.flatten()|
self.l.slice(0, 1)|self.l.transformList(i, v, v + string(i))|lists.range(2).map(x, 'a')""",
    "N": """self.ints|[1,2]|(self.ints + [2, 9])|([9, 1] + self.ints)|
self.map1.filter(x, has(x.p)).map(x, x.p)|
lists.range(3)|self.ints.map(x, x + 1)|self.mm.transformList(k, v, size(v))|[]|self.ints.sort()""",
    "M": "self.m|{}|{'a': 'x'}|self.m.transformMap(k, v, v + 'q')|self.m.transformMapEntry(k, v, {v: k})",
    "O": """self.map1|self.map2|(self.map1 + [{'k': 'a', 'p': 9}])|(self.map1 + self.map1)|
(self.map2 + [{'k': 'a', 'p': 2, 'v': 'n'}])|self.map1.filter(x, x.k != 'b')|[{'k': 'b'}, {'k': 'a'}]""",
    "T": """self.t|self.day|timestamp('2020-01-01T00:00:00Z')|timestamp(0)|(self.t + self.d)|
(self.t - self.d)|timestamp(self.i)|
timestamp(self.s)|timestamp('9999-12-31T23:59:59Z')|(timestamp('9999-12-31T23:59:59Z') + self.d)""",
    "U": """self.d|duration('1h')|duration('-1.5s')|(self.t - self.day)|(self.d + self.d)|
(self.d - duration('1h'))|duration(self.s)|
(self.day - timestamp('0001-01-01T00:00:00Z'))""",
    "Q": """quantity('1Gi')|quantity('500m')|quantity(self.s)|quantity('-1')|
quantity('1e3').add(quantity('1k'))|quantity('2').sub(3)|
quantity('0.1').add(1)|quantity('1.5Mi')|quantity('9223372036854775807').add(1)|
quantity('1E').sub(quantity('1m'))""",
    "P": """ip('10.0.0.1')|ip('::1')|ip('fe80::1')|ip(self.s)|cidr('10.0.0.0/8').ip()|ip('2001:db8::a')|
ip('224.0.0.251')"""
    "",
    "C": """cidr('10.0.0.0/8')|cidr('10.1.2.3/16')|cidr('::/0')|cidr(self.s)|cidr('2001:db8::/32')|
cidr('10.1.2.3/16').masked()"""
    "",
    "V": """semver('1.2.3')|semver('1.2.3-rc.1+b')|semver(self.s)|semver('v1.2', true)|
semver('01.2', true)|semver(self.s, true)"""
    "",
    "W": """url('https://u@a.b:80/p%20q?x=1&x=2#f')|url('/a?b')|url(self.s)|url('http://[::1]:9/')|
url('mailto:a@b')"""
    "",
    "X": """self.?s|self.?nul|self.m[?'a']|self.l[?0]|self.nulo.?a|self.?o.?__if__|optional.of(self.s)|
optional.none()|
optional.ofNonZeroValue(self.s)|self.?s.or(self.?nul)|self.?s.optMap(x, x + 'z')|
self.?s.optFlatMap(x, self.m[?x])|
self.l.first()|self.set.last()|[?self.?s][?0]|{?'a': self.?nul}[?'a']|self.?mm.a.?x.optMap(x, string(x))""",
    "F": """'dns1123Label'|'dns1123Subdomain'|'dns1035Label'|'dns1035LabelPrefix'|'qualifiedName'|
'labelValue'|'uri'|'uuid'|'byte'|'date'|
'datetime'|'dns1123LabelPrefix'|'zz'""",
}
FORMS = {
    "S": """{S} + {S}|{B} ? {S} : {S}|{L}.join({S})|{L}[{I}]|{S}.substring({I})|{S}.substring({I}, {I})|
{S}.charAt({I})|{S}.replace({S}, {S})|
{S}.replace({S}, {S}, {I})|{S}.lowerAscii()|{S}.upperAscii()|{S}.trim()|{S}.reverse()|strings.quote({S})|
string({I})|string({D})|
string({T})|string({U})|string({P})|string({C})|string({Q})|{X}.orValue('zz')|{X}.value()|{S}.find('[a-z]+')|
'%s|%s'.format([{A}, {A}])|'%d %x'.format([{I}, {I}])|'%f %e'.format([{D}, {D}])|'%.2f%%'.format([{D}])|
'%b %o %X'.format([{I}, {I}, {S}])|
{W}.getHost()|{W}.getScheme()|{W}.getEscapedPath()|{W}.getPort()|{W}.getHostname()|string(type({A}))|
cel.bind(v, {S}, v + v)|
format.named({F}).value().validate({S}).orValue([]).join('+')|dyn({S})|string(bytes({S}))|{L}.max()|
{L}.min()|{M}[{S}]|{S}.format([{A}])""",
    "I": """{I} + {I}|{I} - {I}|{I} * {I}|{I} / {I}|{I} % {I}|-({I})|{B} ? {I} : {I}|size({S})|size({L})|
{S}.indexOf({S})|{S}.lastIndexOf({S})|
{S}.indexOf({S}, {I})|{S}.lastIndexOf({S}, {I})|{L}.indexOf({S})|{L}.lastIndexOf({S})|{N}.sum()|{N}.min()|
{N}.max()|{N}[{I}]|int({D})|
{Q}.sign()|{Q}.asInteger()|{Q}.compareTo({Q})|{P}.family()|{C}.prefixLength()|{V}.major()|{V}.minor()|
{V}.patch()|{V}.compareTo({V})|
{T}.getFullYear()|{T}.getMonth('Europe/Berlin')|{T}.getDayOfYear('-08:00')|{T}.getHours('Asia/Kolkata')|
{T}.getDayOfWeek()|{T}.getMilliseconds()|
{U}.getSeconds()|{U}.getMilliseconds()|{U}.getHours()|{U}.getMinutes()|int({T})|int({S})|size({M})|
{O}.size()|size(bytes({S}))""",
    "D": """{D} + {D}|{D} * {D}|{D} / {D}|-({D})|double({I})|{Q}.asApproximateFloat()|
double(string({D}))|[{D}, {D}].sum()"""
    "",
    "L": """{L} + {L}|{L}.filter(x, x {R} {S})|{L}.map(x, x + {S})|{L}.map(x, x != {S}, x)|{S}.split({S})|
{S}.split({S}, {I})|
{S}.findAll('[a-z]')|{S}.findAll('.', {I})|{L}.distinct()|{L}.sort()|{L}.reverse()|{L}.slice({I}, {I})|
{L}.sortBy(x, size(x))|
{B} ? {L} : {L}|[{L}, {L}].flatten()|[[{L}], [{L}]].flatten(2)[0]|{M}.map(k, k).sort()|{O}.map(x, x.k)|
{W}.getQuery()['x']|{X}.optMap(x, [x]).orValue([])|
{O}.sortBy(x, x.k).map(x, x.k)|{L}.transformList(i, v, i > 0, v)""",
    "N": """{N} + {N}|{N}.map(x, x + {I})|{N}.filter(x, x {R} {I})|[{I}, {I}]|{N}.sort()|{N}.distinct()|
{L}.map(x, size(x))|{N}.reverse()""",
    "B": """{S} {R} {S}|{I} {R} {I}|{I} {R} {D}|{D} {R} {D}|{L} == {L}|{L} != {L}|{N} == {N}|{M} == {M}|
{O} == {O}|{O} != {O}|{T} {R} {T}|{U} {R} {U}|
{Q} == {Q}|{P} == {P}|{C} == {C}|{V} == {V}|{W} == {W}|{X} == {X}|{X}.hasValue()|!({B})|{B} && {B}|
{B} || {B}|{B} ? {B} : {B}|{S} in {L}|
{I} in {N}|{S} in {M}|{L}.all(x, x {R} {S})|{L}.exists(x, x {R} {S})|{L}.exists_one(x, x {R} {S})|
{L}.existsOne(i, v, v {R} {S} && i < 2)|
{L}.all(i, v, i >= 0 && v != {S})|{M}.exists(k, v, k == v)|{M}.all(k, self.m[k] != {S})|
{O}.exists(x, x.?v.orValue('') == {S})|
sets.contains({L}, {L})|sets.equivalent({L}, {L})|sets.intersects({N}, {N})|{L}.isSorted()|{N}.isSorted()|
{L}.includes({S})|{N}.includes({I})|
{S}.startsWith({S})|{S}.endsWith({S})|{S}.contains({S})|{S}.matches('^[a-z]+')|{S}.matches('(?i)A|\\\\d')|
{S}.matches({S})|
isQuantity({S})|isIP({S})|isCIDR({S})|isURL({S})|isSemver({S})|isSemver({S}, {B})|{Q}.isGreaterThan({Q})|
{Q}.isLessThan({Q})|{Q}.isInteger()|
{P}.isLoopback()|{P}.isUnspecified()|{P}.isGlobalUnicast()|{P}.isLinkLocalUnicast()|
{P}.isLinkLocalMulticast()|ip.isCanonical({S})|
{C}.containsIP({P})|{C}.containsIP({S})|{C}.containsCIDR({C})|{C}.containsCIDR({S})|
{V}.isGreaterThan({V})|{V}.isLessThan({V})|
format.named({F}).hasValue()|format.named({F}).value().validate({S}).hasValue()|
format.dns1123Label().validate({S}) == {X}|
has(self.nul)|self.nul == null|has(self.nulo.a)|self.nulo == null|has(self.o.__if__)|
has(self.emb.metadata.name)|has(self.dflt)|
self.ios == {I}|self.ios == {S}|type(self.ios) == int|self.iosl.exists(x, x == 1)|self.ios in [1]|
bool({S})|dyn({A}) == dyn({A})|
{A} == {A}|type({A}) == type({A})|self == self|self.o == self.o|self.emb == self.emb|
self.sets == [['b', 'a'], ['a']]|
self.sets.exists(x, x == {L})|self.mm == {'a': {'x': 1}}|self.ml.all(k, v, v.size() < 2)|
self.by == bytes({S})|self.by < b'z'|
{M}.exists_one(k, k == {S})|cel.bind(v, {L}, v == v && size(v) < 3)|({B}) == ({B})|
self.map1.all(x, x in {O})|{'a': {I}}.a {R} {I}""",
    "A": "{S}|{I}|{D}|{L}|{N}|{M}|{T}|{U}|{B}|{X}|{Q}|self.by|null|type(1)|self.ios|{O}|self.nulo",
    "R": "==|!=|<|<=|>|>=",
}
OLD = """self.set == oldSelf.set|self.map1 == oldSelf.map1|
self.map1 + oldSelf.map1 == oldSelf.map1 + self.map1|self.i >= oldSelf.i|
oldSelf.l.all(x, x in self.l)|self == oldSelf|has(oldSelf.nul) == has(self.nul)|
self.set + oldSelf.set == self.l|self.emb == oldSelf.emb"""


class RuleGrammar:
    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        names = {*ATOMS, *FORMS}
        self._atoms = {name: self._split(ATOMS.get(name, "")) for name in names}
        self._forms = {name: self._split(FORMS.get(name, "")) for name in names}
        self._atoms["B"] = ["true", "self.b", "self.i > 0", "'a' in self.set", "has(self.s)"]
        self._atoms["R"] = self._forms["R"]
        self._atoms["A"] = [
            "self.s",
            "self.i",
            "self.n",
            "self.l",
            "self.m",
            "self.t",
            "self.d",
            "self.by",
            "null",
        ]

    @staticmethod
    def _split(text: str) -> list[str]:
        marked = (
            text.replace("\n", "").replace("'%s|%s'", "'%s\0%s'").replace("||", "\1").replace("A|", "A\2")
        )
        parts = (each.replace("\0", "|").replace("\1", "||").replace("\2", "|") for each in marked.split("|"))
        return [each for each in parts if each]

    def expression(self, kind: str, depth: int) -> str:
        forms = self._forms[kind] if depth > 0 else []
        text = self.random.choice(forms or self._atoms[kind] or self._forms[kind])
        out, rest = "", text
        while rest:
            before, brace, after = rest.partition("{")
            out += before
            if brace and after[1:2] == "}" and after[0] in self._atoms:
                inner = self.expression(after[0], depth - 1 if self.random.random() < 0.7 else 0)
                out += inner if len(inner) < 12 or after[0] == "R" else f"({inner})"
                rest = after[2:]
            else:
                out, rest = out + brace, after
        return out

    def value(self) -> dict[str, Any]:
        values = {key: self.random.choice(choices) for key, choices in VALUES.items()}
        return {key: value for key, value in values.items() if self.random.random() < 0.96}

    def case(self) -> dict[str, Any]:
        rule: dict[str, Any] = {"rule": self.expression("B", self.random.choice((1, 1, 2, 2, 3)))}
        case: dict[str, Any] = {"value": self.value()}
        chance = self.random.random()
        if chance < 0.15:
            rule["messageExpression"] = self.expression("S", 2)
            rule["rule"] = f"({rule['rule']}) && false"
        elif chance < 0.25:
            rule["rule"] = self.random.choice(self._split(OLD)) + self.random.choice(
                ("", f" || {rule['rule']}")
            )
            case["old"] = self.value()
        return {"rule": rule, **case}


def schema_of(rule: dict[str, Any]) -> dict[str, Any]:
    spec = {"type": "object", "properties": FIELDS, "x-kubernetes-validations": [rule]}
    return {"type": "object", "properties": {"spec": spec}}


def question(case: dict[str, Any]) -> dict[str, Any]:
    found = {"schema": schema_of(case["rule"]), "object": {**HEAD, "spec": case["value"]}}
    return {**found, "old": {**HEAD, "spec": case["old"]}} if "old" in case else found


def nameless(text: str) -> str:
    """Names of types are made anew by each apiserver."""
    return text.split("selfType")[0]


def differences(case: dict[str, Any], answer: dict[str, Any]) -> list[str]:
    """Nothing where both say the same."""
    if "refused" in answer:
        return [f"refused: {answer['refused']}"]
    tree = rule_tree(schema_of(case["rule"]), {})
    compiler = RuleCompiler()
    (rule,) = compiler.rules(tree.properties["spec"])
    (theirs,) = answer["expressions"]
    if nameless(rule.fault) != nameless(theirs.get("fault", "")):
        return [f"fault: {rule.fault!r} instead of {theirs.get('fault')!r}"]
    if rule.fault:
        return []
    found = []
    if nameless(rule.message_fault) != nameless(theirs.get("messageFault", "")):
        found.append(f"message: {rule.message_fault!r} instead of {theirs.get('messageFault')!r}")
    declared = compiler.declarations.of(tree.properties["spec"])
    assert declared is not None
    assert rule.expression is not None
    if (cost := expression_cost(rule.expression, declared)) != theirs["cost"]:
        found.append(f"cost: {cost} instead of {theirs['cost']}")
    value = {"dflt": "dd", **case["value"]}
    old = {**HEAD, "spec": {"dflt": "dd", **case["old"]}} if "old" in case else MISSING
    said = list(check_rules({**HEAD, "spec": value}, tree, compiler, old))
    texts = sorted(each.message for each in said if each.check is Check.RULE)
    notes = [each.message for each in said if each.check is not Check.RULE and not rule.message_fault]
    if texts != answer.get("rules", []) or notes:
        found.append(f"rules: {texts} {notes} instead of {answer.get('rules')}")
    return found


def main(judge: str, count: int, seed: int, out: str = "/dev/null") -> None:
    grammar = RuleGrammar(seed)
    cases = [grammar.case() for _ in range(count)]
    asked = b"".join(orjson.dumps(question(case)) + b"\n" for case in cases)
    answers = subprocess.run([judge], input=asked, stdout=subprocess.PIPE, check=True).stdout.splitlines()
    counts: Counter[str] = Counter()
    with Path(out).open("w") as file:
        for case, line in zip(cases, answers, strict=True):
            answer = orjson.loads(line)
            found = differences(case, answer)
            compiled = not answer.get("expressions", [{}])[0].get("fault")
            counts["equal" if not found else found[0].partition(":")[0]] += 1
            counts["compiled"] += compiled
            counts["failed"] += bool(answer.get("rules"))
            file.writelines(f"{case['rule']}\n    {each}\n    {case['value']}\n" for each in found)
    print(dict(counts))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), *sys.argv[4:])
