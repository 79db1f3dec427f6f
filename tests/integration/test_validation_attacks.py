"""``POST /openapi/validate`` against bodies that are slow, large or costly, and a reader that dies."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest

from running.validating import KIND, Shop, head_of, order, request_head, run
from specmux_aggregator.config.settings import ValidationSettings
from specmux_aggregator.reader.validation_endpoint import BODY_MAX
from specmux_aggregator.server.bodies import BODIES_MAX
from specmux_tools.reader.state import ReaderState

pytestmark = pytest.mark.long

ONE = orjson.dumps(order(count=1))


def padded(size: int) -> bytes:
    return ONE + b" " * (size - len(ONE))


def test_body_of_3_mib_is_read_and_not_a_byte_more(tmp_path: Path) -> None:
    async def chunks(size: int) -> Any:
        body = padded(size)
        for start in range(0, size, 64 * 1024):
            yield body[start : start + 64 * 1024]

    async def scenario(shop: Shop) -> None:
        assert (await shop.post(padded(BODY_MAX)))[0] == 200
        assert (await shop.post(chunks(BODY_MAX)))[0] == 200
        for body in (padded(BODY_MAX + 1), chunks(BODY_MAX + 1)):
            status, _, told = await shop.post(body)
            assert (status, told["reason"]) == (413, "RequestEntityTooLarge")
            assert told["message"] == "Request entity too large: limit is 3145728"
        assert shop.bodies == 0

    run(tmp_path, scenario)


def test_client_is_asked_to_go_on_or_told_at_once(tmp_path: Path) -> None:
    async def scenario(shop: Shop) -> None:
        reader, writer = await shop.raw()
        writer.write(request_head(len(ONE), "Expect: 100-continue"))
        assert (await head_of(reader)).startswith(b"HTTP/1.1 100 ")
        writer.write(ONE)
        assert (await head_of(reader)).startswith(b"HTTP/1.1 200 ")
        writer.close()
        reader, writer = await shop.raw()
        writer.write(request_head(BODY_MAX + 1, "Expect: 100-continue"))
        assert (await head_of(reader)).startswith(b"HTTP/1.1 413 ")
        writer.close()

    run(tmp_path, scenario)


def test_bodies_that_trickle_end_and_keep_nobody_waiting(tmp_path: Path) -> None:
    async def scenario(shop: Shop) -> None:
        assert (await shop.post(order(count=1)))[0] == 200
        slow = []
        for _ in range(40):
            reader, writer = await shop.raw()
            writer.write(request_head(1000) + b"{")
            slow.append((reader, writer))
        await shop.client.until(lambda: shop.bodies == 40)
        assert shop.held.cost >= 40
        assert (await shop.post(order(count=1)))[0] == 200
        for reader, writer in slow:
            assert (await head_of(reader)).startswith(b"HTTP/1.1 408 ")
            writer.close()
        assert shop.bodies == 0

    run(tmp_path, scenario, timeout=4.0)


def test_oldest_of_too_many_held_bodies_gives_way(tmp_path: Path) -> None:
    async def scenario(shop: Shop) -> None:
        slow = []
        size = BODY_MAX - 100
        for number in range(BODIES_MAX // BODY_MAX):
            reader, writer = await shop.raw()
            writer.write(request_head(BODY_MAX) + padded(size))
            await shop.client.until(lambda number=number: shop.bodies == (number + 1) * size)
            slow.append((reader, writer))
        status, _, _ = await shop.post(padded(BODY_MAX))
        assert status == 200
        assert (await head_of(slow[0][0])).startswith(b"HTTP/1.1 408 ")
        assert shop.bodies == (len(slow) - 1) * size
        assert shop.held.cost < BODIES_MAX + 1024 * 1024
        for _, writer in slow:
            writer.close()
        await shop.client.until(lambda: shop.bodies == 0)

    run(tmp_path, scenario)


def test_broken_framing_is_told(tmp_path: Path) -> None:
    async def scenario(shop: Shop) -> None:
        reader, writer = await shop.raw()
        writer.write(request_head(None) + b"5\r\nhello\r\nzz\r\n")
        assert (await head_of(reader)).startswith(b"HTTP/1.1 400 ")
        writer.close()
        reader, writer = await shop.raw()
        writer.write(request_head(1000) + b"{")
        await shop.client.until(lambda: shop.bodies == 1)
        writer.close()
        await shop.client.until(lambda: shop.bodies == 0)
        assert (await shop.post(order(count=1)))[0] == 200

    run(tmp_path, scenario)


def bomb() -> bytes:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    return "\n".join([*lines, "apiVersion: shop.example.org/v1", "kind: Order"]).encode()


def keys(count: int) -> bytes:
    return orjson.dumps(KIND)[:-1] + b',"spec":{' + b",".join([b'"a":1'] * count) + b"}}"


COSTLY: list[tuple[bytes, str, set[int]]] = [
    (bomb(), "yaml", {400}),
    (keys(100_000), "json", {400}),
    (b"{%b}" % b",".join(b'"k%d":1' % n for n in range(200_000)), "json", {400}),
    (b"[" * 100_000, "json", {400}),
    (b"[" * 100_000, "yaml", {400}),
    (b"\x81" * 100_000, "cbor", {400}),
    (b"\xbb\xff\xff\xff\xff\xff\xff\xff\xff", "cbor", {400}),
    (b'{"a":1e999999999}', "json", {400}),
    (b"\xff" * 1000, "json", {400}),
    (b"a: " + b"[" * 50_000 + b"]" * 50_000, "yaml", {400}),
    (b"- " * 200_000, "yaml", {400}),
    (b"\n".join(b"k%d: &a%d {x: 1, y: [1, 2]}" % (n, n) for n in range(60_000)), "yaml", {413, 503, 504}),
]


@pytest.mark.long
def test_costly_bodies_are_answered(tmp_path: Path) -> None:
    async def scenario(shop: Shop) -> None:
        assert (await shop.post(order(count=1)))[0] == 200
        for number, (body, form, codes) in enumerate(COSTLY):
            content_type = f"application/{form}"
            status, _, told = await shop.post(body, "?fieldValidation=Strict", content_type=content_type)
            assert status in codes, (number, told["message"][:300])
            assert (await shop.post(order(count=1)))[0] == 200

    run(tmp_path, scenario)


def test_rule_that_takes_long_ends_at_its_cost_limit(tmp_path: Path) -> None:
    async def scenario(shop: Shop) -> None:
        status, _, answer = await shop.post(order(count=1, lines=["a"] * 2000))
        assert status == 422
        assert "call cost exceeds limit" in answer["message"]

    run(tmp_path, scenario)


def test_no_more_than_may_are_checked_at_one_time(tmp_path: Path) -> None:
    async def scenario(shop: Shop) -> None:
        assert (await shop.post(order(count=1)))[0] == 200
        answers = await asyncio.gather(*(shop.post(order(count=1)) for _ in range(24)))
        codes = [status for status, _, _ in answers]
        assert set(codes) == {200, 429}
        assert codes.count(200) >= 2
        busy = next(headers for status, headers, _ in answers if status == 429)
        assert busy["Retry-After"] == "1"
        assert (await shop.post(order(count=1)))[0] == 200

    run(tmp_path, scenario, most=2)


def test_lone_surrogates_and_control_characters_are_data(tmp_path: Path) -> None:
    async def scenario(shop: Shop) -> None:
        assert (await shop.post(order(count=1)))[0] == 200
        validation = shop.client.app._validation
        assert validation is not None
        reader = validation._reading._reader
        first = await reader._worker.run(os.getpid)
        for escape, shown in (("\\ud800", "\ufffd"), ("\\u001b", "\\x1b"), ("\\u0000", "\\x00")):
            body = orjson.dumps(order(count=1)).replace(b'"one"', b'"x%s"' % escape.encode())
            for content_type in ("application/json", "application/yaml"):
                status, _, told = await shop.post(body, content_type=content_type)
                assert status in ((422,) if content_type.endswith("json") else (400, 422)), told
                if status == 422:
                    assert f'metadata.name: Invalid value: "x{shown}"' in told["message"]
        assert await reader._worker.run(os.getpid) == first

    run(tmp_path, scenario)


def sleepy(state: ReaderState) -> None:
    time.sleep(2)


def test_64_clients_that_ask_at_once_are_all_answered(tmp_path: Path) -> None:
    async def scenario(shop: Shop) -> None:
        answers = await asyncio.gather(*(shop.post(order(count=1)) for _ in range(64)))
        assert [status for status, _, _ in answers] == [200] * 64

    run(tmp_path, scenario, most=ValidationSettings().max_in_flight)


def test_one_address_does_not_take_all_places(tmp_path: Path) -> None:
    async def scenario(shop: Shop) -> None:
        assert (await shop.post(order(count=1)))[0] == 200
        validation = shop.client.app._validation
        assert validation is not None
        working = asyncio.create_task(validation._reading._reader.ask(sleepy))
        many = [asyncio.create_task(shop.post(order(count=1))) for _ in range(8)]
        done, _ = await asyncio.wait(many, return_when=asyncio.FIRST_COMPLETED)
        assert {each.result()[0] for each in done} == {429}
        connector = aiohttp.TCPConnector(local_addr=("127.0.0.2", 0))
        async with aiohttp.ClientSession(connector=connector) as session:
            other = await Shop(shop.client, session).post(order(count=1))
        assert other[0] == 200
        assert sorted(each[0] for each in await asyncio.gather(*many)) == [200] * 3 + [429] * 5
        await working

    run(tmp_path, scenario, most=4)


def test_killed_process_is_started_anew_and_harms_nobody_else(tmp_path: Path) -> None:
    async def scenario(shop: Shop) -> None:
        assert (await shop.post(order(count=1)))[0] == 200
        validation = shop.client.app._validation
        assert validation is not None
        reader = validation._reading._reader
        first = await reader._worker.run(os.getpid)
        os.kill(first, signal.SIGKILL)
        codes = [(await shop.post(order(count=1)))[0] for _ in range(3)]
        assert codes[-1] == 200
        assert set(codes) <= {200, 503}
        assert await reader._worker.run(os.getpid) != first
        assert (await shop.client.get("/openapi/search?q=name"))[0] == 200

    run(tmp_path, scenario)
