"""Pages over documents: home, search, a kind, a type, a group-version, two versions, the status, an error."""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import unescape
from typing import Any

import orjson
import pytest
import yaml

from data.explained_documents import bed
from specmux_aggregator.http.messages import Coding
from specmux_aggregator.reader.requests import (
    DocumentOrigin,
    DocumentRequest,
    ErrorRequest,
    QuestionRefusal,
    ReaderAnswer,
    SearchRequest,
    SiteParts,
)
from specmux_converters.group_versions import GroupVersion
from specmux_tools.explanation.tree import FieldPlace, tree_of
from specmux_tools.reader.state import ReaderState
from specmux_tools.web_ui.document_page import document_page
from specmux_tools.web_ui.page_frame import breakable, split_description
from specmux_tools.web_ui.pages import duration, error_page, home, search_page, status_page, validate_page
from specmux_tools.web_ui.tree import tree_html

KEY = GroupVersion("apis/garden.example.org/v1")
NEWER = GroupVersion("apis/garden.example.org/v2")
LONG = "How many there are. " + "It is counted once a day, in the morning, by whoever comes first. " * 4
NAME = {"type": "string", "description": "Its <b>name</b>.", "default": "x", "enum": ["x", "y"]}
SPEC: dict[str, Any] = {
    "name": NAME,
    "count": {"type": "integer", "format": "int32", "description": LONG},
    "soil": {"$ref": "#/components/schemas/Soil"},
}


def renamed(group: str, version: str, kind: str, **spec: Any) -> Any:
    """The document of the bed as another group, version and kind have it."""
    text = orjson.dumps(bed(**spec)).decode().replace("garden.example.org/v1", f"{group}/{version}")
    text = text.replace(
        '"group":"garden.example.org","version":"v1"', f'"group":"{group}","version":"{version}"'
    )
    return orjson.loads(
        text.replace('"kind":"Bed"', f'"kind":"{kind}"').replace("/beds", f"/{kind.lower()}s")
    )


def state_of(documents: Mapping[GroupVersion, Any]) -> ReaderState:
    state = ReaderState()
    state.version = "all"
    for key, document in documents.items():
        state.index.put(key, state.keep(key, orjson.dumps(document)), hash=key)
    return state


GARDEN = {
    KEY: bed(**SPEC),
    NEWER: renamed("garden.example.org", "v2", "Bed", name=NAME, light={"type": "string"}),
    GroupVersion("apis/apps/v1"): renamed("apps", "v1", "Deployment", replicas={"type": "integer"}),
    GroupVersion("apis/zoo.example.org/v1"): renamed("zoo.example.org", "v1", "Cage"),
    GroupVersion("apis/storage.k8s.io/v1"): renamed("storage.k8s.io", "v1", "StorageClass"),
}
GARDEN[KEY]["paths"]["/apis/garden.example.org/v1/beds"]["get"]["responses"] = {
    "200": {"content": {"application/json": {}, "application/cbor": {}}}
}


def text_of(found: object) -> str:
    assert isinstance(found, ReaderAnswer), found
    return found.body.decode()


def words(html: str) -> str:
    main = html.partition("<main")[2].partition(">")[2].partition("</main>")[0]
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", main.replace("<wbr>", ""))).split())


def origin(key: GroupVersion, release: str | None = None) -> DocumentOrigin:
    return DocumentOrigin(group_version=key, hash=key, owner="garden", provenance="native", release=release)


def shown(page: str, below: str, name: str = "", other: GroupVersion | None = None, **site: bool) -> Any:
    request = DocumentRequest(
        page=page,
        below=below,
        origin=origin(KEY),
        name=name,
        other=None if other is None else origin(other),
        entries=(),
    )
    parts = SiteParts(**site)
    return document_page(parts, request, Coding.IDENTITY, state_of(GARDEN), "all", ())


def searched(query: str) -> str:
    request = SearchRequest(query=query)
    return text_of(search_page(SiteParts(), request, Coding.IDENTITY, state_of(GARDEN), "all", ()))


