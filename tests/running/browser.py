"""A service in a thread, and a browser before it."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
import pytest

from deadline import DEADLINE
from fakes.prefix_proxy import proxying
from running.nginx import NGINX, nginx_before
from running.service import Client, directory, service
from specmux_aggregator.config.settings import ChangeSettings, ValidationSettings

PREFIX = "/clusters/one"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


LONG_TASKS = """
window.blocked = 0;
const add = (list) => {
  for (const each of list.getEntries()) window.blocked += Math.max(0, each.duration - 50);
};
new PerformanceObserver(add).observe({ type: "longtask", buffered: true });
"""


@contextmanager
def served(
    documents: Mapping[Any, Any], changed: Mapping[Any, Any] | None = None
) -> Iterator[tuple[str, str]]:
    """A service over these documents, and nginx, or a proxy of the tests where there is none, that takes
    ``PREFIX`` away; their addresses. ``changed``: what some of them become, each an entry of the log."""
    before: Any = proxying if NGINX is None else nginx_before
    with tempfile.TemporaryDirectory() as name:
        _write(Path(name), documents)
        started: threading.Event = threading.Event()
        address: list[str] = []
        loop = asyncio.new_event_loop()
        ended = asyncio.Event()

        async def scenario() -> None:
            async with (
                service(
                    directory("documents", Path(name)),
                    changes=ChangeSettings(settle=0.05),
                    validation=ValidationSettings(enabled=True),
                ) as client,
                before(client.base, PREFIX) as proxy,
            ):
                await client.ready()
                await _read(client)
                await _change(client, Path(name), changed or {})
                address[:] = [client.base, proxy.url]
                started.set()
                await ended.wait()

        thread = threading.Thread(target=lambda: loop.run_until_complete(scenario()), daemon=True)
        thread.start()
        try:
            assert started.wait(2 * DEADLINE), "the service did not start"
            yield address[0], address[1]
        finally:
            loop.call_soon_threadsafe(ended.set)
            thread.join(DEADLINE)
            loop.close()


def _write(folder: Path, documents: Mapping[Any, Any]) -> None:
    for key, document in documents.items():
        path = folder / f"{key}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(orjson.dumps(document))


async def _read(client: Client) -> None:
    """Wait until the reader has every document: the first pages of a busy machine are those of a start."""
    async with asyncio.timeout(DEADLINE):
        while True:
            status, _, body = await client.get("/openapi/ui/")
            if status == 200 and b"missing</summary>" not in body:
                return
            await asyncio.sleep(0.1)


async def _change(client: Client, folder: Path, documents: Mapping[Any, Any]) -> None:
    """Write other documents, and wait until the change log has them."""
    history = client.app.history
    if history is None or not documents:
        return
    await client.until(lambda: history.is_settled, "settled")
    _write(folder, documents)
    await client.until(lambda: len(history.log) == len(documents), "entries of the change log")


@dataclass(slots=True)
class Opened:
    page: Any
    complaints: list[str] = field(default_factory=list)
    """What the browser's console says: violations of the policy among it."""
    foreign: list[str] = field(default_factory=list)
    """Requests to anybody else."""

    def violations(self) -> list[str]:
        from axe_playwright_python.sync_playwright import Axe

        # From the top: a link that is half below a bar while one scrolls is no small target.
        self.page.evaluate("scrollTo(0, 0)")
        found = (
            Axe().run(self.page, options={"rules": {"target-size": {"enabled": True}}}).response["violations"]
        )
        return [f"{each['id']}: {each['nodes'][0]['html'][:200]}" for each in found]

    def overflow(self) -> int:
        """Pixels by which the page is wider than the window."""
        return int(self.page.evaluate("document.documentElement.scrollWidth - innerWidth"))

    def until_text(self, selector: str, text: str) -> None:
        """Wait until an element has this text."""
        from playwright.sync_api import expect

        expect(self.page.locator(selector)).to_have_text(text, timeout=30_000)

    def timing(self) -> tuple[float, float]:
        """Milliseconds to the load event, and of long tasks beyond 50 ms each."""
        load = "performance.getEntriesByType('navigation')[0].loadEventEnd"
        return self.page.evaluate(load), self.page.evaluate("window.blocked")


@dataclass(slots=True)
class Browsed:
    browser: Any
    address: str
    behind: str
    """The same, behind ``PREFIX``."""
    contexts: list[Any] = field(default_factory=list)

    def opened(
        self,
        path: str,
        *,
        scheme: str = "light",
        width: int = 1200,
        script: bool = True,
        is_behind_prefix: bool = False,
    ) -> Opened:
        self.close()
        context = self.browser.new_context(
            color_scheme=scheme, viewport={"width": width, "height": 900}, java_script_enabled=script
        )
        self.contexts.append(context)
        base = self.behind if is_behind_prefix else self.address
        opened = Opened(context.new_page())
        opened.page.on("console", lambda message: opened.complaints.append(message.text))
        opened.page.on("pageerror", lambda error: opened.complaints.append(str(error)))
        opened.page.on(
            "request", lambda request: request.url.startswith(base) or opened.foreign.append(request.url)
        )
        if script:
            opened.page.add_init_script(LONG_TASKS)
        opened.page.goto(f"{base}/openapi/ui/{path}")
        return opened

    def close(self) -> None:
        while self.contexts:
            self.contexts.pop().close()


@contextmanager
def chromium() -> Iterator[Any]:
    """Skips where there is no browser: ``make ui`` says what is missing."""
    playwright = pytest.importorskip("playwright.sync_api", reason="no playwright: make ui brings it")
    if CHROMIUM is None:
        pytest.skip("no chromium on this machine: apt-get install chromium")
    with playwright.sync_playwright() as started:
        # As root there is no sandbox to be had.
        launched = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        try:
            yield launched
        finally:
            launched.close()


@contextmanager
def browsed(
    launched: Any,
    documents: Mapping[Any, Any],
    changed: Mapping[Any, Any] | None = None,
) -> Iterator[Browsed]:
    """A service over these documents before the browser, with what some of them become later."""
    with served(documents, changed) as (address, behind):
        made = Browsed(launched, address, behind)
        try:
            yield made
        finally:
            made.close()
