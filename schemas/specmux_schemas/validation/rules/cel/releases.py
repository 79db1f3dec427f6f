"""Which release of Kubernetes knows which library (apiserver, pkg/cel/environment/base.go).

An apiserver takes into a definition only what the release before it knew, too, so that one can go back; what
is stored it evaluates with all that it knows.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from specmux_schemas.validation.releases import NEWEST, OLDEST
from specmux_schemas.validation.rules.cel.checking.declarations import CelLibrary, Environment
from specmux_schemas.validation.rules.cel.libraries.addresses import ADDRESSES
from specmux_schemas.validation.rules.cel.libraries.authorization import AUTHORIZATION
from specmux_schemas.validation.rules.cel.libraries.conversions import CONVERSIONS
from specmux_schemas.validation.rules.cel.libraries.lists import EXTENDED_LISTS, INCLUDES, LISTS, SETS
from specmux_schemas.validation.rules.cel.libraries.matching import REGEX
from specmux_schemas.validation.rules.cel.libraries.named_formats import NAMED_FORMATS
from specmux_schemas.validation.rules.cel.libraries.optional import OPTIONAL, OPTIONAL_LISTS
from specmux_schemas.validation.rules.cel.libraries.quantities import QUANTITIES
from specmux_schemas.validation.rules.cel.libraries.standard import EXISTS_ONE, STANDARD, TWO_VARIABLES
from specmux_schemas.validation.rules.cel.libraries.strings import STRINGS
from specmux_schemas.validation.rules.cel.libraries.times import TIMES
from specmux_schemas.validation.rules.cel.libraries.urls import URLS
from specmux_schemas.validation.rules.cel.libraries.versions import VERSIONS

_SINCE: Final[tuple[tuple[int, CelLibrary], ...]] = (
    (0, STANDARD),
    (0, CONVERSIONS),
    (0, TIMES),
    (0, URLS),
    (0, REGEX),
    (0, LISTS),
    (27, AUTHORIZATION),
    (28, OPTIONAL),
    (28, QUANTITIES),
    (29, STRINGS),
    (29, SETS),
    (30, ADDRESSES),
    (31, NAMED_FORMATS),
    (32, TWO_VARIABLES),
    (33, VERSIONS),
    (34, EXTENDED_LISTS),
    (37, INCLUDES),
)
_WITH_CEL_GO: Final[tuple[tuple[int, CelLibrary], ...]] = ((33, OPTIONAL_LISTS), (33, EXISTS_ONE))
"""What came with the version of cel-go that a release is built of."""


@lru_cache(maxsize=2 * (NEWEST - OLDEST + 1))
def environment(minor: int = NEWEST, *, is_new: bool = False) -> Environment:
    """``is_new``: for what a definition may say for the first time."""
    known = minor - 1 if is_new else minor
    libraries = [library for since, library in _SINCE if since <= known]
    libraries += [library for since, library in _WITH_CEL_GO if since <= minor]
    return Environment(libraries)
