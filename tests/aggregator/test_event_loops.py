from __future__ import annotations

import asyncio
import sys

import pytest

from specmux_aggregator.errors import InvalidConfig
from specmux_aggregator.event_loops import loop_factory, running_loop_name


def run_on(name: str) -> str:
    async def named() -> str:
        return running_loop_name()

    with asyncio.Runner(loop_factory=loop_factory(name)) as runner:
        return runner.run(named())


@pytest.mark.parametrize(
    ("name", "found"), [("asyncio", "asyncio"), ("uvloop", "uvloop"), ("auto", "asyncio")]
)
def test_loop_where_uvloop_is_installed(name: str, found: str) -> None:
    if found == "uvloop":
        pytest.importorskip("uvloop", reason="there is no uvloop for this platform")
    else:
        assert loop_factory(name) is asyncio.new_event_loop
        return
    assert run_on(name) == found


def test_loop_where_uvloop_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvloop", None)
    assert loop_factory("auto") is asyncio.new_event_loop
    with pytest.raises(InvalidConfig, match=r"specmux\[uvloop\]"):
        loop_factory("uvloop")
