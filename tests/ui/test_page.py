"""The page in a browser: accessible, quick, complete without a script, and nothing foreign.

``make ui`` runs these: playwright, axe, and Debian's chromium.
"""

from __future__ import annotations

import gzip
import statistics
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from data.compared import document
from data.explained_documents import bed, release
from running.browser import PREFIX, Browsed, browsed, chromium
from shared_data import shared
from specmux_aggregator.questions.frames import assets
from specmux_aggregator.questions.prose import prose

POD = "kind/api/v1/Pod"
PAGES = (
    "",
    "search?q=restart+policy",
    "search",
    "status",
    f"{POD}#spec.containers.image",
    "kind/apis/autoscaling/v2/HorizontalPodAutoscaler",
)
HOSTILE = (
    "<script>alert(1)</script> <img src=x onerror=alert(1)> javascript:alert(1) "
    'https://example.org/"onmouseover=alert(1) </details></main><style>*{display:none}</style> {{ 7 * 7 }}'
)


@pytest.fixture(scope="module")
def launched() -> Iterator[Any]:
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def page(launched: Any) -> Iterator[Browsed]:
    with browsed(launched, release()) as made:
        yield made


@shared
@pytest.mark.parametrize("width", [1200, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("path", PAGES)
def test_nothing_is_wrong_with_a_page(page: Browsed, path: str, scheme: str, width: int) -> None:
    opened = page.opened(path, scheme=scheme, width=width)
    assert opened.violations() == []
    assert opened.overflow() == 0
    assert opened.complaints == []
    assert opened.foreign == []


@shared
def test_field_that_a_link_names_is_shown_without_a_script(page: Browsed) -> None:
    opened = page.opened(f"{POD}#spec.containers.securityContext.runAsNonRoot", script=False)
    target = opened.page.locator("[id='spec.containers.securityContext.runAsNonRoot'] > summary")
    assert target.is_visible()
    top = target.bounding_box()["y"]
    assert top > opened.page.locator("header").bounding_box()["height"] - 1
    assert opened.page.locator("pre code").inner_text().startswith("apiVersion: v1\nkind: Pod\n")
    opened.page.fill("#q", "deployment replicas")
    opened.page.press("#q", "Enter")
    assert opened.page.locator(".rows a").first.inner_text() == "Deployment.spec.replicas"


@shared
def test_keyboard_alone_is_enough(page: Browsed) -> None:
    opened = page.opened("")
    opened.page.keyboard.press("/")
    opened.page.keyboard.type("cronjob sched")
    opened.page.wait_for_selector("[role=option]")
    opened.page.keyboard.press("ArrowDown")
    with opened.page.expect_navigation():
        opened.page.keyboard.press("Enter")
    assert opened.page.url.endswith("kind/apis/batch/v1/CronJob#spec.schedule")
    opened.page.locator("[id='spec.schedule'] > summary").focus()
    opened.page.keyboard.press("ArrowUp")
    assert opened.page.evaluate("document.activeElement.parentElement.id") == "spec.jobTemplate"
    opened.page.keyboard.press("ArrowRight")
    opened.page.keyboard.press("ArrowRight")
    assert opened.page.evaluate("document.activeElement.parentElement.id") == "spec.jobTemplate.metadata"
    opened.page.keyboard.press("ArrowLeft")
    assert opened.page.evaluate("document.activeElement.parentElement.id") == "spec.jobTemplate"
    assert opened.complaints == []


@shared
def test_field_that_is_opened_has_a_link_to_itself(page: Browsed) -> None:
    opened = page.opened(f"{POD}#spec.containers.image")
    link = opened.page.locator("[id='spec.containers.image'] > .l a")
    link.wait_for()
    assert link.get_attribute("href") == "#spec.containers.image"
    opened.page.locator("[id='spec.containers.name'] > summary").click()
    opened.page.locator("[id='spec.containers.name'] > .l a").click()
    assert opened.page.url.endswith("#spec.containers.name")
    assert opened.violations() == []


@shared
def test_page_works_behind_a_prefix(page: Browsed) -> None:
    opened = page.opened("", is_behind_prefix=True)
    opened.page.click("text=CronJob")
    assert opened.page.url.endswith(f"{PREFIX}/openapi/ui/kind/apis/batch/v1/CronJob")
    assert opened.page.evaluate("getComputedStyle(document.querySelector('header')).position") == "sticky"
    opened.page.fill("#q", "pod")
    opened.page.wait_for_selector("[role=option]")
    opened.page.press("#q", "Enter")
    opened.page.click(".rows a >> nth=0")
    assert f"{PREFIX}/openapi/ui/kind/" in opened.page.url
    assert opened.complaints == []


def test_hostile_description_is_text(launched: Any) -> None:
    field = {"type": "string", "description": HOSTILE, "default": HOSTILE, "enum": [HOSTILE]}
    document: Any = bed(**{"name": field, "<b>": field})
    with browsed(launched, {"apis/garden.example.org/v1": document}) as garden:
        for path in ("kind/apis/garden.example.org/v1/Bed#spec.name", "search?q=%3Cscript%3Ename"):
            opened = garden.opened(path)
            assert opened.complaints == []
            assert opened.foreign == []
            planted = "document.querySelectorAll('main script, main style, main img').length"
            assert opened.page.evaluate(planted) == 0
            links = "[...document.querySelectorAll('main a')].map((each) => each.protocol)"
            assert set(opened.page.evaluate(links)) <= {"http:", "https:"}


def test_change_log_is_text_and_needs_no_script(launched: Any) -> None:
    key = "apis/example.com/v1"
    field = {"type": "string"}
    names = (HOSTILE, "name", "<b>")
    before = document({"type": "object", "properties": dict.fromkeys(names, field)})
    after = document({"type": "object", "properties": {"name": {"type": "integer"}}})
    with browsed(launched, {key: before}, {key: after}) as widgets:
        for path in ("", "status", "changes", f"changes/{key}", f"kind/{key}/Widget#changes"):
            for scheme, width in (("light", 1200), ("dark", 390)):
                opened = widgets.opened(path, scheme=scheme, width=width)
                assert opened.violations() == []
                assert opened.overflow() == 0
                assert opened.complaints == []
                assert opened.foreign == []
                planted = "document.querySelectorAll('main script, main style, main img').length"
                assert opened.page.evaluate(planted) == 0
        opened = widgets.opened("", script=False, is_behind_prefix=True)
        opened.page.click("text=Changes")
        opened.page.click(f"text={key}")
        assert "field-removed" in opened.page.locator("main").inner_text()
        opened.page.click("text=Widget")
        assert opened.page.url.endswith(f"{PREFIX}/openapi/ui/kind/{key}/Widget")
        assert "field-removed" in opened.page.locator(".entry").inner_text()
        opened.page.click(f".sub ~ p >> text={key}")
        opened.page.click("text=More, as JSON")
        assert opened.page.url.endswith(f"{PREFIX}/openapi/changes/{key}")


@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow])
@given(st.text(alphabet=st.sampled_from("<>&\"'`=/:. ahtpsjvcripx\n{}%\u2028\x00"), max_size=80))
def test_prose_has_no_markup_but_its_own(text: str) -> None:
    made = prose(text)
    for own in ("<p>", "</p>", "</a>", ' rel="noopener noreferrer">'):
        made = made.replace(own, "")
    while '<a href="http' in made:
        before, _, rest = made.partition('<a href="http')
        made = before + rest.partition('"')[2]
    assert "<" not in made


@shared
def test_weight_and_time(page: Browsed, tally: Callable[[str, int], None]) -> None:
    with urllib.request.urlopen(f"{page.address}/openapi/ui/{POD}") as answer:
        body = answer.read()
    kib = len(gzip.compress(body, 6)) / 1000
    assert kib <= 100
    times = [page.opened(POD).timing() for _ in range(5)]
    load, blocked = (statistics.median(each[at] for each in times) for at in (0, 1))
    print(f"Pod: {kib:.0f} KB gzip, load {load:.0f} ms, blocked {blocked:.0f} ms")
    tally("KB of Pod's page, gzip (at most 100)", round(kib))
    tally("ms until Pod's page is loaded (at most 500 on a machine that does nothing else)", round(load))
    tally("ms that Pod's page is blocked (at most 100 there)", round(blocked))
    assert load <= 1500
    assert blocked <= 300


def test_script_and_style_are_small() -> None:
    assert len(assets()["page.js"].body) <= 6000
    assert len(assets()["page.css"].body) <= 6000
