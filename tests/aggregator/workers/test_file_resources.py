"""The resources of a file that is a document are read as it is built, and are those of its stored bytes."""

from __future__ import annotations

import gzip
import random
from typing import Any

import orjson
import pytest

from shared_data import documents, load
from specmux_aggregator.http.messages import Coding
from specmux_aggregator.workers.built import FileBuilt
from specmux_aggregator.workers.documents import build_file, resources_in
from specmux_converters.document import DEFAULT_LIMITS
from specmux_converters.group_versions import GroupVersion

APPS = GroupVersion("apis/apps/v1")


def built(name: str, document: Any) -> FileBuilt:
    found = build_file(
        name,
        orjson.dumps(document),
        owned=None,
        held={},
        limits=DEFAULT_LIMITS,
        max_group_versions=10,
    )
    assert isinstance(found, FileBuilt)
    return found


def shuffled(value: Any, order: random.Random) -> Any:
    """With the keys of all objects in another order."""
    if isinstance(value, dict):
        items = [(key, shuffled(item, order)) for key, item in value.items()]
        order.shuffle(items)
        return dict(items)
    return [shuffled(item, order) for item in value] if isinstance(value, list) else value


def check(key: str, document: Any) -> None:
    (item,) = built(f"{key}.json", document).documents
    assert item.gzip is not None
    assert item.resources
    assert item.resources == resources_in(item.gzip, Coding.GZIP, item.group_version, limits=DEFAULT_LIMITS)


def operation(kind: str, action: str) -> dict[str, Any]:
    named = {"group": "apps", "version": "v1", "kind": kind}
    return {"x-kubernetes-action": action, "x-kubernetes-group-version-kind": named}


@pytest.mark.parametrize("seed", range(20))
def test_resources_are_the_same_in_any_order_of_keys(seed: int) -> None:
    """Which of several kinds a resource has depends on which operation is read last."""
    paths = {
        f"/{APPS}/things": {"get": operation("A", "list"), "post": operation("B", "post")},
        f"/{APPS}/things/{{name}}": {"get": operation("C", "get"), "put": operation("D", "put")},
        f"/{APPS}/namespaces/{{namespace}}/things": {"get": operation("E", "list"), "parameters": []},
        f"/{APPS}/empty": None,
    }
    check(APPS, shuffled({"openapi": "3.0.0", "info": {}, "paths": paths}, random.Random(seed)))


@pytest.mark.parametrize("key", ["api/v1", "apis/apps/v1", "apis/autoscaling/v2"])
def test_resources_of_a_release_are_those_of_its_stored_documents(key: str) -> None:
    check(key, shuffled(load(documents("1.35")[key]), random.Random(key)))


def test_a_document_of_no_group_version_has_no_resources() -> None:
    (item,) = built("version.json", {"openapi": "3.0.0", "info": {}, "paths": {}}).documents
    assert item.resources is None


def test_openapi_31_becomes_30_with_losses_that_are_counted() -> None:
    document = {"openapi": "3.1.0", "info": {"title": "t", "version": "1"}, "webhooks": {}, "paths": {}}
    schema = {"type": ["string", "null"], "if": {}}
    (item,) = built(f"{APPS}.json", {**document, "components": {"schemas": {"A": schema}}}).documents
    assert item.gzip is not None
    made = orjson.loads(gzip.decompress(item.gzip))
    assert (made["openapi"], made["components"]["schemas"]["A"]) == (
        "3.0.3",
        {"type": "string", "nullable": True},
    )
    assert item.offer.losses == 2
    assert item.offer.loss_examples[0].startswith("/webhooks: webhooks: OpenAPI 3.0 has no such keyword")
