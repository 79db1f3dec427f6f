"""Identities are shared by those who ask as the same, and by nobody else."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from deadline import DEADLINE
from specmux_aggregator.model.backend import Backend, BackendName
from specmux_aggregator.upstream.credentials import Identities
from specmux_cache.access.server_access import Credentials, ExecPlugin, ServerTLS

SHARED = Backend(
    name=BackendName("b"),
    url="https://10.0.0.1",
    credentials=Credentials(token="t"),
    tls=ServerTLS(insecure_skip_verify=True),
)


@pytest.mark.parametrize(
    "changed",
    [
        {"name": BackendName("c")},
        {"url": "https://10.0.0.2"},
        {"credentials": Credentials()},
        {"credentials": Credentials(token="u")},
        {"tls": ServerTLS()},
        {"proxy_url": "http://10.0.0.3"},
    ],
    ids=["name", "url", "no credentials", "credentials", "tls", "proxy"],
)
def test_identity_is_another_when_what_it_is_made_of_is(changed: dict[str, Any]) -> None:
    held = Identities()
    assert held.take(SHARED) is held.take(replace(SHARED, priority=7))
    assert held.take(SHARED) is not held.take(replace(SHARED, **changed))


async def test_program_goes_on_until_the_last_who_asks_is_gone(tmp_path: Path) -> None:
    command, pid = tmp_path / "plugin", tmp_path / "pid"
    command.write_text(f"#!/bin/sh\necho $$ > {pid}.new; mv {pid}.new {pid}; exec sleep 600\n")
    command.chmod(0o700)
    backend = replace(SHARED, credentials=Credentials(exec_plugin=ExecPlugin(command=str(command))))

    held = Identities()
    one, two = held.take(backend), held.take(backend)
    waiting = [asyncio.ensure_future(identity.current()) for identity in (one, two)]
    async with asyncio.timeout(DEADLINE):
        while not pid.exists():
            await asyncio.sleep(0.01)
    await held.give_back(backend)
    assert not any(item.done() for item in waiting)
    await held.give_back(backend)
    for item in waiting:
        with pytest.raises(asyncio.CancelledError):
            await item
    assert held.take(backend) is not one
    stat = Path(f"/proc/{pid.read_text().strip()}/stat")
    assert not stat.exists() or stat.read_text().split()[2] == "Z"


def test_what_is_given_away_is_told_once_while_it_is_so(caplog: pytest.LogCaptureFixture) -> None:
    stripped = replace(SHARED, credentials=Credentials())

    async def scenario() -> None:
        held = Identities()
        held.take(SHARED)
        held.take(SHARED)
        held.take(stripped)
        assert caplog.text.count("not verified") == 1
        await held.give_back(SHARED)
        await held.give_back(SHARED)
        await held.give_back(stripped)
        held.take(SHARED)
        assert caplog.text.count("not verified") == 2

    with caplog.at_level(logging.WARNING):
        asyncio.run(scenario())