def test_home_begins_with_what_most_look_for_and_has_a_kind_once() -> None:
    html = text_of(home(SiteParts(), Coding.IDENTITY, state_of(GARDEN), "all", ()))
    groups = re.findall(
        r"<h2 id=\"g\d+\"><a href=\"[^\"]*\">([^<]*)</a> <span class=\"n\">(\d+)</span>", html
    )
    assert [name for name, _ in groups] == ["apps", "storage.k8s.io", "garden.example.org", "zoo.example.org"]
    assert {count for _, count in groups} == {"1"}
    assert "4 kinds in 4 groups" in words(html)
    chips = html.partition('<ul class="chips"')[2].partition("</ul>")[0]
    assert re.findall(r'href="([^"]*)"', chips) == ["./kind/apis/apps/v1/Deployment"]
    assert html.count('kind/apis/garden.example.org/v2/Bed">Bed</a>') == 1
    assert 'href="./group-version/apis/garden.example.org/v2"' in html
    assert 'href="./kind/apis/garden.example.org/v1/Bed"' in html


def test_home_leads_to_documents_that_are_not_read_yet() -> None:
    html = text_of(home(SiteParts(), Coding.IDENTITY, state_of(GARDEN), "all", ("apis/late/v1",)))
    assert '<a href="./group-version/apis/late/v1">apis/late/v1</a>' in html
    assert "1 group-version is missing Not read yet, or the backend is down" in words(html)


def test_kind_is_shown_with_all_that_is_known_of_it() -> None:
    html = text_of(shown("kind", f"kind/{KEY}/Bed", "Bed", has_schemas=True, is_logged=True))
    assert '<details class=k id="spec" open>' in html
    # A short description stands whole; of a long one the first sentence, the rest a click away.
    assert '<div id="spec.name"><i>string</i><code>name</code> <small>default &#34;x&#34;</small>' in html
    assert "<small>x | y</small><p>Its &lt;b&gt;name&lt;/b&gt;.</p></div>" in html
    assert "<small>int32</small><span>How many there are.</span></summary><p>It is counted" in html
    assert (
        '<a href="../../../../type/apis/garden.example.org/v1/Soil">Soil</a><details class=k id="spec.soil">'
        in html
    )
    assert "<code>acidity</code> <b>required</b>" in html
    text = words(html)
    assert "Added compared with garden.example.org/v1: spec.light" in text
    assert "Missing: spec.count spec.soil" in text
    for link in (
        f"group-version/{KEY}",
        f"compare/{KEY}/Bed?with={NEWER}",
        f"../v3/{KEY}",
        "../../schemas/garden.example.org/bed_v1.json",
        f"changes/{KEY}",
    ):
        assert f'href="../../../../{link}"' in html, link
    assert '<a href="../../../../kind/apis/garden.example.org/v1/Bed" aria-current="page">Bed</a>' in html
    assert "<b>GET</b> returns application/json, application/cbor" in html
    example = yaml.safe_load(
        unescape(html.partition("<pre")[2].partition("<code>")[2].partition("</code>")[0])
    )
    assert example == {
        "apiVersion": "garden.example.org/v1",
        "kind": "Bed",
        "metadata": {"name": "example"},
        "spec": {},
    }


def test_repeated_fields_are_links_to_where_they_stand() -> None:
    inner = {"type": "object", "properties": {name: {"type": "string"} for name in "bcdefg"}}
    soil = {"type": "object", "properties": {"a": inner, **inner["properties"]}}
    document = bed(first={"$ref": "#/components/schemas/Soil"}, second={"$ref": "#/components/schemas/Soil"})
    document["components"]["schemas"]["Soil"] = soil
    tree = tree_of(document, FieldPlace((), document["components"]["schemas"]["Bed"]))
    html = tree_html(tree)
    whole, _, repeated = html.partition('<details class=k id="spec.second" data-same="spec.first">')
    assert whole.count("data-same") == 0
    assert (
        'Fields as in <a href="#spec.first">spec.first</a>: <a id="spec.second.a" href="#spec.first.a">a</a>'
        in repeated
    )
    ids = re.findall(r' id="([^"]*)"', html)
    assert len(ids) == len(set(ids)) == tree.size - 1
    assert {each[5:] for each in re.findall(r'href="#([^"]*)"', repeated)} <= {each[5:] for each in ids}


