"""Which targets go to backends, and which are refused."""

from __future__ import annotations

import pytest

from specmux_aggregator.proxy.routes import group_version_of, is_resource, is_swagger, target_fault


@pytest.mark.parametrize(
    ("target", "group_version"),
    [
        ("/api/v1/pods", "api/v1"),
        ("/api/v1/namespaces/a/pods/b/log?follow=true", "api/v1"),
        ("/apis/apps/v1/deployments", "apis/apps/v1"),
        ("/apis/a.example/v1beta1/x?watch=1&x=/y", "apis/a.example/v1beta1"),
        ("/api/v1//pods", "api/v1"),
        ("/apis/a%2Fb/v1/x", None),
        ("/apis/apps%2fv1/v1/x", None),
    ],
)
def test_resource_names_its_group_version(target: str, group_version: str | None) -> None:
    assert is_resource(target)
    assert group_version_of(target) == group_version


@pytest.mark.parametrize(
    "target",
    [
        "/",
        "/api",
        "/api/",
        "/api/v1",
        "/api/v1/",
        "/api/v1?x=/y/z",
        "/api/v1/?x=/y",
        "/api//pods/x?y",
        "/apis",
        "/apis/apps",
        "/apis/apps/v1",
        "/apis/apps/v1/",
        "/apis//v1/x",
        "/apis/apps//x",
        "/apisx/apps/v1/x",
        "/version",
        "/healthz/x/y/z",
        "/openapi/v3/apis/apps/v1",
        "*",
        "",
    ],
)
def test_discovery_and_everything_else_is_no_resource(target: str) -> None:
    assert not is_resource(target)
    assert group_version_of(target) is None


def test_swagger_is_one_path() -> None:
    assert is_swagger("/openapi/v2")
    assert is_swagger("/openapi/v2?timeout=32s")
    assert not is_swagger("/openapi/v2/")
    assert not is_swagger("/openapi/v2x")


@pytest.mark.parametrize(
    ("target", "word"),
    [
        ("/api/v1/..", "dot segment"),
        ("/api/v1/../x", "dot segment"),
        ("/api/v1/./x", "dot segment"),
        ("/api/../apis/x", "dot segment"),
        ("/api/v1/%2e%2e/x", "dot segment"),
        ("/api/v1/.%2E/x", "dot segment"),
        ("/api/v1/a%2f..%2fb", "dot segment"),
        ("/api/v1/a\\..\\b", "dot segment"),
        ("/api/v1/a%5c..%5cb", "dot segment"),
        ("/api/v1/a/..;x=y/b", "dot segment"),
        ("/api/v1/x%00", "control character"),
        ("/api/v1/x%0d%0aHost:x", "control character"),
        ("/api/v1/x%7F", "control character"),
        ("/api/v1/x%", "malformed"),
        ("/api/v1/x%zz", "malformed"),
        ("/api/v1/x#y", "malformed"),
    ],
)
def test_path_that_a_backend_could_read_otherwise_is_refused(target: str, word: str) -> None:
    assert word in (target_fault(target) or "")


@pytest.mark.parametrize(
    "target",
    [
        "/api/v1/namespaces/a/services/https:b:/proxy/c%2Fd",
        "/api/v1/...",
        "/api/v1/..a/b..",
        "/api/v1/x?fieldSelector=a%00b/../c%",
        "/api/v1/x%252e%252e/y",
        "/apis/apps/v1//x;y=z",
    ],
)
def test_other_paths_are_passed_on(target: str) -> None:
    assert target_fault(target) is None
