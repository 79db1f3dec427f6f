"""Requests of /openapi/v2 by form and product: names are plain, and bounded in number."""

from __future__ import annotations

import pytest

from specmux_aggregator.metrics.swagger_readers import PRODUCTS_MAX, SwaggerReaders

PROTOBUF = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"


@pytest.mark.parametrize(
    ("agent", "product"),
    [
        ("kubectl/v1.27.3 (linux/amd64) kubernetes/25b4e43", "kubectl"),
        ("kube-aggregator", "kube-aggregator"),
        ("HashiCorp/1.0 Terraform/1.5", "HashiCorp"),
        (None, "none"),
        ("", "none"),
        ('ev"il/1', "other"),
        ("\u001b[31m", "other"),
        ("a" * 41, "other"),
    ],
)
def test_the_product_is_the_first_name_of_the_user_agent(agent: str | None, product: str) -> None:
    readers = SwaggerReaders()
    readers.count(None, agent)
    assert readers.report()["products"] == {product: {"json": 1}}


def test_forms_are_those_that_were_asked_for() -> None:
    readers = SwaggerReaders()
    assert readers.report() == {"requests": 0, "products": {}, "lastRequestAgeSeconds": None}
    for accept in ("application/json", f"{PROTOBUF},application/json;q=0.5", "text/html"):
        readers.count(accept, "a/1")
    report = readers.report()
    assert report["products"] == {"a": {"json": 1, "protobuf": 1, "other": 1}}
    assert report["requests"] == 3
    assert report["lastRequestAgeSeconds"] >= 0


def test_products_are_bounded() -> None:
    readers = SwaggerReaders()
    for number in range(10 * PRODUCTS_MAX):
        readers.count(None, f"agent{number}/1")
    products = readers.report()["products"]
    assert len(products) == PRODUCTS_MAX + 1
    assert products["other"] == {"json": 9 * PRODUCTS_MAX}
    (family,) = readers.collect()
    assert sum(sample.value for sample in family.samples) == 10 * PRODUCTS_MAX