def test_type_has_a_page_with_its_fields_and_its_users() -> None:
    html = text_of(shown("type", f"type/{KEY}/Soil", "Soil"))
    assert "<code>acidity</code>" in html
    assert "Used by Soil below" in words(html)
    assert shown("type", f"type/{KEY}/Nope", "Nope") == QuestionRefusal(404, "the document has no type Nope")


def test_group_version_has_its_kinds_document_schemas_and_changes() -> None:
    html = text_of(shown("group-version", f"group-version/{KEY}", has_schemas=True, is_logged=True))
    assert "garden.example.org/v1 1 kind Bed beds Bed is where plants grow." in words(html)
    for link in (f"../v3/{KEY}?hash={KEY}", "../../schemas/garden.example.org/bed_v1.json", f"changes/{KEY}"):
        assert f'href="../../../{link}"' in html, link
    assert 'href="../../../group-version/apis/garden.example.org/v2"' in html


def test_two_versions_stand_side_by_side() -> None:
    html = text_of(shown("compare", f"compare/{KEY}/Bed", "Bed", NEWER))
    cells = [
        [words(f"<main>{cell}</main>") for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row)]
        for row in re.findall(r"<tr>(.*?)</tr>", html)
    ]
    assert cells[0] == ["Field", "garden.example.org/v1", "garden.example.org/v2", "Difference"]
    assert cells[1:] == [
        ["spec.count", "integer , int32", "–", "only in garden.example.org/v1"],
        ["spec.light", "–", "string", "only in garden.example.org/v2"],
        ["spec.soil", "Soil", "–", "only in garden.example.org/v1"],
    ]


def test_search_marks_what_it_found() -> None:
    html = searched("acid")
    assert "Bed<wbr>.spec<wbr>.soil<wbr>.<mark>acid</mark>ity</a>" in html


@pytest.mark.parametrize(
    ("query", "page"),
    [
        ("garden.example.org/v1 Bed", f"{KEY}/Bed"),
        ("garden.example.org/v1/Bed", f"{KEY}/Bed"),
        ("bed/roses", f"{KEY}/Bed"),
        ("spec.soil.acidity", f"{KEY}/Bed#spec.soil.acidity"),
        ("spec.replicas", "apis/apps/v1/Deployment#spec.replicas"),
    ],
)
def test_search_takes_what_manifests_and_kubectl_write(query: str, page: str) -> None:
    html = searched(query)
    assert f"Results for “{query}”" in words(html)
    assert re.findall(r'<li><a href="./kind/([^"]*)"', html)[0] == page


def test_search_says_what_may_have_been_meant() -> None:
    html = searched("deplyoment replcias")
    assert "0 results Did you mean deployment replicas ?" in words(html)
    assert 'href="?q=deployment%20replicas"' in html


def test_version_that_is_not_read_yet_is_named() -> None:
    late = GroupVersion("apis/garden.example.org/v3")
    state = state_of(GARDEN)
    state.published = dict.fromkeys((*GARDEN, late, GroupVersion("apis/other.example.org/v1")), "")
    for page, name in (("kind", "Bed"), ("group-version", "")):
        request = DocumentRequest(
            page=page, below=f"kind/{KEY}/Bed", origin=origin(KEY), name=name, entries=()
        )
        html = text_of(document_page(SiteParts(), request, Coding.IDENTITY, state, "all", ()))
        assert f"Not read yet: {late} . Reload the page to see it." in words(html), page


@pytest.mark.parametrize(
    ("name", "html"),
    [
        ("admissionregistration.k8s.io", "admissionregistration.<wbr>k8s.<wbr>io"),
        ("ValidatingAdmissionPolicyBinding", "Validating<wbr>Admission<wbr>Policy<wbr>Binding"),
        ("<b>.x", "&lt;b&gt;.<wbr>x"),
    ],
)
def test_long_name_breaks_between_its_words(name: str, html: str) -> None:
    assert breakable(name) == html


