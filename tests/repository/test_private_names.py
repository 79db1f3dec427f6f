"""Names of other libraries that begin with an underscore, and may go with any release of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from aiohttp.client_proto import ResponseHandler

from specmux_aggregator.upstream.connections.response_reader import ResponseReader

PRODUCT = Path(__file__).parents[2]

AIOHTTPS = (
    "_connection_lost_called",
    "_drop_timeout",
    "_factory",
    "_loop",
    "_on_read_timeout",
    "_payload",
    "_read_timeout",
    "_read_timeout_handle",
    "_reading_paused",
    "_reschedule_timeout",
)

WEBSOCKETS = {"set_parser", "read_timeout"}
"""What aiohttp asks of its protocol for WebSockets alone; and of its queue, which is ours."""

QUEUE = {"at_eof", "exception", "feed_data", "feed_eof", "is_eof"}


@pytest.mark.parametrize("name", AIOHTTPS)
def test_connections_to_servers_use_none_of_aiohttps_private_names(name: str) -> None:
    modules = sorted((PRODUCT / "cache" / "specmux_cache" / "http").glob("*.py"))
    modules += sorted((PRODUCT / "aggregator" / "specmux_aggregator" / "upstream").glob("*.py"))
    assert len(modules) > 10
    assert [path.name for path in modules if re.search(rf"\b{name}\b", path.read_text())] == []


def test_workers_use_no_private_name_of_their_pool() -> None:
    jobs = PRODUCT / "aggregator" / "specmux_aggregator" / "workers"
    assert [path.name for path in jobs.glob("*.py") if "._processes" in path.read_text()] == []


def test_reader_has_all_that_aiohttps_own_protocol_has_for_http() -> None:
    """A release of aiohttp that asks for more fails here before it fails a request."""
    wanted = {name for name in dir(ResponseHandler) if not name.startswith("_")} - WEBSOCKETS - QUEUE
    assert sorted(wanted - set(dir(ResponseReader))) == []
