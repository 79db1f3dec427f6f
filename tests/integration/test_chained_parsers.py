"""A sample of the payloads that ``make stress`` sends through nginx, HAProxy and Varnish."""

from __future__ import annotations

from pathlib import Path

import pytest

from running.fronts import program
from stress.stress_chains import FRONTS, Findings, payload, run, take_answers


@pytest.mark.parametrize("front", FRONTS)
async def test_front_and_server_take_the_same_for_a_request(front: str, tmp_path: Path) -> None:
    if program(front) is None:
        pytest.skip(f"wants {front}: apt-get install nginx-light haproxy varnish")
    found = await run(front, range(60), tmp_path)
    assert found.wrong == []
    assert found.requests > 60, "hardly anything came through"
    assert found.unanswered < 6


def test_payloads_hide_requests_and_contradict_themselves() -> None:
    sent = b"".join(payload(seed) for seed in range(300))
    for each in (b"GET /hidden", b"\n\n", b";a=b", b"http://a/", b"Content-Length: +", b", chunked"):
        assert each in sent


@pytest.mark.parametrize(
    ("ours", "body", "is_wrong"),
    [(b"/1.0", b"at /1.0\n", False), (b"/hidden", b"at /hidden\n", True), (b"/1.0", b"at /2.0\n", True)],
)
def test_answer_under_another_url_is_noticed(ours: bytes, body: bytes, is_wrong: bool) -> None:
    found = Findings()
    head = b"HTTP/1.1 200 OK\r\nX-Target: /1.0?q\r\nX-Path: " + ours + b"\r\n\r\n"
    refused = b"HTTP/1.1 400 Bad Request\r\n\r\n"
    take_answers(found, head + body + refused, 1)
    assert bool(found.wrong) is is_wrong
    assert found.answers == {"200": 1, "400": 1}
