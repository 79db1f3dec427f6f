"""Answers of the page, with their header fields and a content security policy that forbids foreign
resources."""

from __future__ import annotations

from typing import Final

from specmux_aggregator.http.messages import Request
from specmux_aggregator.http.prepared import PreparedAnswer, prepare
from specmux_aggregator.http.representations import NO_STORE
from specmux_aggregator.questions.frames import bare_error

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


def redirect(request: Request, location: str) -> PreparedAnswer:
    """Redirect to a page below; relative, so that it works behind any prefix."""
    is_head = request.method == "HEAD"
    return prepare(302, [("Location", location), NO_STORE], is_head=is_head, route="ui")


def bare_page(request: Request, code: int, message: str) -> PreparedAnswer:
    """An error without the frame, which would need the reader."""
    again = [("Retry-After", "1")] if code in (429, 503) else []
    return prepare(
        code,
        [("Content-Type", HTML), NO_STORE, *FIELDS, *again],
        bare_error(code, message),
        is_head=request.method == "HEAD",
        route="ui",
        format="html",
    )