def test_status_shows_who_is_down_since_when_and_why() -> None:
    backend = {"state": "up", "error": None, "lastSuccessAgeSeconds": 4.0}
    down = {
        "state": "failed",
        "error": {"cause": "refused", "detail": "connection <refused>"},
        "lastSuccessAgeSeconds": 7300.0,
    }
    document = {"owner": "b", "hash": "A" * 128, "provenance": "native", "stale": True, "losses": 0}
    document |= {"bytes": 211_123}
    unfetched = {**document, "owner": "a", "bytes": None}
    status = {
        "version": "1.0",
        "backends": {"a": backend, "b": down},
        "conflicts": [],
        "groupVersions": {KEY: document, "apis/example.com/v2": unfetched},
    }
    html = text_of(
        status_page(SiteParts(is_logged=True), ReaderState(), orjson.dumps(status), Coding.IDENTITY)
    )
    text = words(html)
    assert "1 of 2 backends down. Documents fetched earlier are still served." in text
    assert "b Down since its last answer, 2 h ago Reason connection <refused> Still served 1 document" in text
    assert f'href="./../v3/{KEY}?hash={"A" * 128}"' in html
    assert f'href="./group-version/{KEY}"' in html
    assert "AAAAAAAAAAAAAAAA 206.2 KiB Log" in text
    assert "AAAAAAAAAAAAAAAA – Log" in text


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.2, "0 s"), (119, "119 s"), (120, "2 min"), (7200, "2 h"), (200000, "2 d")]
)
def test_duration_is_in_the_largest_unit_of_which_there_are_two(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_error_stands_in_the_frame_and_leads_on() -> None:
    request = ErrorRequest(
        root="../../", code=404, message="<No> such", similar=(("Bed", f"kind/{KEY}/Bed"),)
    )
    html = text_of(error_page(SiteParts(), ReaderState(), request, Coding.IDENTITY))
    assert "&lt;No&gt; such" in html
    assert f'Did you mean <a href="../../kind/{KEY}/Bed">Bed</a>?' in html
    assert 'role="search" action="../../search"' in html


@pytest.mark.parametrize(
    ("release", "said"),
    [
        (None, "The document has no descriptions."),
        ("1.37", "come without descriptions. specmux cache fetch kubernetes:1.37 gets them, once."),
    ],
)
def test_missing_descriptions_are_said_once(release: str | None, said: str) -> None:
    text = orjson.dumps(bed(count={"type": "integer"})).decode()
    without = orjson.loads(re.sub(r',"description":"[^"]*"|"description":"[^"]*",', "", text))
    for documents, shows in ((GARDEN, 0), ({KEY: without}, 1)):
        state = state_of(documents)
        for page, name in (("kind", "Bed"), ("type", "Soil"), ("group-version", "")):
            request = DocumentRequest(
                page=page, below=f"{page}/{KEY}/{name}", origin=origin(KEY, release), name=name, entries=()
            )
            html = text_of(document_page(SiteParts(), request, Coding.IDENTITY, state, "all", ()))
            assert words(html).count(said) == shows, page


def test_manifests_can_be_pasted_where_the_endpoint_is_on() -> None:
    on, off = (
        text_of(validate_page(SiteParts(can_validate=is_on), ReaderState(), Coding.IDENTITY))
        for is_on in (True, False)
    )
    assert "<textarea" in on
    assert 'href="./validate"' in on
    assert "<textarea" not in off
    assert 'href="./validate"' not in off
    assert "validation.enabled: true" in off


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("One. Two.", "One. Two."),
        (f"One, e.g. This. {LONG}", "One, e.g. This."),
        (f"One\n\n{LONG}", "One"),
        (f"No end {'and more ' * 40}", f"No end {'and more ' * 40}".strip()),
        ("", ""),
    ],
)
def test_beginning_is_the_first_sentence_or_all_of_a_short_text(text: str, first: str) -> None:
    assert split_description(text, is_whole=True)[0] == first
