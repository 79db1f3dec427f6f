"""CEL libraries and the releases of Kubernetes that know them (apiserver, pkg/cel/environment/base.go).

An apiserver takes into a definition only what the release before it knew, too, so that one can go back; what
is stored it evaluates with all that it knows.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from specmux_converters import releases
from specmux_converters.releases import NEWEST, OLDEST, PREVIEW
from specmux_tools.validation.rules.cel.checking.declarations import Environment
from specmux_tools.validation.rules.cel.libraries.addresses import ADDRESSES, MASKS
from specmux_tools.validation.rules.cel.libraries.authorization import AUTHORIZATION
from specmux_tools.validation.rules.cel.libraries.conversions import CONVERSIONS, DURATIONS_OF_INTS
from specmux_tools.validation.rules.cel.libraries.lists import (
    EXTENDED_LISTS,
    INCLUDES,
    LISTS,
    RANGE_SIZES,
    SETS,
)
from specmux_tools.validation.rules.cel.libraries.messages import WELL_KNOWN
from specmux_tools.validation.rules.cel.libraries.named_formats import NAMED_FORMATS
from specmux_tools.validation.rules.cel.libraries.optional import OPTIONAL, OPTIONAL_LISTS
from specmux_tools.validation.rules.cel.libraries.quantities import QUANTITIES
from specmux_tools.validation.rules.cel.libraries.standard import STANDARD, TWO_VARIABLES
from specmux_tools.validation.rules.cel.libraries.strings import EMPTY_PARTS, REGEX, STRINGS
from specmux_tools.validation.rules.cel.libraries.times import TIMES
from specmux_tools.validation.rules.cel.libraries.urls import URLS
from specmux_tools.validation.rules.cel.libraries.versions import VERSIONS

_ALWAYS: Final = [
    *(STANDARD, WELL_KNOWN, CONVERSIONS, TIMES, URLS, REGEX, LISTS, AUTHORIZATION, OPTIONAL, QUANTITIES),
    *(STRINGS, SETS),
]
_SINCE: Final = (
    (releases.CEL_ADDRESSES, ADDRESSES),
    (releases.CEL_TWO_VARIABLES, TWO_VARIABLES),
    (releases.CEL_VERSIONS, VERSIONS),
    (releases.CEL_EXTENDED_LISTS, EXTENDED_LISTS),
    (releases.CEL_INCLUDES, INCLUDES),
    (releases.CEL_MASKS, MASKS),
    (releases.CEL_FORMATS, NAMED_FORMATS),
)
_WITH_CEL_GO: Final = (
    (releases.CEL_OPTIONAL_LISTS, OPTIONAL_LISTS),
    (releases.CEL_EMPTY_PARTS, EMPTY_PARTS),
    (releases.CEL_DURATIONS_OF_INTS, DURATIONS_OF_INTS),
    (releases.CEL_RANGE_SIZES, RANGE_SIZES),
)
"""Libraries that came with the version of cel-go that a release is built of."""


@lru_cache(maxsize=2 * (PREVIEW - OLDEST + 1))
def environment(minor: int = NEWEST, *, is_new: bool = False) -> Environment:
    """``is_new``: for what a definition may say for the first time."""
    known = minor - 1 if is_new else minor
    added = [library for since, library in _SINCE if since.is_in(known)]
    added += [library for since, library in _WITH_CEL_GO if since.is_in(minor)]
    return Environment(
        [*_ALWAYS, *added],
        opens_typed=releases.CEL_OPTIONAL_VALUES.is_in(minor),
        selects_keywords=releases.CEL_KEYWORD_FIELDS.is_in(known),
        bounds_equality=releases.CEL_VALUE_EQUALITY.is_in(minor),
    )
