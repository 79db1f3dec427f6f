"""Which documents are parsed to learn whether they are OpenAPI 3.1."""

from __future__ import annotations

import pytest

from specmux_aggregator.http.content_codings import encode_body
from specmux_aggregator.http.messages import Coding
from specmux_aggregator.workers.lowering import begins_with_30, coded_may_be_later, may_be_later
from specmux_converters.document import Limits


@pytest.mark.parametrize(
    ("text", "is_first_30", "may_be"),
    [
        (b'{"openapi":"3.0.0","info":{}}', True, False),
        (b' {\n "openapi" : "3.0",\n "info": {}}', True, False),
        (b'{"components":{},"openapi":"3.0.3","paths":{}}', False, False),
        (b'{"openapi":"3.1.0","info":{}}', False, True),
        (b'{"openapi":"3.01","info":{}}', False, True),
        (b'{"info":{"openapi":"3.0.0"},"openapi":"3.2.0"}', False, True),
        (b'{"info":{},"openapi" : \n"3.1"}', False, True),
        (b'{"info":{},"\\u006fpenapi":"3.1.0"}', False, True),
        (b'{"info":{},"open\\u0061pi":"3.1.0"}', False, True),
        (b'{"info":{},"openapi":"\\u0033.1.0"}', False, True),
        (b'{"openapi":"3.0\\u002e1","info":{}}', False, False),
        (b'{"openapi":"3\\u002e1","info":{}}', False, True),
        (b'{"openapi":"3\\u002e1","info":{"title":"' + b"a" * 300 + b'"}}', False, True),
        (b'{"a":{"openapi":"3.0.0"},"openapi":"3.1.0","b":{"openapi":"3.0.0"}}', False, True),
        (b'{"openapi":"3.1.0","a":"b\\"openapi\\":\\"3.0.0\\""}', False, True),
        (b'{"openapi":"3.1.0","info":{"title":"' + b"a" * 300 + b'"}}', False, True),
        (
            b'{"info":{"title":"' + b"3.14 " * 100 + b'"},"x":"3.2","openapi":"3.0.0","y":' + b"1}",
            False,
            False,
        ),
        (
            b'{"info":{"title":"' + b"3.14 " * 100 + b'"},"openapi":"3.0.0","y":"' + b"3.1 " * 300 + b'"}',
            False,
            False,
        ),
        (
            b'{"info":{"title":"' + b"3.14 " * 100 + b'"},"openapi":"3.1.0","y":"' + b"3.1 " * 300 + b'"}',
            False,
            True,
        ),
        (b'{"info":{"title":"a \\u003c b \\n"},"openapi":"3.0.0"}', False, False),
        (b'{"info":{}}', False, False),
    ],
)
def test_version_is_found_wherever_it_stands(text: bytes, is_first_30: bool, may_be: bool) -> None:
    assert may_be_later(text) is may_be
    for coding in (Coding.IDENTITY, Coding.GZIP):
        body = encode_body(text, coding)
        assert begins_with_30(body, coding) is is_first_30
        assert coded_may_be_later(body, coding, limits=Limits()) is may_be


def test_bytes_that_are_not_gzip_are_no_later_version() -> None:
    assert not coded_may_be_later(b"no gzip", Coding.GZIP, limits=Limits())
