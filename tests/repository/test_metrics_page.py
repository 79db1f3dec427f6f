"""docs/metrics.md against a running service: nothing undocumented, nothing that does not exist."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from fake_apiserver import FakeAPIServer, document, serving, swagger
from running_service import backend, service
from specmux_converters.group_versions import GroupVersion

PAGE = Path(__file__).resolve().parents[2] / "docs" / "metrics.md"


def documented() -> dict[str, set[str]]:
    rows = re.findall(r"^\| `(\w+)` \|([^|]*)\|", PAGE.read_text(), re.MULTILINE)
    return {name: set(re.findall(r"`(\w+)`", labels)) for name, labels in rows}


def test_page_lists_every_metric_with_its_labels() -> None:
    async def scenario() -> str:
        one = FakeAPIServer({"apis/apps/v1": document("apis/apps/v1")})
        two = FakeAPIServer(None, swagger("apis/old/v1"))
        three = FakeAPIServer(None, None)
        owned = frozenset({GroupVersion("apis/dead/v1")})
        dead = backend("d", "http://127.0.0.1:1", group_versions=owned)
        async with (
            serving(one),
            serving(two),
            serving(three),
            service(backend("a", one.url), backend("b", two.url), backend("c", three.url), dead) as client,
        ):
            await client.ready()
            client.app.note_config(error="broken")
            for url in (await client.paths()).values():
                await client.get(url)
            await client.get("/openapi/v3/apis/apps/v1?hash=STALE")
            await client.get("/openapi/v2")
            return (await client.get("/metrics"))[2].decode()

    exposed: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(asyncio.run(scenario())):
        if family.name.startswith("process_") or family.name.endswith("_created"):
            continue
        name = family.name + ("_total" if family.type == "counter" else "")
        labels = {label for sample in family.samples for label in sample.labels}
        exposed.setdefault(name, set()).update(labels - {"le"})
    page = documented()
    assert exposed.keys() == page.keys()
    assert {name: labels for name, labels in exposed.items() if labels} == {
        name: labels for name, labels in page.items() if labels
    }
