"""Published documents that are checked beside all that serves them."""

from __future__ import annotations

import asyncio
import json
import logging
from pathlib import Path
from typing import Any

import pytest

from running.service import Client, directory, service
from specmux_aggregator.config.settings import DocumentSettings

PATIENCE = 1500.0  # seconds: the process that checks runs when the machine has nothing else to do
pytestmark = pytest.mark.timeout(2 * PATIENCE)

OK = {"200": {"description": "d"}}


def write(folder: Path, group: str, responses: Any) -> None:
    path = folder / f"apis/{group}/v1.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    paths = {f"/apis/{group}/v1/": {"get": {"responses": responses}}}
    path.write_text(json.dumps({"openapi": "3.0.0", "info": {"title": "t", "version": "1"}, "paths": paths}))


async def checks(client: Client, *, count: int) -> Any:
    """The report, once so many documents are checked."""
    async with asyncio.timeout(PATIENCE):
        while True:
            _, _, body = await client.get("/status")
            report = json.loads(body)["documentChecks"]
            if report["checked"] == count and not report["waiting"]:
                return report
            await asyncio.sleep(0.1)


async def test_what_is_found_is_in_status_metrics_and_the_log_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write(tmp_path, "good.io", OK)
    write(tmp_path, "bad.io", 1)
    caplog.set_level(logging.WARNING)
    patient = DocumentSettings(check="warn", check_timeout=PATIENCE)
    async with service(directory("files", tmp_path), documents=patient) as client:
        await client.ready()
        report = await checks(client, count=2)
        assert report["findings"].keys() == {"apis/bad.io/v1"}
        found = report["findings"]["apis/bad.io/v1"]
        assert found["errors"] >= 1
        assert found["examples"]
        _, _, metrics = await client.get("/metrics")
        counts = f'{{group_version="apis/bad.io/v1",level="error"}} {float(found["errors"])}'
        assert f"specmux_document_findings{counts}" in metrics.decode()
        write(tmp_path, "new.io", OK)
        await checks(client, count=3)
        write(tmp_path, "bad.io", OK)
        async with asyncio.timeout(PATIENCE):
            while (await checks(client, count=3))["findings"]:
                await asyncio.sleep(0.1)
    told = [record.getMessage() for record in caplog.records if "standard" in record.getMessage()]
    assert len(told) == 1
    assert "apis/bad.io/v1 of backend files" in told[0]


async def test_a_document_that_takes_too_long_is_not_checked(tmp_path: Path) -> None:
    write(tmp_path, "slow.io", OK)
    impatient = DocumentSettings(check="warn", check_timeout=0.01)
    async with service(directory("files", tmp_path), documents=impatient) as client:
        await client.ready()
        report = await checks(client, count=1)
        assert "notChecked" in report["findings"]["apis/slow.io/v1"]
        status, _, _ = await client.get("/openapi/v3/apis/slow.io/v1")
        assert status == 200


async def test_nothing_is_checked_unless_it_is_asked_for(tmp_path: Path) -> None:
    write(tmp_path, "good.io", OK)
    async with service(directory("files", tmp_path)) as client:
        await client.ready()
        _, _, body = await client.get("/status")
        assert json.loads(body)["documentChecks"] is None
        _, _, metrics = await client.get("/metrics")
        assert b"specmux_document_findings" not in metrics
