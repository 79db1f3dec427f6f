"""``/openapi/ui/swagger/``: Swagger UI over the published documents, if ``ui.swagger`` is on.

Everything is built at the start, so every answer is in memory. Its content security policy adds two
exceptions to the page's: ``data:`` images for its icons, and one style attribute, allowed by its hash.
"""

from __future__ import annotations

from typing import Final

from specmux_aggregator.http.content_codings import encoded
from specmux_aggregator.http.messages import Coding, ETag, Request
from specmux_aggregator.http.negotiation import coding_for
from specmux_aggregator.http.prepared_answer import PreparedAnswer, Representation, delivered, settled
from specmux_aggregator.reader.assets import Asset, asset_of
from specmux_aggregator.reader.page_answers import FIELDS, POLICY, PREFIX, bare_page, redirect
from specmux_aggregator.reader.swagger_assets import swagger_page

SWAGGER: Final = f"{PREFIX}swagger/"
_ASSETS: Final = f"{SWAGGER}assets/"
_HIDDEN: Final = "sha256-RL3ie0nH+Lzz2YNqQN83mnU0J1ot4QL7b99vMdIX99w="
"""Hash of the style attribute that hides the definitions of its icons."""
SWAGGER_POLICY: Final = POLICY.replace("img-src 'self'", "img-src 'self' data:").replace(
    "style-src 'self'", f"style-src 'self' 'unsafe-hashes' '{_HIDDEN}'"
)
SWAGGER_FIELDS: Final = (("Content-Security-Policy", SWAGGER_POLICY), *FIELDS[1:])


class SwaggerUi:
    """The endpoint. ``named``: its assets by name without the hash."""

    def __init__(self, named: dict[str, Asset], *, is_private: bool) -> None:
        self._is_private = is_private
        page = asset_of("swagger.html", swagger_page(named, root="../../v3"))
        self._files = {asset.name: asset for asset in named.values()}
        self._page = page
        self._bodies = {
            (asset.name, coding): encoded(asset.body, coding)
            for asset in (page, *named.values())
            for coding in Coding
        }

    def immediate(self, request: Request) -> PreparedAnswer:
        if request.path == SWAGGER.removesuffix("/"):
            return redirect(request, "swagger/")
        if request.path == SWAGGER:
            return self._answer(request, self._page, is_immutable=False, fields=SWAGGER_FIELDS)
        asset = self._files.get(request.path.removeprefix(_ASSETS))
        if asset is None:
            return bare_page(request, 404, "There is no such page.")
        return self._answer(request, asset, is_immutable=True, fields=FIELDS[1:2])

    async def respond(self, request: Request) -> PreparedAnswer:
        return self.immediate(request)

    def _answer(
        self, request: Request, asset: Asset, *, is_immutable: bool, fields: tuple[tuple[str, str], ...]
    ) -> PreparedAnswer:
        coding = coding_for(request.accept_encoding)
        representation = Representation(
            content_type=asset.content_type,
            etag=ETag(f'"{asset.name}-{coding.value}"'),
            route="ui",
            format="html" if asset is self._page else "text",
            coding=coding,
            is_immutable=is_immutable,
            is_private=self._is_private,
            is_head=request.method == "HEAD",
            fields=fields,
        )
        body = self._bodies[asset.name, coding]
        return settled(representation, request) or delivered(representation, body)
