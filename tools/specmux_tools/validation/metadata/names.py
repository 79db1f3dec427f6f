"""Check names with Kubernetes' texts (apimachinery, pkg/util/validation/validation.go).

Each function of a name returns the faults in order; empty for a valid name. Permitted names of objects of
built-in kinds are a table (pkg/apis/*/validation of Kubernetes): every object's name is a segment of a path,
these are stricter. Recorded of kube-apiserver 1.34.4 and 1.37.2
(``tests/tools/validation/recorded/names.jsonl``).

A name that an apiserver generates from ``generateName``, before it validates an object, has five random
characters (apiserver, pkg/storage/names/generate.go). Rules see the name, so an object is judged with
several: together they have each of the 27 characters at each of the five places, which tells rules apart that
accept some suffixes only. What a rule says of every one is the verdict; the rest is not judged, as the next
apiserver may decide otherwise."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final

from specmux_converters.go.text import size_of
from specmux_converters.lazy.patterns import pattern
from specmux_converters.releases import RELAXED_SERVICES
from specmux_tools.validation.report import Check, Severity, Violation

_QUALIFIED: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_QUALIFIED_TEXT: Final = (
    "must consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character"
)
_LABEL_VALUE_TEXT: Final = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character"
)
_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_LABEL_TEXT: Final = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
    "and must start and end with an alphanumeric character"
)
_SUBDOMAIN: Final = rf"{_LABEL}(\.{_LABEL})*"
_SUBDOMAIN_TEXT: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
    "and must start and end with an alphanumeric character"
)
_LABEL_1035: Final = "[a-z]([-a-z0-9]*[a-z0-9])?"
_LABEL_1035_TEXT: Final = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic "
    "character, and end with an alphanumeric character"
)
_MOST_LABEL: Final = 63
_MOST_SUBDOMAIN: Final = 253
_ILLEGAL_PARTS: Final = ("/", "%")
STANDARD_FINALIZERS: Final = frozenset(("kubernetes", "orphan", "foregroundDeletion"))
_ILLEGAL_NAMES: Final = (".", "..")

_QUALIFIED_PATTERN: Final = pattern(_QUALIFIED)
_LABEL_PATTERN: Final = pattern(_LABEL)
# Equivalent to the published expression, without backtracking.
_SUBDOMAIN_PATTERN: Final = pattern(r"[a-z0-9](?:[-a-z0-9]*)(?:\.[a-z0-9][-a-z0-9]*)*")
_LABEL_1035_PATTERN: Final = re.compile(_LABEL_1035)
_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
"""Without vowels, and without digits that look like them (apimachinery, pkg/util/rand)."""
_LENGTH: Final = 5
_MOST_PREFIX: Final = 63 - _LENGTH
SHOWN_SUFFIX: Final = "x" * _LENGTH
_SUFFIXES: Final = (
    SHOWN_SUFFIX,
    *((_ALPHABET[start:] + _ALPHABET)[:_LENGTH] for start in range(len(_ALPHABET))),
)


class NameRule(StrEnum):
    SUBDOMAIN = "subdomain"
    """RFC 1123."""
    LABEL = "label"
    """RFC 1123, without dots."""
    LABEL_1035 = "label-1035"
    """RFC 1035: begins with a letter."""
    PATH_SEGMENT = "path-segment"


_TABLE: Final = """
label         core Namespace
label         apps StatefulSet
subdomain     core ConfigMap Endpoints Event LimitRange Node PersistentVolume PersistentVolumeClaim Pod
subdomain     core PodTemplate ReplicationController ResourceQuota Secret ServiceAccount
subdomain     admissionregistration.k8s.io *
subdomain     apps *
subdomain     autoscaling *
subdomain     batch *
subdomain     coordination.k8s.io Lease
subdomain     discovery.k8s.io *
subdomain     events.k8s.io *
subdomain     flowcontrol.apiserver.k8s.io *
subdomain     networking.k8s.io Ingress IngressClass NetworkPolicy ServiceCIDR
subdomain     node.k8s.io *
subdomain     resource.k8s.io *
subdomain     scheduling.k8s.io PriorityClass
subdomain     storage.k8s.io *
"""
"""Rule, group, kinds; an asterisk stands for the other kinds of the group."""


_MOST: Final[Mapping[tuple[str, str], int]] = {("batch", "CronJob"): 52}
"""Characters of the names of objects that others are named after."""
_RULES: Final = MappingProxyType(
    {
        (group.replace("core", ""), kind): NameRule(rule)
        for rule, group, *kinds in map(str.split, _TABLE.strip().splitlines())
        for kind in kinds
    }
)


def _shape_text(text: str, pattern: str, *examples: str) -> str:
    listed = " or ".join(f"'{example}', " for example in examples)
    return f"{text} (e.g. {listed}regex used for validation is '{pattern}')"


_QUALIFIED_SHAPE: Final = _shape_text(_QUALIFIED_TEXT, _QUALIFIED, "MyName", "my.name", "123-abc")
_LABEL_VALUE_SHAPE: Final = _shape_text(_LABEL_VALUE_TEXT, f"({_QUALIFIED})?", "MyValue", "my_value", "12345")


def qualified_name_faults(value: str) -> list[str]:
    """Faults of keys of labels and annotations, and of finalizers."""
    prefix, slash, name = value.partition("/")
    if "/" in name:
        example = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return [f"a valid label key {_QUALIFIED_SHAPE} {example}"]
    faults = []
    if slash:
        faults = [f"prefix part {fault}" for fault in subdomain_faults(prefix, "bytes")]
        faults = faults if prefix else ["prefix part must be non-empty"]
    else:
        name = value
    if not name:
        faults.append("name part must be non-empty")
    elif size_of(name) > _MOST_LABEL:
        faults.append(f"name part {_too_long(_MOST_LABEL, 'bytes')}")
    if not _QUALIFIED_PATTERN.fullmatch(name):
        faults.append(f"name part {_QUALIFIED_SHAPE}")
    return faults


def label_value_faults(value: str) -> list[str]:
    faults = [_too_long(_MOST_LABEL, "bytes")] if size_of(value) > _MOST_LABEL else []
    if value and not _QUALIFIED_PATTERN.fullmatch(value):
        faults.append(_LABEL_VALUE_SHAPE)
    return faults


def label_faults(value: str) -> list[str]:
    """RFC 1123: for namespaces."""
    faults = [_too_long(_MOST_LABEL)] if size_of(value) > _MOST_LABEL else []
    if not _LABEL_PATTERN.fullmatch(value):
        is_subdomain = _is_subdomain(value)
        shape = _shape_text(_LABEL_TEXT, _LABEL, "my-name", "123-abc")
        faults.append("must not contain dots" if is_subdomain else shape)
    return faults


def subdomain_faults(value: str, unit: str = "characters") -> list[str]:
    """RFC 1123: for most objects."""
    faults = [_too_long(_MOST_SUBDOMAIN, unit)] if size_of(value) > _MOST_SUBDOMAIN else []
    if not _is_subdomain(value):
        faults.append(_shape_text(_SUBDOMAIN_TEXT, _SUBDOMAIN, "example.com"))
    return faults


def label_1035_faults(value: str) -> list[str]:
    """RFC 1035: for kinds, in lower case."""
    faults = [_too_long(_MOST_LABEL)] if size_of(value) > _MOST_LABEL else []
    if not _LABEL_1035_PATTERN.fullmatch(value):
        faults.append(_shape_text(_LABEL_1035_TEXT, _LABEL_1035, "my-name", "abc-123"))
    return faults


def path_segment_faults(value: str, *, is_prefix: bool = False) -> list[str]:
    """Faults of the names of objects of unknown kinds (pkg/api/validation/path)."""
    if value in _ILLEGAL_NAMES and not is_prefix:
        return [f"may not be '{value}'"]
    return [f"may not contain '{part}'" for part in _ILLEGAL_PARTS if part in value]


def without_trailing_dash(prefix: str) -> str:
    """The checked form of a generateName (pkg/api/validation/generic.go, maskTrailingDash)."""
    return prefix[:-2] + "a" if len(prefix) > 1 and prefix.endswith("-") else prefix


def _is_subdomain(value: str) -> bool:
    return bool(_SUBDOMAIN_PATTERN.fullmatch(value)) and not value.endswith("-") and "-." not in value


def _too_long(most: int, unit: str = "characters") -> str:
    return f"must be no more than {most} {unit}"


def generated_name(metadata: Mapping[str, Any], suffix: str = SHOWN_SUFFIX) -> str:
    """The name with that suffix; "" for metadata of which none is generated."""
    prefix = metadata.get("generateName")
    if metadata.get("name") or not isinstance(prefix, str) or not prefix:
        return ""
    return prefix[:_MOST_PREFIX] + suffix


def judge_with_names(
    metadata: Mapping[str, Any], judge: Callable[[str], list[Violation]], *, reads_name: bool
) -> list[Violation]:
    """The violations that ``judge`` finds with a generated name, or with "" where none is generated.
    ``reads_name``: whether the name can matter."""
    name = generated_name(metadata)
    found = judge(name)
    if not name or not reads_name:
        return found
    others = [(suffix, judge(generated_name(metadata, suffix))) for suffix in _SUFFIXES[1:]]
    if all(_has_error(each) == _has_error(found) for _, each in others):
        return found
    common = set(_keys(found, SHOWN_SUFFIX)).intersection(*(_keys(each, suffix) for suffix, each in others))
    differing = next(
        violation
        for suffix, each in ((SHOWN_SUFFIX, found), *others)
        for key, violation in zip(_keys(each, suffix), each, strict=True)
        if key not in common and violation.severity is Severity.ERROR
    )
    text = f"the random end of the generated name decides whether this is refused: {differing.message}"
    note = Violation(Severity.NOTE, Check.NOT_CHECKED, ("metadata", "generateName"), text)
    return [
        *(each for key, each in zip(_keys(found, SHOWN_SUFFIX), found, strict=True) if key in common),
        note,
    ]


def _has_error(violations: Iterable[Violation]) -> bool:
    return any(each.severity is Severity.ERROR for each in violations)


def _keys(violations: Iterable[Violation], suffix: str) -> list[tuple[Any, ...]]:
    return [(each.severity, each.check, each.path, each.message.replace(suffix, "")) for each in violations]


def name_rule(group: str, kind: str, minor: int) -> NameRule:
    if (group, kind) == ("", "Service"):
        return NameRule.LABEL if RELAXED_SERVICES.is_in(minor) else NameRule.LABEL_1035
    return _RULES.get((group, kind)) or _RULES.get((group, "*")) or NameRule.PATH_SEGMENT


def length_faults(group: str, kind: str, name: str) -> list[str]:
    """Check the length of a name that is created."""
    most = _MOST.get((group, kind))
    return [f"must be no more than {most} characters"] if most is not None and len(name) > most else []


def name_faults(rule: NameRule, value: str, *, is_prefix: bool = False) -> list[str]:
    """Check a name, or a generateName."""
    if rule is NameRule.PATH_SEGMENT:
        return path_segment_faults(value, is_prefix=is_prefix)
    value = without_trailing_dash(value) if is_prefix else value
    match rule:
        case NameRule.SUBDOMAIN:
            return subdomain_faults(value)
        case NameRule.LABEL:
            return label_faults(value)
        case NameRule.LABEL_1035:
            return label_1035_faults(value)
