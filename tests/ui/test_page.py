"""The web UI in a browser: accessible, quick, complete without a script, and nothing foreign.

``make ui`` runs these: playwright, axe, and Debian's chromium.
"""

from __future__ import annotations

import gzip
import statistics
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from data.compared import document
from data.explained_documents import bed, release
from running.browser import PREFIX, Browsed, browsed, chromium
from shared_data import PUBLISHED, marks, needs
from specmux_aggregator.reader.assets import assets
from specmux_converters.group_versions import GroupVersion
from specmux_tools.explanation.tree import Field, FieldPlace, tree_of

POD = "kind/api/v1/Pod"
CORE = GroupVersion("api/v1")
CRUMBS = "document.getElementById('crumbs').innerText"
PAGES = (
    "",
    "group-version/apis/apps/v1",
    "type/api/v1/io.k8s.api.core.v1.Container",
    "compare/apis/autoscaling/v2/HorizontalPodAutoscaler?with=apis/autoscaling/v1",
    "kind/api/v1/Nope",
    "validate",
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


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("path", PAGES)
def test_nothing_is_wrong_with_a_page(page: Browsed, path: str, scheme: str, width: int) -> None:
    opened = page.opened(path, scheme=scheme, width=width)
    assert opened.violations() == []
    assert opened.overflow() == 0
    # A browser says of a page that is 404 that it is.
    assert [each for each in opened.complaints if "404" not in each] == []
    assert opened.foreign == []


@needs(PUBLISHED)
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


REPEATED = "spec.initContainers.securityContext.runAsNonRoot"


@needs(PUBLISHED)
def test_repeated_field_is_a_link_to_where_it_stands_without_a_script(page: Browsed) -> None:
    opened = page.opened(f"{POD}#{REPEATED}", script=False)
    link = opened.page.locator(f"[id='{REPEATED}']")
    assert link.is_visible()
    link.click()
    assert opened.page.url.endswith("#spec.containers.securityContext.runAsNonRoot")
    shown = opened.page.locator("[id='spec.containers.securityContext.runAsNonRoot'] > summary")
    assert shown.is_visible()


@needs(PUBLISHED)
@pytest.mark.timeout(400)  # axe over all 1,347 fields
def test_repeated_fields_are_copied_where_they_are_opened(page: Browsed) -> None:
    opened = page.opened(f"{POD}#{REPEATED}")
    assert opened.page.locator(f"[id='{REPEATED}'] > summary").is_visible()
    assert opened.page.evaluate("document.querySelector(':target').id") == REPEATED
    assert opened.page.evaluate(CRUMBS) == "Pod › spec › initContainers[] › securityContext › runAsNonRoot"
    opened.page.locator("[id='spec.containers'] > summary").click()
    opened.page.locator("[id='spec.containers.startupProbe'] > summary").click()
    assert opened.page.locator("[id='spec.containers.startupProbe.exec'] > summary").is_visible()
    opened.page.click("#expand")
    # Every field of the document once, whatever was a link before.
    schema = release()[CORE]["components"]["schemas"]["io.k8s.api.core.v1.Pod"]
    ids = opened.page.evaluate("[...document.querySelectorAll('.tree [id]')].map((each) => each.id)")
    assert sorted(ids) == sorted(paths(tree_of(release()[CORE], FieldPlace((), schema))))
    assert opened.page.locator("[data-same]").count() == 0
    assert opened.violations() == []


def paths(field: Field, above: str = "") -> Iterator[str]:
    for each in field.fields:
        yield f"{above}{each.name}"
        yield from paths(each, f"{above}{each.name}.")


@needs(PUBLISHED)
def test_keyboard_alone_is_enough(page: Browsed) -> None:
    opened = page.opened("")
    opened.page.keyboard.press("/")
    opened.page.keyboard.type("cronjob sched")
    opened.page.wait_for_selector("[role=option]")
    opened.page.keyboard.press("ArrowDown")
    with opened.page.expect_navigation():
        opened.page.keyboard.press("Enter")
    assert opened.page.url.endswith("kind/apis/batch/v1/CronJob#spec.schedule")
    opened.page.locator("[id='spec.jobTemplate'] > summary").focus()
    opened.page.keyboard.press("ArrowUp")
    assert opened.page.evaluate("document.activeElement.parentElement.id") == "spec.concurrencyPolicy"
    opened.page.keyboard.press("ArrowDown")
    opened.page.keyboard.press("ArrowRight")
    opened.page.keyboard.press("ArrowRight")
    assert opened.page.evaluate("document.activeElement.parentElement.id") == "spec.jobTemplate.metadata"
    opened.page.keyboard.press("ArrowLeft")
    assert opened.page.evaluate("document.activeElement.parentElement.id") == "spec.jobTemplate"
    assert opened.complaints == []


FOCUSED = """
() => {
  const each = document.activeElement;
  const { left, top, width, height } = each.getBoundingClientRect();
  const [x, y] = [left + Math.min(width / 2, 20), Math.max(top, 0) + Math.min(height / 2, 8)];
  const above = document.elementFromPoint(x, y);
  const isSeen = Boolean(above) && (each.contains(above) || above.contains(each));
  return [each.textContent.trim(), isSeen, getComputedStyle(each).outlineStyle];
}
"""


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize(
    "path",
    [
        "",
        "kind/apis/apps/v1/Deployment",
        pytest.param("search?q=restart+policy", marks=marks(PUBLISHED)),
        "validate",
    ],
)
def test_focus_is_seen_and_follows_the_page(page: Browsed, path: str, width: int) -> None:
    opened = page.opened(path, width=width)
    stops = []
    for _ in range(16):
        opened.page.keyboard.press("Tab")
        stops.append(opened.page.evaluate(FOCUSED))
        if stops[-1][0] == "Validate" and path == "validate" and len(stops) > 6:
            break  # the last stop of that page
    assert [text for text, _, _ in stops[:2]] == ["Skip to the content", "specmux"]
    assert [stop for stop in stops if stop[1:] != [True, "solid"]] == []


def test_escape_closes_what_is_open(page: Browsed) -> None:
    opened = page.opened(POD)
    opened.page.keyboard.press("/")
    opened.page.keyboard.type("pod")
    opened.page.wait_for_selector("[role=option]")
    opened.page.keyboard.press("Escape")
    assert opened.page.locator("#suggestions").is_hidden()
    assert opened.page.get_attribute("#q", "aria-expanded") == "false"
    opened.page.fill("#filter", "runAs")
    opened.page.press("#filter", "Escape")
    assert opened.page.locator("[id='spec.containers'] > summary").is_visible()


def test_nothing_is_promised_that_needs_a_script_without_one(page: Browsed) -> None:
    for path in ("", POD, "status", "validate"):
        opened = page.opened(path, script=False)
        assert opened.page.locator(".keys, main button, main input").locator("visible=true").count() == 0
        assert opened.page.locator("script:not([src])").count() == 0
    assert "needs JavaScript" in opened.page.locator("main").inner_text()


@needs(PUBLISHED)
def test_path_of_the_field_stays_in_sight(page: Browsed) -> None:
    opened = page.opened(f"{POD}#spec.containers.image")
    assert opened.page.evaluate(CRUMBS) == "Pod › spec › containers[] › image"
    top = opened.page.locator("#crumbs").bounding_box()["y"]
    assert 0 < top < opened.page.locator("[id='spec.containers.image']").bounding_box()["y"]
    opened.page.locator("[id='spec.containers.name']").click(position={"x": 30, "y": 12})
    assert opened.page.evaluate(CRUMBS) == "Pod › spec › containers[] › name"
    opened.page.click("#crumbs a >> text=name")
    assert opened.page.url.endswith("#spec.containers.name")
    opened.page.evaluate("document.getElementById('spec.activeDeadlineSeconds').scrollIntoView()")
    opened.until_text("#crumbs", "Pod › spec › activeDeadlineSeconds")
    assert opened.violations() == []


@needs(PUBLISHED)
def test_kind_opens_with_spec_first_sentences_and_links_to_types(page: Browsed) -> None:
    opened = page.opened(POD, script=False, width=1280)
    assert opened.page.locator("[id='spec.containers'] > summary").is_visible()
    assert opened.page.locator("[id='spec.affinity'] > summary > span").inner_text().startswith("If spec")
    assert opened.page.locator("[id='spec.affinity'] > p").first.is_hidden()
    opened.page.click("text=[]Container >> nth=0")
    assert opened.page.url.endswith("/type/api/v1/io.k8s.api.core.v1.Container")
    opened.page.click(".side >> text=Secret")
    assert opened.page.url.endswith("/kind/api/v1/Secret")


def test_field_that_is_not_there_is_said(page: Browsed) -> None:
    opened = page.opened(f"{POD}#spec.containers[].nosuch")
    said = opened.page.locator("#unknown")
    assert said.inner_text() == "Pod has no field spec.containers[].nosuch. The closest is spec.containers."
    said.locator("a").click()
    assert opened.page.evaluate("document.getElementById('spec.containers').open")
    assert not said.is_visible()


@needs(PUBLISHED)
def test_fields_are_filtered_and_opened(page: Browsed) -> None:
    opened = page.opened(POD)
    assert opened.page.locator("[id='spec.containers'] > summary").is_visible()
    opened.page.fill("#filter", "runAsNonRoot")
    shown = opened.page.locator(".tree [id]:visible")
    assert {each.rpartition(".")[2] for each in shown.evaluate_all("all => all.map((each) => each.id)")} == {
        *("spec", "containers", "initContainers", "ephemeralContainers", "securityContext", "runAsNonRoot")
    }
    opened.page.fill("#filter", "")
    assert not opened.page.locator("[id='spec.containers.image']").is_visible()
    opened.page.click("#expand")
    assert opened.page.locator("[id='spec.containers.image']").is_visible()
    assert opened.violations() == []
    opened.page.click("#expand")
    assert not opened.page.locator("[id='spec.containers']").is_visible()


def test_kinds_are_filtered(page: Browsed) -> None:
    opened = page.opened("")
    opened.page.fill(".bar input", "cronj")
    assert opened.page.locator(".cards li:visible").all_inner_texts() == ["CronJob\nv1"]
    assert opened.page.locator(".bar [role=status]").inner_text() == "1 kind"
    assert opened.violations() == []


def test_header_and_content_stand_on_one_grid(page: Browsed) -> None:
    for width in (390, 1280, 1920):
        for path in ("", POD, "status", "search?q=pod", "changes", "validate", COMPARED):
            opened = page.opened(path, width=width)
            places = "[...document.querySelectorAll('header .home, main > :is(nav, article), main > h1')]"
            seen = "filter((each) => each.checkVisibility())"
            lefts = opened.page.evaluate(f"{places}.{seen}.map((each) => each.getBoundingClientRect().x)")
            search = opened.page.locator("#q").bounding_box()["x"]
            edges = {lefts[0], search} if path in ("", POD) else {lefts[0]} if width < 1280 else {search}
            assert set(lefts[1:]) <= edges, (path, width)


def test_kind_has_columns_where_there_is_room(page: Browsed) -> None:
    parts = ("main > article", "main > aside", "main > nav")
    for width, seen in ((1000, 1), (1100, 2), (1280, 3)):
        opened = page.opened(POD, width=width)
        boxes = [opened.page.locator(part).bounding_box() for part in parts]
        beside = {box["x"] for box in boxes if box}
        assert len(beside) == seen, width
        if seen > 1:
            opened.page.mouse.wheel(0, 600)
            opened.page.wait_for_selector("#crumbs a >> nth=1", state="attached")
            header = opened.page.locator("header").bounding_box()
            example = opened.page.locator("#example").bounding_box()
            assert header["y"] + header["height"] <= example["y"] < 200, "the right column stays"


@needs(PUBLISHED)
def test_manifest_is_judged_with_marks_at_its_lines(page: Browsed) -> None:
    opened = page.opened("validate")
    pod = (
        "apiVersion: v1\nkind: Pod\nmetadata:\n  name: web\nspec:\n  containers:\n  - name: a\n    imag: x\n"
    )
    opened.page.fill("textarea", f"{pod}---\napiVersion: v1\nkind: Pdo\n")
    opened.page.click("#validate button")
    opened.page.wait_for_selector(".lines")
    assert opened.page.locator("#verdict .box").inner_text() == "2 objects: 2 errors."
    marked = "(each, at) => each.matches('.bad') ? [at + 1] : []"
    bad = opened.page.evaluate(f"[...document.querySelectorAll('.lines li')].flatMap({marked})")
    assert bad == [8, 10]
    assert 'unknown field "spec.containers[0].imag"' in opened.page.locator(".lines").inner_text()
    assert 'did you mean "image"?' in opened.page.locator(".lines").inner_text()
    assert opened.page.locator("textarea").is_hidden()
    assert "did you mean Pod?" in opened.page.locator(".lines").inner_text()
    assert (opened.violations(), opened.overflow()) == ([], 0)


def test_print_has_the_fields_and_no_controls(page: Browsed) -> None:
    opened = page.opened(POD)
    opened.page.emulate_media(media="print")
    assert not opened.page.locator("header").is_visible()
    assert not opened.page.locator("#filter").is_visible()
    assert opened.page.locator("[id='spec.containers']").is_visible()


UNSEEN = "[...document.querySelectorAll('.wide')].some((each) => each.scrollWidth > each.clientWidth)"
COMPARED = PAGES[3]


@pytest.mark.parametrize("path", ["status", "changes", COMPARED])
def test_tables_are_whole_on_a_phone_and_on_paper(page: Browsed, path: str) -> None:
    opened = page.opened(path, width=390)
    assert opened.page.evaluate(UNSEEN) is False
    opened.page.set_viewport_size({"width": 680, "height": 900})  # A4 within its margins
    opened.page.emulate_media(media="print")
    assert (opened.page.evaluate(UNSEEN), opened.overflow()) == (False, 0)


def test_names_of_kinds_and_versions_break_between_words(page: Browsed) -> None:
    for width in (390, 1100, 1280):
        opened = page.opened("", width=width)
        broken = (
            "[...document.querySelectorAll('.cards li a')].filter((each) => each.getClientRects().length > 1)"
        )
        assert opened.page.evaluate(f"{broken}.map((each) => each.textContent)") == []


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


@needs(PUBLISHED)
def test_weight_and_time(page: Browsed, tally: Callable[[str, int], None]) -> None:
    with urllib.request.urlopen(f"{page.address}/openapi/ui/{POD}") as answer:
        body = answer.read()
    kib = len(gzip.compress(body, 6)) / 1000
    assert kib <= 80
    times = [page.opened(POD).timing() for _ in range(5)]
    load, blocked = (statistics.median(each[at] for each in times) for at in (0, 1))
    print(f"Pod: {kib:.0f} KB gzip, load {load:.0f} ms, blocked {blocked:.0f} ms")
    tally("KB of Pod's page, gzip (at most 80)", round(kib))
    tally("ms until Pod's page is loaded (at most 500 on a machine that does nothing else)", round(load))
    tally("ms that Pod's page is blocked (at most 100 there)", round(blocked))


def test_script_and_style_are_small() -> None:
    assert len(gzip.compress(assets()["page.js"].body)) <= 5000
    assert len(gzip.compress(assets()["page.css"].body)) <= 4000


def test_path_that_is_too_long_loses_whole_parts(page: Browsed) -> None:
    opened = page.opened(f"{POD}#spec.containers.livenessProbe.httpGet.httpHeaders.name", width=390)
    shown = opened.page.evaluate(CRUMBS)
    assert shown.startswith("Pod › … › ")
    assert shown.endswith(" › name")
    assert set(shown.split(" › ")[2:]) <= {
        "containers[]",
        "livenessProbe",
        "httpGet",
        "httpHeaders[]",
        "name",
    }
    assert opened.page.evaluate("document.getElementById('crumbs').scrollWidth") <= 390


def test_suggestions_say_whose_they_are(page: Browsed) -> None:
    opened = page.opened("")
    opened.page.fill("#q", "deplo")
    opened.page.wait_for_selector("[role=option]")
    assert opened.page.locator("[role=option]").first.inner_text().split() == ["Deployment", "apps/v1"]
