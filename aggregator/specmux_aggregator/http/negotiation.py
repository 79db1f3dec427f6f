"""Choose the media type and content coding of an answer (RFC 9110 12.5.1, 12.5.3). Pure.

Each header is parsed once per distinct text, since clients repeat theirs in every request.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Protocol, TypeVar

from specmux_aggregator.http.messages import Coding, Request
from specmux_converters.media_types import (
    ALIASES,
    FORMS,
    JSON,
    JSON_COMPONENTS,
    JSON_SCHEMAS,
    PROTOBUF_V2,
    MediaType,
)

MEDIA_TYPES: Final = tuple(FORMS)
"""All supported media types, preferred first."""

SWAGGER_MEDIA_TYPES: Final = (JSON, PROTOBUF_V2)
"""The media types of ``/openapi/v2``, preferred first."""

CODINGS: Final = (Coding.ZSTD, Coding.GZIP, Coding.IDENTITY)
"""All supported codings, preferred first."""

_PROFILES: Final = {"schemas": JSON_SCHEMAS, "components": JSON_COMPONENTS}

LIST_MAX: Final = 8 * 1024
"""Most characters of a list in a request's fields, repeated fields joined."""

ELEMENTS_MAX: Final = 64
"""Most elements of such a list. Each is compared with every offer, and no real client sends so many."""

HEADER_MAX: Final = 512
"""Most characters of a header field whose result is cached."""

REMEMBERED: Final = 512

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)


class AcceptRange(Protocol[T_contra]):
    """An element of an Accept field."""

    @property
    def quality(self) -> float: ...

    def specificity(self, offered: T_contra, /) -> int | None:
        """How closely this matches: 2 exactly, 1 by type, 0 as ``*/*``; None: not at all."""
        ...


@dataclass(frozen=True, slots=True)
class MediaRange:
    """An element of an Accept field, without parameters."""

    type: str
    subtype: str
    quality: float

    def specificity(self, media_type: MediaType) -> int | None:
        if f"{self.type}/{self.subtype}" == media_type:
            return 2
        if self.subtype != "*":
            return None
        if self.type == "*":
            return 0
        return 1 if media_type.startswith(self.type + "/") else None


def overlong_list(request: Request) -> str | None:
    """The name of the first field whose list is too long; None if there is none."""
    for name, value in (
        ("Accept", request.accept),
        ("Accept-Encoding", request.accept_encoding),
        ("If-None-Match", request.if_none_match),
        ("If-Match", request.if_match),
    ):
        if value is None or len(value) < ELEMENTS_MAX:  # as many elements have all but one as many commas
            continue
        if len(value) > LIST_MAX or value.count(",") >= ELEMENTS_MAX:
            return name
    return None


def media_type_for(accept: str | None, offered: tuple[MediaType, ...] = MEDIA_TYPES) -> MediaType | None:
    """The client's preferred media type among those offered; None if it accepts none."""
    if accept is not None and len(accept) > HEADER_MAX:
        return _media_type_for(accept, offered)
    return _remembered_media_type(accept, offered)


def apply_profile(media_type: MediaType | None, accept: str | None) -> MediaType | None:
    """The reduced JSON form that the client names by a profile; an unknown profile means plain JSON."""
    if media_type != JSON or accept is None or "profile" not in accept:
        return media_type
    chosen, best = media_type, 0.0
    for media_range, parameters in media_ranges(accept):
        if f"{media_range.type}/{media_range.subtype}" == JSON and media_range.quality > best:
            chosen, best = _profile_of(parameters), media_range.quality
    return chosen


def _profile_of(parameters: list[str]) -> MediaType:
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "profile":
            return _PROFILES.get(value.strip().strip('"'), JSON)
    return JSON


def coding_for(accept_encoding: str | None) -> Coding:
    """The client's preferred content coding; identity if it accepts none that is supported (RFC 9110
    12.5.3)."""
    if accept_encoding is None:
        return Coding.IDENTITY
    return (
        _coding_for(accept_encoding)
        if len(accept_encoding) > HEADER_MAX
        else _remembered_coding(accept_encoding)
    )


def _media_type_for(accept: str | None, offered: tuple[MediaType, ...]) -> MediaType | None:
    if accept is None or not accept.strip(" \t,"):
        return offered[0] if offered else None
    return best_of(offered, [media_range for media_range, _ in media_ranges(accept)])


def best_of(offered: Sequence[T], ranges: Sequence[AcceptRange[T]]) -> T | None:
    """The highest-ranked offer; None if no range matches."""
    ranked: list[tuple[float, int, int, int]] = []
    for preference, thing in enumerate(offered):
        matches = [
            (specificity, -position, item.quality)
            for position, item in enumerate(ranges)
            if (specificity := item.specificity(thing)) is not None
        ]
        if not matches:
            continue
        specificity, order, quality = max(matches)
        if quality > 0:
            # An exact match precedes a wildcard, as goautoneg sorts and clients of the reference expect; then
            # the client's order, then the order of the offers.
            ranked.append((quality, specificity, order, -preference))
    return offered[-max(ranked)[3]] if ranked else None


def media_ranges(accept: str) -> Iterator[tuple[MediaRange, list[str]]]:
    """The elements of an Accept field in lower case, each with its parameters. Malformed ones are skipped."""
    for element in accept.lower().split(","):
        name, *parameters = element.split(";")
        name = name.strip()
        name = ALIASES.get(name, MediaType(name))
        main, slash, sub = name.partition("/")
        quality = _quality_of(parameters)
        if slash and main and sub and quality is not None and not (main == "*" and sub != "*"):
            yield MediaRange(main, sub, quality), parameters


def quality_of(coding: str, accept_encoding: str) -> float | None:
    """The weight of a content coding, 0 to 1; None if it is not named."""
    return _qualities_of(accept_encoding).get(coding)


def _qualities_of(accept_encoding: str) -> dict[str, float]:
    qualities: dict[str, float] = {}
    for element in accept_encoding.lower().split(","):
        name, *parameters = element.split(";")
        name = name.strip().removeprefix("x-")
        quality = _quality_of(parameters)
        if name and quality is not None:
            qualities.setdefault(name, quality)
    return qualities


def _coding_for(accept_encoding: str) -> Coding:
    qualities = _qualities_of(accept_encoding)
    # A wildcard covers what the client did not name: use gzip, which every client can decode.
    fallback = {Coding.GZIP: qualities.get("*", 0.0)}
    best, best_quality = Coding.IDENTITY, qualities.get(Coding.IDENTITY, 0.0)
    for coding in reversed(CODINGS[:-1]):
        quality = qualities.get(coding, fallback.get(coding, 0.0))
        if quality > 0 and quality >= best_quality:
            best, best_quality = coding, quality
    return best


def _quality_of(parameters: list[str]) -> float | None:
    """The weight among an element's parameters, 1 if absent; None if it is malformed."""
    for parameter in parameters:
        name, equals, value = parameter.partition("=")
        if name.strip() == "q" and equals:
            value = value.strip()
            if not value.replace(".", "", 1).isdecimal() or not value.isascii():
                return None
            quality = float(value)
            return quality if quality <= 1 else None
    return 1.0


_remembered_media_type = lru_cache(maxsize=REMEMBERED)(_media_type_for)
_remembered_coding = lru_cache(maxsize=REMEMBERED)(_coding_for)
