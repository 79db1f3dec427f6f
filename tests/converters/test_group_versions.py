from __future__ import annotations

import pytest

from specmux_converters.group_versions import group_version_of, named_group_version


@pytest.mark.parametrize(
    ("path", "key"),
    [
        ("/api/", "api"),
        ("/api/v1/", "api/v1"),
        ("/api/v1/namespaces/{namespace}/pods/{name}", "api/v1"),
        ("/api/v1", "api/v1"),
        ("/apis/", "apis"),
        ("/apis", "apis"),
        ("/apis/apps/", "apis/apps"),
        ("/apis/apps", "apis/apps"),
        ("/apis/apps/v1/", "apis/apps/v1"),
        ("/apis/apps/v1/watch/deployments", "apis/apps/v1"),
        ("/apis/{group}/v1", "apis"),
        ("/version/", "version"),
        ("/logs/", "logs"),
        ("/logs/{logpath}", "logs"),
        ("/openid/v1/jwks/", "openid/v1/jwks"),
        ("/openid/v1/jwks", "openid/v1"),
        ("/.well-known/openid-configuration/", ".well-known/openid-configuration"),
        ("/.well-known/openid-configuration", ".well-known"),
        ("/healthz", "healthz"),
        ("/artifacts/{namespace}/{name}", "artifacts"),
        ("/", None),
        ("/{name}", None),
        ("//x", None),
        ("x-kubernetes", None),
        ("", None),
    ],
)
def test_key_of_a_path(path: str, key: str | None) -> None:
    assert group_version_of(path) == key


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("v1", "api/v1"),
        ("apps/v1", "apis/apps/v1"),
        ("example.com/stable", "apis/example.com/stable"),
        ("api/v1", "api/v1"),
        ("apis/apps/v1", "apis/apps/v1"),
        ("version", "version"),
        ("openid/v1/jwks", "openid/v1/jwks"),
        (".well-known/openid-configuration", ".well-known/openid-configuration"),
    ],
)
def test_short_names_of_group_versions(name: str, expected: str) -> None:
    assert named_group_version(name) == expected
