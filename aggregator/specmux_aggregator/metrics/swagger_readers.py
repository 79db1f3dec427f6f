"""Requests of ``/openapi/v2`` by requested form and client product.

These are the only labels that clients choose: products are plain names, limited in number.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from prometheus_client.core import CounterMetricFamily, Metric

from specmux_aggregator.http.negotiation import SWAGGER_MEDIA_TYPES, media_type_for
from specmux_aggregator.http.prepared_answer import FORMATS

PRODUCTS_MAX: Final = 20
OTHER: Final = "other"
NO_PRODUCT: Final = "none"

_PRODUCT: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}(?=[/ ]|\Z)")
"""The first product of a User-Agent (RFC 9110 10.1.5), if it is a plain name."""


class SwaggerReaders:
    """Counts on the event loop; a collector that is read at each scrape."""

    def __init__(self) -> None:
        self._requests: Counter[tuple[str, str]] = Counter()
        self._products: set[str] = set()
        self._last: float | None = None

    def count(self, accept: str | None, user_agent: str | None) -> None:
        """Count a request with these fields."""
        media_type = media_type_for(accept, SWAGGER_MEDIA_TYPES)
        form = OTHER if media_type is None else FORMATS[media_type]
        self._requests[form, self._product(user_agent)] += 1
        self._last = time.monotonic()

    def collect(self) -> Iterator[Metric]:
        family = CounterMetricFamily(
            "specmux_openapi_v2_requests",
            "Requests of /openapi/v2, by the form and the product that asked for it.",
            labels=["form", "product"],
        )
        for labels, count in sorted(self._requests.items()):
            family.add_metric(labels, count)
        yield family

    def report(self) -> dict[str, Any]:
        """The part of ``/status``."""
        products: dict[str, dict[str, int]] = {}
        for (form, product), count in sorted(self._requests.items()):
            products.setdefault(product, {})[form] = count
        age = None if self._last is None else round(time.monotonic() - self._last, 3)
        return {"requests": self._requests.total(), "products": products, "lastRequestAgeSeconds": age}

    def _product(self, user_agent: str | None) -> str:
        if not user_agent:
            return NO_PRODUCT
        match = _PRODUCT.match(user_agent)
        if match is None or (match[0] not in self._products and len(self._products) >= PRODUCTS_MAX):
            return OTHER
        self._products.add(match[0])
        return match[0]
