"""Choose the form of discovery by the Accept field. Pure.

Parameters of the media type distinguish the aggregated forms from the legacy one (KEP-3352), in any order. A
range without them, a wildcard and an absent field mean the legacy form.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from specmux_aggregator.api_discovery.render import DISCOVERY_GROUP
from specmux_aggregator.http.negotiation import HEADER_MAX, REMEMBERED, MediaRange, best_of, media_ranges
from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.media_types import CBOR, JSON, MediaType

LIST_KIND: Final = "APIGroupDiscoveryList"


@dataclass(frozen=True, slots=True)
class DiscoveryForm:
    """One representation of one path."""

    media_type: MediaType
    version: str | None = None
    """Version of the aggregated form: "v2" or "v2beta1"; None: the legacy form."""
    is_of_one: bool = False
    """Whether it describes only one of several servers (``profile=nopeer``, KEP-4020), under the same content
    type."""

    @property
    def content_type(self) -> str:
        if self.version is None:
            return self.media_type
        return f"{self.media_type};g={DISCOVERY_GROUP};v={self.version};as={LIST_KIND}"


LEGACY: Final = (DiscoveryForm(JSON), DiscoveryForm(CBOR))
AGGREGATED: Final = (
    DiscoveryForm(JSON, "v2"),
    DiscoveryForm(CBOR, "v2"),
    DiscoveryForm(JSON, "v2beta1"),
    DiscoveryForm(CBOR, "v2beta1"),
)
NO_PEERS: Final = (DiscoveryForm(JSON, "v2", is_of_one=True), DiscoveryForm(CBOR, "v2", is_of_one=True))
ALL: Final = (*LEGACY, *AGGREGATED, *NO_PEERS)
"""The forms of ``/api`` and ``/apis``."""


@dataclass(frozen=True, slots=True)
class _Range:
    """An element of the field."""

    types: MediaRange
    asked: tuple[str, str, str] | None
    """Group, version and kind of the requested form."""
    is_of_one: bool

    @property
    def quality(self) -> float:
        return self.types.quality

    def specificity(self, form: DiscoveryForm) -> int | None:
        if self.asked is not None or form.version is not None:
            named = form.version and (DISCOVERY_GROUP, form.version, LIST_KIND.lower())
            if self.asked != named:
                return None
        # An apiserver of v2beta1 knows no peers (aggregated/wrapper.go).
        if form.is_of_one != (self.is_of_one and form.version == "v2"):
            return None
        return self.types.specificity(form.media_type)


def form_for(accept: str | None, offered: tuple[DiscoveryForm, ...]) -> DiscoveryForm | None:
    """The client's preferred form among those offered; None if it accepts none."""
    if accept is not None and len(accept) > HEADER_MAX:
        return _form_for(accept, offered)
    return _remembered_form(accept, offered)


def _form_for(accept: str | None, offered: tuple[DiscoveryForm, ...]) -> DiscoveryForm | None:
    if accept is None or not accept.strip(" \t,"):
        return offered[0]
    return best_of(offered, [_range(types, parameters) for types, parameters in media_ranges(accept)])


def _range(types: MediaRange, parameters: list[str]) -> _Range:
    """Other parameters are ignored: a charset changes nothing."""
    pairs = [parameter.partition("=") for parameter in parameters]
    values = {name.strip(): value.strip().strip('"') for name, _, value in pairs}
    asked = (values.get("g", ""), values.get("v", ""), values.get("as", ""))
    return _Range(types, asked if any(asked) else None, values.get("profile") == "nopeer")


_remembered_form = lru_cache(maxsize=REMEMBERED)(_form_for)
