"""Input of the conversion: a parsed document, or the bytes or text of one."""

from __future__ import annotations

from typing import Any, get_args

from specmux_converters.document import Document, Limits
from specmux_converters.errors import InvalidArgument, InvalidDocument, cut
from specmux_converters.from_swagger2.reading.source import Profile
from specmux_converters.losses import Loss
from specmux_converters.recognise import DocumentKind, recognise


def parse_input(given: Any, *, limits: Limits) -> tuple[Document, tuple[Loss, ...]]:
    """The document, and the losses of parsing it. Raises InvalidArgument, InvalidDocument, LimitExceeded."""
    if isinstance(given, dict):
        return given, ()
    if isinstance(given, str):
        given = given.encode("utf-8", "surrogatepass")
    if not isinstance(given, bytes):
        kind = type(given).__name__
        raise InvalidArgument(f"a document is wanted, as a dict, bytes or text, not as {kind}")
    found = recognise(given, limits=limits)
    if found.kind is not DocumentKind.SWAGGER_2:
        raise InvalidDocument(f"{found.kind.value}, where Swagger 2.0 is wanted")
    return found.documents[0], found.losses


def check_profile(profile: Any) -> None:
    """Raises InvalidArgument for an unknown profile."""
    known = get_args(Profile)
    if profile not in known:
        raise InvalidArgument(f"profile {cut(repr(profile))} is not one of {', '.join(map(repr, known))}")
