"""Every tier gives the same bytes for the same bytes, Date and Expires aside.

Each case runs three times in a row on one server of each tier, so that the memo is asked for what it learned.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest

from running.serving import (
    BIG,
    MIDDLE,
    TIERS,
    Running,
    eventually,
    read_answer,
    read_exactly,
    request,
    running,
    timeless,
)

END = request("/end", close=True)
AUDIT = "Audit-Id: 0"


@pytest.fixture(scope="module")
def tiers() -> Iterator[dict[str, Running]]:
    with running("parsed") as one, running("memoised") as two:
        yield {"parsed": one, "memoised": two}


@pytest.fixture(scope="module")
def impatient_tiers() -> Iterator[dict[str, Running]]:
    """For heads that never end."""
    with running("parsed", header_timeout=1.0) as one, running("memoised", header_timeout=1.0) as two:
        yield {"parsed": one, "memoised": two}


def byte_by_byte(data: bytes) -> list[bytes]:
    return [data[index : index + 1] for index in range(len(data))]


HALF = "half a head"
UNFINISHED = (HALF, "nothing")
"""Cases in which the server waits for a head until the end of its time for one."""

CASES: dict[str, list[bytes]] = {
    "one, closed": [request(close=True)],
    "one, kept": [request(), END],
    "many in a row": [request(), request(), request(), request("/b"), END],
    "pipelined": [request() + request("/b") + END],
    "pipelined x100": [request() * 99 + END],
    "pipelined x100, then one more": [request() * 100, END],
    "pipelined behind a slow one": [request("/slow") + request() * 40 + END],
    "one and a half": [request() + request("/b")[:20], request("/b")[20:], END],
    "two halves": [request()[:10], request()[10:], END],
    "byte by byte": [*byte_by_byte(request()), *byte_by_byte(END)],
    "split before the last LF": [request()[:-1], request()[-1:], END],
    "split inside the end of the head": [request()[:-2], request()[-2:], END],
    "split before the end of the head": [request()[:-4], request()[-4:] + END],
    "empty lines first": [b"\r\n\r\n" + request(), b"\r\n" + END],
    "empty lines after": [request() + b"\r\n\r\n", END],
    "head": [request(method="HEAD"), END],
    "head of a large one": [request("/big", method="HEAD"), END],
    "middle": [request("/middle"), END],
    "middle, pipelined": [request("/middle") * 5 + END],
    "large": [request("/big"), END],
    "large, pipelined": [request("/big") * 3 + END],
    "not modified": [request("/a", 'If-None-Match: "v"'), END],
    "negotiated": [request("/a", "Accept: application/cbor", "Accept-Encoding: gzip"), END],
    "repeated fields": [request("/a", "Accept: application/json", "Accept: */*"), END],
    "field names in odd case": [request("/a", "aCCEPT: application/cbor"), END],
    "spaces around a value": [request("/a", "Accept:  \t application/cbor \t"), END],
    "a unique field": [request("/a", AUDIT + str(number)) for number in range(4)] + [END],
    "query": [request("/a?hash=1&x=%20"), request("/a?"), request("/a??"), END],
    "fragment": [request("/a#f"), END],
    "encoded path": [request("/%2e%2e/a%2fb/../c"), END],
    "absolute form": [request("http://other/a?x=1"), request("http://other"), END],
    "absolute form, unknown scheme": [request("ftp://other/a"), END],
    "asterisk": [request("*", method="OPTIONS"), END],
    "refused by the service": [request("/bad"), request("/bad"), request("/bad"), END],
    "POST with a body": [
        request(method="POST", body=b"", close=False)[:-2] + b"Content-Length: 3\r\n\r\nabc",
        END,
    ],
    "GET with a body": [request()[:-2] + b"Content-Length: 3\r\n\r\nabc", END],
    "GET with a body that looks like a request": [
        request()[:-2] + b"Content-Length: %d\r\n\r\n" % len(request("/inner")) + request("/inner"),
        END,
    ],
    "GET with a body that comes late": [request()[:-2] + b"Content-Length: 3\r\n\r\n", b"abc", END],
    "GET with an empty body": [request()[:-2] + b"Content-Length: 0\r\n\r\n", END],
    "GET with a large body": [request()[:-2] + b"Content-Length: 70000\r\n\r\n" + b"x" * 70000],
    "chunked GET": [request()[:-2] + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"],
    "chunked GET that ends like a head": [request()[:-2] + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"],
    "Content-Length and Transfer-Encoding": [
        request()[:-2] + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    ],
    "two different lengths": [request()[:-2] + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd"],
    "close, then more in one piece": [request(close=True) + request()],
    "keep-alive asked for": [request("/a", "Connection: keep-alive"), END],
    "HTTP/1.0": [b"GET /a HTTP/1.0\r\n\r\n"],
    "HTTP/1.0 kept": [b"GET /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", b"GET /a HTTP/1.0\r\n\r\n"],
    "HTTP/2.0": [b"GET /a HTTP/2.0\r\nHost: a\r\n\r\n"],
    "HTTP/2 preface": [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"],
    "RTSP": [b"GET /a RTSP/1.0\r\nHost: a\r\n\r\n"],
    "RTSP in two pieces": [b"GET /a RT", b"SP/1.0\r\nHost: a\r\n\r\n"],
    "RTSP byte by byte": byte_by_byte(b"OPTIONS /a RTSP/1.1\r\nHost: a\r\n\r\n"),
    "RTSP behind another": [request() + b"GET /a RTSP/1.0\r\nHost: a\r\n\r\n"],
    "RTSP in a field": [request("/a", "Via: GET /a RTSP/1.0"), request("/a", "X: a RTSP/1.0"), END],
    "RTSP in a path": [request("/RTSP/1.0"), END],
    "RTSP in a field in two pieces": [
        request("/a", "X: a RTSP/1.0")[:44],
        request("/a", "X: a RTSP/1.0")[44:],
        END,
    ],
    "RTSP in a body": [
        request(method="POST")[:-2] + b"Content-Length: 19\r\n\r\n",
        b"GET /a RTSP/1.0\r\n\r\n",
        END,
    ],
    "ICE": [b"SOURCE /a ICE/1.0\r\nHost: a\r\n\r\n"],
    "HTTP/0.9": [b"GET /a HTTP/0.9\r\nHost: a\r\n\r\n"],
    "missing Host": [b"GET /a HTTP/1.1\r\n\r\n"],
    "two Hosts": [request("/a", "Host: other")],
    "bad Host": [b"GET /a HTTP/1.1\r\nHost: a b\r\n\r\n"],
    "empty Host": [b"GET /a HTTP/1.1\r\nHost:\r\n\r\n", END],
    "IPv6 Host": [b"GET /a HTTP/1.1\r\nHost: [::1]:80\r\n\r\n", END],
    "Expect": [request("/a", "Expect: 100-continue"), END],
    "Expect with a body": [request("/a", "Expect: 100-continue", "Content-Length: 3"), b"abc", END],
    "Expect something else": [request("/a", "Expect: tea")],
    "lower-case method": [b"get /a HTTP/1.1\r\nHost: a\r\n\r\n"],
    "unknown method": [request(method="BREW")],
    "known method": [request(method="DELETE"), END],
    "CONNECT": [request("other:443", method="CONNECT")],
    "upgrade to websocket": [request("/a", "Connection: Upgrade", "Upgrade: websocket") + request("/b")],
    "upgrade to h2c": [request("/a", "Connection: Upgrade", "Upgrade: h2c") + request("/b")],
    "garbage": [b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"],
    "NUL in the target": [b"GET /a\x00b HTTP/1.1\r\nHost: a\r\n\r\n"],
    "NUL in a field": [request("/a", "Accept: a\x00b")],
    "high bytes in the target": [b"GET /\xff\xfe HTTP/1.1\r\nHost: a\r\n\r\n"],
    "high bytes in a field": [request("/a", "Accept: \xff"), END],
    "long query": [request("/a?hash=" + "A" * 65536)],
    "long field": [request("/a", "X-Long: " + "A" * 65536)],
    "many fields": [request("/a", *(f"X-{number}: 1" for number in range(200)))],
    "longest line that passes": [request("/a?" + "A" * 8000), END],
    "folded field": [request("/a", "Accept: a,\r\n b")],
    "bare LF": [b"GET /a HTTP/1.1\nHost: a\n\n"],
    "a service that fails": [request("/broken")],
    "a slow one": [request("/slow"), END],
    "a slow one between": [request(), request("/slow"), request(), request(), END],
    HALF: [request()[:20]],
    "nothing": [],
}


AFTER_MEMOISED: dict[str, bytes] = {
    "close": request(close=True),
    "close, and more": request(close=True) + request(),
    "HTTP/1.0": b"GET /a HTTP/1.0\r\n\r\n",
    "missing Host": b"GET /a HTTP/1.1\r\n\r\n",
    "garbage": b"\x00\xff garbage\r\n\r\n",
    HALF: request()[:20],
    "a body": request()[:-2] + b"Content-Length: 3\r\n\r\nabc" + END,
    "upgrade": request("/a", "Connection: Upgrade", "Upgrade: websocket"),
    "many": request() * 50 + END,
    "a slow one": request("/slow") + END,
    "empty lines": b"\r\n\r\n" + END,
}


@pytest.mark.parametrize("case", CASES)
def test_tiers_answer_the_same(
    case: str, tiers: dict[str, Running], impatient_tiers: dict[str, Running]
) -> None:
    sent = CASES[case]
    if case in UNFINISHED:
        tiers = impatient_tiers
    expected = timeless(tiers["parsed"].exchange(*sent))
    for tier in TIERS:
        for _ in range(3):
            assert timeless(tiers[tier].exchange(*sent)) == expected, tier


@pytest.mark.parametrize("case", [case for case in CASES if CASES[case] and case not in UNFINISHED])
def test_tiers_answer_the_same_when_the_client_closes_its_side(case: str, tiers: dict[str, Running]) -> None:
    sent = CASES[case]
    expected = timeless(tiers["parsed"].exchange(*sent))
    for tier in TIERS:
        for _ in range(2):
            assert timeless(tiers[tier].exchange(*sent, half_close=True)) == expected, tier


@pytest.mark.parametrize("case", CASES)
def test_tiers_answer_the_same_when_all_comes_in_one_piece(
    case: str, tiers: dict[str, Running], impatient_tiers: dict[str, Running]
) -> None:
    sent = b"".join(CASES[case])
    if case in UNFINISHED:
        tiers = impatient_tiers
    expected = timeless(tiers["parsed"].exchange(sent))
    for tier in TIERS[1:]:
        for _ in range(2):
            assert timeless(tiers[tier].exchange(sent)) == expected, tier


@pytest.mark.parametrize("case", AFTER_MEMOISED)
def test_tiers_answer_the_same_after_a_memoised_request(
    case: str, tiers: dict[str, Running], impatient_tiers: dict[str, Running]
) -> None:
    sent = [request(), request(), request(), AFTER_MEMOISED[case]]
    if case in UNFINISHED:
        tiers = impatient_tiers
    expected = timeless(tiers["parsed"].exchange_in_step(*sent))
    assert expected.count(b"200 OK") >= 3
    for tier in TIERS[1:]:
        for _ in range(3):
            assert timeless(tiers[tier].exchange_in_step(*sent)) == expected, tier


def test_answers_are_what_was_asked_for(
    tiers: dict[str, Running], impatient_tiers: dict[str, Running]
) -> None:
    parsed = tiers["parsed"]
    answer = timeless(
        parsed.exchange(request("/a?x=1", "Accept: a", "Accept: b", "Accept-Encoding: gzip", close=True))
    )
    assert answer == (
        b'HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nETag: "v"\r\nContent-Length: 20\r\n'
        b"Connection: close\r\nDate: ...\r\n\r\n/a?x=1 a, b gzip 1\n"
    ).replace(b"Content-Length: 20", b"Content-Length: 19")
    assert parsed.exchange(request("/big"), END).count(BIG) == 1
    for tier in tiers.values():
        assert tier.exchange(*[request("/middle")] * 5, END).count(MIDDLE) == 5
    assert parsed.exchange(*CASES["pipelined x100"]).count(b"HTTP/1.1 200 OK") == 100
    assert parsed.exchange(*CASES["GET with a body that looks like a request"]).count(b"HTTP/1.1") == 2
    assert b"/inner" not in parsed.exchange(*CASES["GET with a body that looks like a request"])
    assert parsed.exchange(*CASES["close, then more in one piece"]).count(b"HTTP/1.1") == 1
    assert b"\r\nConnection: keep-alive\r\n" in parsed.exchange(*CASES["HTTP/1.0 kept"])
    assert b" 505 " in parsed.exchange(*CASES["HTTP/2.0"])
    for case in CASES:
        if case.startswith(("RTSP", "ICE")):
            is_other = case in (
                "RTSP",
                "RTSP in two pieces",
                "RTSP byte by byte",
                "RTSP behind another",
                "ICE",
            )
            assert (b" 505 " in parsed.exchange(*CASES[case])) is is_other, case
    assert b" 417 " in parsed.exchange(*CASES["Expect something else"])
    assert impatient_tiers["parsed"].exchange(*CASES[HALF]) == b""


@pytest.mark.parametrize("tier", TIERS)
def test_slow_reader_with_pipelining_gets_everything_in_order(tier: str, tiers: dict[str, Running]) -> None:
    """Back-pressure: more answers than any buffer holds, and a client that reads late and slowly."""
    targets = [target for number in range(16) for target in ("/big", f"/{number}", "/middle", "/slow")]
    bodies = {"/big": BIG, "/middle": MIDDLE}
    with tiers[tier].connect(receive_buffer=4096) as client:
        client.sendall(b"".join(map(request, targets)))
        for target in targets:
            body = read_answer(client).partition(b"\r\n\r\n")[2]
            assert body == bodies.get(target, f"{target}? None None 1\n".encode())


@pytest.mark.parametrize("tier", TIERS)
def test_reader_that_stalls_between_single_requests_gets_everything_in_order(
    tier: str, tiers: dict[str, Running]
) -> None:
    """A large answer is begun, cannot be finished at once, and other requests come meanwhile."""
    with tiers[tier].connect(receive_buffer=4096) as client:
        for _ in range(3):
            client.sendall(request("/big"))
            assert read_answer(client).endswith(BIG)
        client.sendall(request("/big"))
        first = read_exactly(client, 1000)
        client.sendall(request("/a"))
        client.sendall(request("/a"))
        rest = first[first.index(b"\r\n\r\n") + 4 :]
        rest += read_exactly(client, len(BIG) - len(rest))
        assert rest == BIG
        assert read_answer(client).endswith(b"/a? None None 1\n")
        assert read_answer(client).endswith(b"/a? None None 1\n")


def test_tiers_take_the_way_they_are_named_after(tiers: dict[str, Running]) -> None:
    def way(tier: str) -> tuple[int, int]:
        return tiers[tier].counts.at_once, tiers[tier].counts.memo_hits

    before = {tier: way(tier) for tier in TIERS}
    for tier in TIERS:
        with tiers[tier].connect() as client:
            for _ in range(5):
                client.sendall(request(f"/{tier}"))
                read_answer(client)
    for tier, memo_hits in (("memoised", 3), ("parsed", 0)):
        expected = (before[tier][0] + 5, before[tier][1] + memo_hits)
        eventually(partial(lambda tier, expected: way(tier) == expected, tier, expected))
