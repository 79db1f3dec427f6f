"""Answers of the page, with their header fields and a content security policy that forbids foreign
resources."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from specmux_aggregator.http.messages import ETag, Request
from specmux_aggregator.http.prepared_answer import (
    NO_STORE,
    PreparedAnswer,
    Representation,
    deliver,
    evaluate_preconditions,
    prepare,
    prepare_unstored,
    retry_fields,
)
from specmux_aggregator.reader.assets import assets, bare_error
from specmux_aggregator.reader.process import Unready
from specmux_aggregator.reader.requests import QuestionRefusal, ReaderAnswer
from specmux_converters.group_versions import GroupVersion

PREFIX: Final = "/openapi/ui/"
HTML: Final = "text/html; charset=utf-8"
POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        *(f"{each}-src 'self'" for each in ("script", "style", "img", "connect")),
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
FIELDS: Final = (
    ("Content-Security-Policy", POLICY),
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
)


class NoSuchPage(LookupError):
    """``similar``: names and pages of what may have been meant; ``group_version``: one that is not published,
    which the error page compares with those that are."""

    def __init__(
        self,
        message: str,
        similar: Sequence[tuple[str, str]] = (),
        *,
        group_version: GroupVersion | None = None,
    ) -> None:
        super().__init__(message)
        self.similar = tuple(similar)
        self.group_version = group_version


def redirect(request: Request, location: str) -> PreparedAnswer:
    """Redirect to a page below; relative, so that it works behind any prefix."""
    is_head = request.method == "HEAD"
    return prepare(302, [("Location", location), NO_STORE], is_head=is_head, route="ui")


def bare_page(request: Request, code: int, message: str) -> PreparedAnswer:
    """An error without the frame, which would need the reader."""
    return prepare(
        code,
        [("Content-Type", HTML), NO_STORE, *FIELDS, *retry_fields(code)],
        bare_error(code, message),
        is_head=request.method == "HEAD",
        route="ui",
        format="html",
    )


def asset_answer(request: Request, name: str, *, is_private: bool) -> PreparedAnswer:
    """A file by its name with the hash."""
    asset = next((each for each in assets().values() if each.name == name), None)
    if asset is None:
        return bare_page(request, 404, "There is no such file.")
    representation = Representation(
        content_type=asset.content_type,
        etag=ETag(f'"{name}"'),
        route="ui",
        format="text",
        is_immutable=True,
        is_private=is_private,
        is_head=request.method == "HEAD",
        fields=FIELDS[1:2],
    )
    return evaluate_preconditions(representation, request) or deliver(representation, asset.body)


def reader_page(
    representation: Representation, found: ReaderAnswer | QuestionRefusal, *, is_complete: bool
) -> PreparedAnswer:
    """Raises Unready for a refusal."""
    if isinstance(found, QuestionRefusal):
        raise Unready(found.code, found.message)
    if is_complete:
        return deliver(representation, found.body)
    return prepare_unstored(representation, found.body, 200)
