"""The change log on the page: a backend's document changes, and its kind and its group-version say so."""

from __future__ import annotations

from pathlib import Path

import yaml

from data.compared import definition
from running.service import Client, service
from specmux_aggregator.config.settings import ChangeSettings
from specmux_aggregator.model.backend import Backend, BackendKind, BackendName
from specmux_aggregator.reader.page_answers import POLICY

KEY = "apis/example.com/v1"
PAGES = (f"/openapi/ui/kind/{KEY}/Widget", f"/openapi/ui/changes/{KEY}", "/openapi/ui/changes")
STRING = {"type": "string"}


def write(folder: Path, *names: str) -> None:
    folder.mkdir(exist_ok=True)
    manifest = definition({"type": "object", "properties": dict.fromkeys(names, STRING)})
    (folder / "widgets.yaml").write_text(yaml.safe_dump(manifest))


def crds(folder: Path) -> Backend:
    return Backend(name=BackendName("crds"), kind=BackendKind.CRDS, directory=folder)


async def read(client: Client, page: str) -> tuple[str, str]:
    """Its ETag and text. On a machine that is busy the reader takes longer to start than a request waits."""
    for _ in range(10):
        status, headers, body = await client.get(page)
        if status == 200 and "ETag" in headers:
            assert headers["Content-Security-Policy"] == POLICY
            return headers["ETag"], body.decode()
    raise AssertionError(f"{page}: {status}")


async def test_a_change_is_on_the_pages_of_its_kind_and_its_group_version(tmp_path: Path) -> None:
    write(tmp_path, "a", "<b>")
    async with service(crds(tmp_path), changes=ChangeSettings(settle=0.05)) as client:
        history = client.app.history
        assert history is not None
        await client.ready()
        await client.until(lambda: history.is_settled, "settled")
        before = {page: await read(client, page) for page in PAGES}
        assert all("field-removed" not in text for _, text in before.values())
        write(tmp_path, "a")
        await client.until(lambda: len(history.log) == 1, "an entry")
        for page in PAGES:
            etag, text = await read(client, page)
            assert etag != before[page][0]
            assert "1 breaking" in text
            assert text.count("crds <code>") == 2
            status, _, body = await client.get(page, If_None_Match=etag)
            assert (status, body) == (304, b"")
            if page != PAGES[-1]:
                assert "<code>spec.&lt;b&gt;</code>" in text
                assert "<code>field-removed</code>: the field is gone" in text
        for page, link in (("", f"./group-version/{KEY}"), ("status", f"./changes/{KEY}")):
            text = (await client.get(f"/openapi/ui/{page}"))[2].decode()
            assert f'href="{link}"' in text
            assert 'href="./changes">Changes</a>' in text
        assert "1 breaking" in (await read(client, f"/openapi/ui/group-version/{KEY}"))[1]
        assert (await client.get("/openapi/ui/changes/apis/nowhere/v1"))[0] == 404
        assert (await client.get(PAGES[1], method="POST"))[0] == 405


async def test_the_pages_say_that_no_log_is_kept(tmp_path: Path) -> None:
    write(tmp_path, "a")
    async with service(crds(tmp_path), changes=ChangeSettings(enabled=False)) as client:
        await client.ready()
        kind, *others = PAGES
        assert 'id="changes"' not in (await read(client, kind))[1]
        for page in others:
            assert "Set <code>changes.enabled: true</code>" in (await read(client, page))[1]
        for page in ("", "status"):
            assert "changes/apis" not in (await client.get(f"/openapi/ui/{page}"))[2].decode()
