from __future__ import annotations

import orjson
import pytest

from specmux_cache.http.server import Server
from specmux_cache.reading.documents import VALUES_MAX, parse_discovery

SERVER = Server.parse("http://127.0.0.1:1")


def root(count: int) -> bytes:
    return orjson.dumps(
        {"paths": {f"apis/g{n}/v1": {"serverRelativeURL": f"/openapi/v3/apis/g{n}/v1"} for n in range(count)}}
    )


def test_root_of_ten_thousand_group_versions_is_read() -> None:
    assert len(parse_discovery(root(10_000), SERVER).documents) == 10_000


def test_root_of_many_values_is_refused_before_it_is_parsed() -> None:
    for body in (root(VALUES_MAX // 2 + 1), b'{"paths":{},"x":[' + b"[]," * VALUES_MAX + b"0]}"):
        with pytest.raises(ValueError, match="more than 200000 values"):
            parse_discovery(body, SERVER)
