from __future__ import annotations

import pytest

from specmux_cache.http.server import Server, hash_in, name_of

PLAIN = "https://h.example:6443"
PREFIXED = "https://h.example:6443/clusters/a"


@pytest.mark.parametrize(
    ("url", "identity"),
    [
        ("https://H.example", "https://h.example:443"),
        ("http://h.example/", "http://h.example:80"),
        ("http://h.example:8001/a/b/", "http://h.example:8001/a/b"),
        ("https://[::1]:6443", "https://[::1]:6443"),
    ],
)
def test_server_when_written_in_every_way_has_one_identity(url, identity):
    assert str(Server.parse(url)) == identity


@pytest.mark.parametrize(
    "url",
    [
        "",
        "h.example",
        "ftp://h",
        "https://",
        "https://user:secret@h",
        "https://h/?x=1",
        "https://h/#f",
        "https://h/a/../b",
    ],
)
def test_server_when_its_url_is_no_server(url):
    with pytest.raises(ValueError, match=r"server|credentials") as caught:
        Server.parse(url)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("base", "reference", "expected"),
    [
        (PLAIN, "/openapi/v3/api/v1?hash=A", "/openapi/v3/api/v1?hash=A"),
        (PLAIN, "?hash=B&timeout=32s", "/openapi/v3/apis/apps/v1?hash=B&timeout=32s"),
        (PLAIN, "https://h.example:6443/openapi/v3/x", "/openapi/v3/x"),
        (PLAIN, "https://H.EXAMPLE:6443/openapi/v3/x", "/openapi/v3/x"),
        (PREFIXED, "/openapi/v3/api/v1?hash=A", "/openapi/v3/api/v1?hash=A"),
        (PREFIXED, "/clusters/a/openapi/v3/api/v1", "/openapi/v3/api/v1"),
        (PREFIXED, "?hash=B", "/openapi/v3/apis/apps/v1?hash=B"),
        ("https://h.example:6443/openapi", "/openapi/v3/api/v1?hash=A", None),
        ("https://h.example:6443/openapi/v3", "/openapi/v3/openapi/v3/x?hash=A", "/openapi/v3/x?hash=A"),
        (PLAIN, "/openapi/v3/x/../y?hash=A", "/openapi/v3/y?hash=A"),
        (PLAIN, "/openapi/v3/x?hash=A#b", "/openapi/v3/x?hash=A"),
        (PLAIN, "/openapi/v3/x?hash=%41", "/openapi/v3/x?hash=%41"),
        (PLAIN, "/openapi/v3/x?hash=A\n", "/openapi/v3/x?hash=A"),
        (
            PLAIN,
            "/openapi/v3/.well-known/openid-configuration",
            "/openapi/v3/.well-known/openid-configuration",
        ),
        (PLAIN, "//evil.example/openapi/v3/x", None),
        (PLAIN, "http://h.example:6443/openapi/v3/x", None),
        (PLAIN, "https://h.example/openapi/v3/x", None),
        (PLAIN, "https://evil.example:6443/openapi/v3/x", None),
        (PLAIN, "https://h.example:6443@evil.example/openapi/v3/x", None),
        (PLAIN, "/api/../../secrets", None),
        (PLAIN, "/openapi/v3/%2e%2e/%2e%2e/secrets", None),
        (PLAIN, "/openapi/v3//x", None),
        (PLAIN, "/openapi/v3\\..\\x", None),
        (PLAIN, "/secrets", None),
        (PLAIN, "/openapi/v3x", None),
        (PLAIN, "javascript:alert(1)", None),
        (PLAIN, "https://[", None),
    ],
)
def test_target_when_a_server_names_a_url(base, reference, expected):
    assert Server.parse(base).target(reference, beside="/openapi/v3/apis/apps/v1?hash=A") == expected


@pytest.mark.parametrize(
    ("target", "hash_"),
    [
        ("/x?hash=A", "A"),
        ("/x?etag=B", "B"),
        ("/x?hash=", ""),
        ("/openapi/v3/api/v1?hash=A1", "A1"),
        ("/openapi/v3/api/v1?hash=%41", "A"),
        ("/x", ""),
        ("/x?hash=A&hash=B", "A"),
        ("/x?a=1&hash=C", "C"),
    ],
)
def test_hash_in_when_the_target_has_one_or_none(target, hash_):
    assert hash_in(target) == hash_


def test_name_of_when_parameters_come_in_any_order():
    assert name_of("/x?b=2&hash=A&a=1") == name_of("/x?a=1&b=2&hash=B&timeout=32s") == "/x?a=1&b=2"
