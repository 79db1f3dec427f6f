"""Releases of Kubernetes whose rules are known, by minor version, and what differs between them as a table.

Verdicts differ by release; what messages say is said as the newest release says it.

Texts that documents of custom resources share are data of their own, by release: ``crd/templates.json``.
"""

from __future__ import annotations

import re
from typing import Any, Final

from specmux_converters.lazy.dataclasses import dataclass

OLDEST: Final = 30
NEWEST: Final = 37
PREVIEW: Final = 38
"""Its rules are read from the source of 0.38.0-beta.0, for servers of it alone. No judge can be built of it:
the module proxy lacks its apiextensions-api and structured-merge-diff v7."""
RELEASES: Final = tuple(f"1.{minor}" for minor in range(OLDEST, NEWEST + 1))


class UnknownRelease(ValueError):
    """A release whose rules are not known."""


def minor_release(release: str | None, *, newest: int = NEWEST) -> int:
    """The minor version in "1.34" or "v1.34"; None is the newest. Raises UnknownRelease."""
    if release is None:
        return NEWEST
    if release.removeprefix("v") not in RELEASES and release != f"1.{newest}":
        raise UnknownRelease(f'no release "{release}": give one of 1.{OLDEST} to 1.{NEWEST}')
    return int(release.rpartition(".")[2])


def release_in(version: Any) -> str | None:
    """ "v1.34" of a version ("v1.34.4-eks-1"); None if it is no release of Kubernetes."""
    match = re.match(r"v?(1\.\d{1,3})(?!\d)", version) if isinstance(version, str) else None
    return None if match is None else f"v{match[1]}"


def nearest_minor(version: Any, *, newest: int = NEWEST) -> int:
    """The minor version of the known release nearest to a version ("v1.34.4-eks-1"), by default the newest:
    for a version that is no release of Kubernetes."""
    release = release_in(version)
    return NEWEST if release is None else min(max(int(release.removeprefix("v1.")), OLDEST), newest)


def newer_note(version: Any) -> str | None:
    """The note for a release that is newer than the rules known here."""
    release = release_in(version)
    if release is None or int(release.removeprefix("v1.")) <= NEWEST:
        return None
    return (
        f"checked by the rules of Kubernetes 1.{PREVIEW}, the newest that is known, and from its source "
        f"alone: the cluster is {release}"
    )


@dataclass(frozen=True, slots=True)
class ReleaseDifference:
    """``since``: the first minor release that does it; ``until``: the first that no longer does."""

    where: str
    what: str
    since: int
    until: int = PREVIEW + 1

    def is_in(self, minor: int) -> bool:
        return self.since <= minor < self.until


_CRD: Final = "documents of custom resources"
_SCHEMA: Final = "schemas of custom resources"
_META: Final = "metadata"
_CEL: Final = "rules"

EMPTY_SELECTABLE_FIELDS: Final = ReleaseDifference(
    _CRD, "a version without selectable fields publishes an empty list (builder.go)", 32, 33
)
EXAMPLES: Final = ReleaseDifference(_CRD, "example and externalDocs are published (kubeopenapi.go)", 36)
NULLABLE: Final = ReleaseDifference(
    "merge schemas", "a type reference says whether null is allowed (structured-merge-diff 6.4)", 37
)

NAME_FORMATS: Final = ReleaseDifference(
    _SCHEMA, "k8s-short-name and k8s-long-name are checked: introduced in 1.34, as the release after it", 35
)
NUMERIC_FORMATS: Final = ReleaseDifference(
    _SCHEMA, "int32, int64, float and double limit numbers; a string's format counts for strings alone", 36
)
NEARLY_WHOLE: Final = ReleaseDifference(
    _SCHEMA, "a number near an integer is whole from below and below zero, too (swag 0.27)", 37
)

LEAST_TYPED: Final = ReleaseDifference(
    _SCHEMA, "minLength, minItems and minProperties are Too short and Too few (validation.go)", PREVIEW
)

RELAXED_SERVICES: Final = ReleaseDifference(_META, "a Service's name may begin with a digit (KEP-5311)", 36)


SHORT_NAMES: Final = ReleaseDifference(_CEL, "names of objects are known to be short: cost", 37)
BOUNDED_INT_OR_STRING: Final = ReleaseDifference(
    _CEL, "maxLength bounds an int-or-string: cost (apiserver, pkg/cel/common/schemas.go)", 34
)
CEL_ADDRESSES: Final = ReleaseDifference(_CEL, "ip and cidr", 30)
CEL_KEYWORD_FIELDS: Final = ReleaseDifference(
    _CEL, "a field named like a word of CEL is selected by its bare name, too: self.namespace", 31
)
CEL_FORMATS: Final = ReleaseDifference(_CEL, "format", 31)
CEL_VALUE_EQUALITY: Final = ReleaseDifference(
    _CEL, "== of values of libraries (URL, quantity, IP …) has a bound: cost (pkg/cel/library/cost.go)", 32
)
CEL_TWO_VARIABLES: Final = ReleaseDifference(_CEL, "comprehensions with two variables", 32)
CEL_VERSIONS: Final = ReleaseDifference(_CEL, "semver", 33)
CEL_OPTIONAL_LISTS: Final = ReleaseDifference(_CEL, "first, last, unwrapOpt (cel-go)", 33)
CEL_EXTENDED_LISTS: Final = ReleaseDifference(_CEL, "flatten, slice, sort, range and others", 34)
CEL_INCLUDES: Final = ReleaseDifference(_CEL, "includes of lists", 37)
CEL_MASKS: Final = ReleaseDifference(_CEL, "isMask of cidr (pkg/cel/library/cidr.go)", PREVIEW)
CEL_EMPTY_PARTS: Final = ReleaseDifference(
    _CEL, "indexOf and lastIndexOf find an empty text within the text (cel-go 0.29)", 37
)
CEL_DURATIONS_OF_INTS: Final = ReleaseDifference(_CEL, "duration takes an int (until cel-go 0.29)", 30, 37)
CEL_RANGE_SIZES: Final = ReleaseDifference(
    _CEL, "lists.range refuses sizes below zero and above a million (cel-go 0.29)", 37
)
CEL_OPTIONAL_VALUES: Final = ReleaseDifference(
    _CEL, "a field of an optional has its type: null is none, names are escaped (cel-go 0.29)", 37
)

DIFFERENCES: Final = tuple(each for each in tuple(globals().values()) if isinstance(each, ReleaseDifference))
