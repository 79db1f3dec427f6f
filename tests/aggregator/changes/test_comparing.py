"""A new document is read for its names alone, and what is told of it is what a whole reading tells."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from shared_data import DATA, files, load
from specmux_aggregator.changes.entries import Findings
from specmux_aggregator.http.content_codings import encode_body
from specmux_aggregator.http.messages import Coding
from specmux_converters.document import DEFAULT_LIMITS
from specmux_tools.change_log import compare_documents, findings_of
from specmux_tools.differences import ServedSide, add_document, compare
from specmux_tools.differences.reports import report_of


def read_whole(document: Any) -> Findings:
    side = ServedSide()
    add_document(side, document)
    return findings_of(report_of(compare(ServedSide(), side), old="", new=""))


def told(document: Any) -> Findings | str:
    return compare_documents(
        None, encode_body(orjson.dumps(document), Coding.ZSTD), (), limits=DEFAULT_LIMITS
    )


def operation(kind: str) -> dict[str, Any]:
    named = {"group": "apps", "version": "v1", "kind": kind}
    answer = {"200": {"description": "", "content": {"a/b": {"schema": {"type": "object"}}}}}
    return {"x-kubernetes-group-version-kind": named, "responses": answer}


THINGS = {"get": operation("Thing"), "post": operation("Thing"), "parameters": []}


@pytest.mark.parametrize(
    "paths",
    [
        {},
        {"/apis/apps/v1/things": THINGS},
        {"/apis/apps/v1/things": THINGS, "/apis/apps/v2/things": THINGS, "/api/v1/pods": THINGS},
        {"/version/": {"get": {}}, "/healthz": {"get": operation("")}, "/apis/": {"get": {}}},
        {"/apis/apps/v1/": None, "/apis/apps/v1/x": "y", "/apis/apps/v2/{name}": {"get": "z"}, "/x": THINGS},
    ],
)
@pytest.mark.parametrize("title", ["Kubernetes", "Kubernetes CRD Swagger"])
def test_a_new_document_is_told_of_by_its_names(paths: Any, title: str) -> None:
    document = {"openapi": "3.0.0", "info": {"title": title}, "paths": paths}
    assert told(document) == read_whole(document)


@pytest.mark.parametrize("path", files(DATA / "k8s-pairs" / "1.35" / "v3", "**/*.json*"))
def test_a_new_document_of_a_release_is_told_of_by_its_names(path: Path) -> None:
    document = load(path)
    assert told(document) == read_whole(document)
