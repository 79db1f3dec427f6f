"""What the change log may cost: bytes, the event loop's time, and a process that is killed."""

from __future__ import annotations

import asyncio
import random
import signal
import time
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml

from data.compared import compared_documents, definition, document
from running.process import specmux
from running.service import directory, service
from shared_data import NATIVE, documents, read
from specmux_aggregator.changes.document_history import KeptDocuments
from specmux_aggregator.changes.entries import ComparisonOutcome, PublishedVersion, entry_of, read_entry
from specmux_aggregator.changes.log import ChangeLog
from specmux_aggregator.config.settings import ChangeSettings
from specmux_aggregator.http.content_codings import encode_body
from specmux_aggregator.http.messages import Coding
from specmux_aggregator.model.backend import BackendName
from specmux_aggregator.model.observation import Hash
from specmux_converters.document import DEFAULT_LIMITS
from specmux_converters.group_versions import GroupVersion
from specmux_tools.change_log import ENTRY_MAX, compare_documents, findings_of
from specmux_tools.differences.reports import report_of

KEY = GroupVersion("apis/example.com/v1")
LAG_MAX = 0.010
"""Seconds of processor time that the loop's thread may take between two looks: what others use of the machine
is not in it."""


def fields(count: int) -> dict[str, Any]:
    return {"type": "object", "properties": {f"field{n}": {"type": "string"} for n in range(count)}}


def version(number: int) -> PublishedVersion:
    return PublishedVersion(Hash(f"{number:0128X}"), BackendName("b"))


def test_an_entry_is_cut_and_still_counts_all() -> None:
    report = report_of(compared_documents(document(fields(3000)), document(fields(0))), old="", new="")
    found = findings_of(report)
    assert found.is_truncated
    assert len(found.changes) <= ENTRY_MAX
    assert 0 < len(orjson.loads(found.changes)) < 3000
    assert found.counts["breaking"] == 3000


def test_a_thousand_changes_and_more_stay_within_their_bounds() -> None:
    log = ChangeLog(most_entries=1000, most_bytes=1 << 20)
    kept = KeptDocuments(most_each=10, most_bytes=1 << 20)
    chance = random.Random(1)
    for number in range(1, 3001):
        name = GroupVersion(f"apis/g{number % 7}/v1")
        versions = version(number - 1), version(number)
        log.add(entry_of(number, 0.0, name, ComparisonOutcome.COMPARED, versions))
        kept.put(name, version(number).hash, chance.randbytes(chance.randrange(1, 60_000)))
        assert log.bytes <= 1 << 20
        assert kept.size <= 1 << 20
    assert len(log) == 1000
    assert log.dropped_id == 2000
    assert log.bytes == sum(len(entry.body) for entry in log)
    assert all(len(kept.hashes(GroupVersion(f"apis/g{group}/v1"))) <= 10 for group in range(7))
    log = ChangeLog(most_entries=1000, most_bytes=2000)
    for number in range(1, 50):
        log.add(entry_of(number, 0.0, KEY, ComparisonOutcome.COMPARED, (None, version(number))))
        assert log.bytes <= 2000
    assert len(log) > 1


def test_an_entry_is_read_as_it_was_written() -> None:
    entry = entry_of(7, 1_700_000_000.25, KEY, ComparisonOutcome.MOVED, (version(1), None))
    assert read_entry(entry.body) == entry
    for body in (b"", b"{}", b"[]", b'{"format":"other"}', entry.body[:-5]):
        assert read_entry(body) is None


def test_what_cannot_be_compared_is_a_reason() -> None:
    assert isinstance(compare_documents(b"junk", None, (), limits=DEFAULT_LIMITS), str)
    good = encode_body(orjson.dumps(document(fields(1))), Coding.ZSTD)
    assert isinstance(
        compare_documents(good, encode_body(b"[]", Coding.ZSTD), (), limits=DEFAULT_LIMITS), str
    )


def test_the_loop_is_free_while_core_v1_is_compared(tmp_path: Path) -> None:
    old, new = (read(documents(release)["api/v1"]) for release in NATIVE[:2])
    target = tmp_path / "docs" / "api"
    target.mkdir(parents=True)
    (target / "v1.json").write_bytes(old)

    async def scenario() -> tuple[list[float], str]:
        async with service(directory("d", tmp_path / "docs"), changes=ChangeSettings(settle=0.05)) as client:
            history = client.app.history
            assert history is not None
            await client.ready()
            await client.until(lambda: history.is_settled, "settled")
            (target / "v1.json").write_bytes(new)
            await client.until(lambda: not history.is_settled, "seen")
            lags: list[float] = []
            while not len(history.log):
                before = time.thread_time()
                await asyncio.sleep(0.001)
                lags.append(time.thread_time() - before)
            (entry,) = history.log
            return lags, entry.outcome.value

    lags, outcome = asyncio.run(scenario())
    assert outcome == "compared"
    assert max(lags) < LAG_MAX


CONFIG = """\
listen: {{port: 0, shutdown_timeout: 1}}
changes: {{settle: 0}}
state: {{directory: "{state}"}}
backends: [{{name: crds, kind: crds, directory: "{folder}"}}]
"""


@pytest.mark.long
def test_a_killed_service_tears_nothing(tmp_path: Path) -> None:
    """Killed while it logs; every next life reads whole entries, and goes on with higher ids."""
    folder = tmp_path / "crds"
    folder.mkdir()
    config = tmp_path / "specmux.yaml"
    config.write_text(CONFIG.format(state=tmp_path / "state", folder=folder))

    def edit(number: int) -> None:
        text = yaml.safe_dump(definition(fields(number)))
        (tmp_path / "new").write_text(text)
        (tmp_path / "new").replace(folder / "widgets.yaml")

    seen: list[int] = []
    number = 1
    for _ in range(3):
        edit(number)
        with specmux("serve", "--config", str(config)) as process:
            process.until_ready()
            for _ in range(3):
                number += 1
                edit(number)
                highest = max(seen, default=0)
                process.until(partial(_has_more, process, highest), "another entry")
                found = _ids(process)
                assert found == sorted(set(found))
                # The newest may have been on its way to the disk when the process was killed.
                assert set(seen[:-1]) <= set(found)
                seen = found
            process.send(signal.SIGKILL)
            process.wait()
    assert len(seen) >= 7


def _has_more(process: Any, highest: int) -> bool:
    return any(identity > highest for identity in _ids(process))


def _ids(process: Any) -> list[int]:
    """Of all entries, the oldest first. Raises for one that is not whole."""
    status, _, body = process.get(f"/openapi/changes/{KEY}")
    if status != 200:
        return []
    return [int(entry["id"]) for entry in orjson.loads(body)["entries"]][::-1]
