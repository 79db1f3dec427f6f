"""The answers of discovery, over a Directory that a test makes."""

from __future__ import annotations

import gzip
from typing import Any

import orjson
import pytest
import zstandard

from data.discovery_values import DOWN, knowledge, resource
from specmux_aggregator.api_discovery import encoded_directory
from specmux_aggregator.api_discovery.accept import DiscoveryForm as WireForm
from specmux_aggregator.api_discovery.aggregated import parse_aggregated
from specmux_aggregator.api_discovery.backend_knowledge import (
    BackendListings,
    DiscoverySource,
    Knowledge,
    after,
)
from specmux_aggregator.api_discovery.encoded_directory import DiscoveryIndex, PendingAnswer
from specmux_aggregator.api_discovery.merge import merge
from specmux_aggregator.endpoints.discovery import decide
from specmux_aggregator.http.messages import Coding, Request
from specmux_aggregator.http.prepared_answer import PreparedAnswer
from specmux_aggregator.model.backend import Backend, BackendName
from specmux_converters import codecs
from specmux_converters.document import Limits
from specmux_converters.group_versions import GroupVersion
from specmux_converters.media_types import CBOR, JSON
from specmux_converters.resources import NO_KIND, GroupVersionKind, Subresource

V2 = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
GRACE = 300.0

SCALE = GroupVersionKind("autoscaling", "v1", "Scale")
DEPLOYMENT = GroupVersionKind("apps", "v1", "Deployment")
RESOURCES = (
    resource(
        "deployments",
        kind="Deployment",
        short_names=("deploy",),
        categories=("all",),
        subresources=(
            Subresource(name="scale", kind=SCALE, verbs=("get",), accepted=(SCALE,)),
            Subresource(name="status", kind=DEPLOYMENT, verbs=("get", "patch")),
        ),
    ),
    resource("odd", kind=""),
)


def known(**fields: Any) -> Knowledge:
    listings = {
        GroupVersion("api/v1"): (resource("pods", kind="Pod"),),
        GroupVersion("apis/apps/v1"): RESOURCES,
        GroupVersion("apis/apps/v1beta1"): (),
    }
    told = BackendListings(DiscoverySource.AGGREGATED, listings, b'{"gitVersion":"v1.32.4"}')
    return after(Knowledge(backend=Backend(name=BackendName("a"), **fields)), told, now=0.0)


def index(*others: Knowledge, now: float = 0.0, **fields: Any) -> DiscoveryIndex:
    return DiscoveryIndex(merge([known(), *others], now=now, grace=GRACE), **fields)


def ask(path: str, at: DiscoveryIndex | None = None, **fields: Any) -> PreparedAnswer:
    method = fields.pop("method", "GET")
    answer = decide(at or index(), Request(method, path, **fields))
    assert isinstance(answer, PreparedAnswer)
    return answer


def head(answer: PreparedAnswer) -> dict[str, str]:
    lines = answer.head.decode().split("\r\n")[1:-1]
    return {name: value for name, _, value in (line.partition(": ") for line in lines)}


def tree(path: str, at: DiscoveryIndex | None = None, **fields: Any) -> Any:
    answer = ask(path, at, **fields)
    assert answer.status == 200, answer.body
    return orjson.loads(answer.body)


def test_aggregated_groups() -> None:
    kind = {"group": "g", "version": "v1", "kind": "Deployment"}
    scale = {"group": "autoscaling", "version": "v1", "kind": "Scale"}
    assert tree("/apis", accept=V2) == {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": [
            {
                "metadata": {"name": "apps"},
                "versions": [
                    {
                        "version": "v1",
                        "freshness": "Current",
                        "resources": [
                            {
                                "resource": "deployments",
                                "responseKind": kind,
                                "scope": "Namespaced",
                                "singularResource": "deployment",
                                "verbs": ["get", "list"],
                                "shortNames": ["deploy"],
                                "categories": ["all"],
                                "subresources": [
                                    {
                                        "subresource": "scale",
                                        "responseKind": scale,
                                        "verbs": ["get"],
                                        "acceptedTypes": [scale],
                                    },
                                    {
                                        "subresource": "status",
                                        "responseKind": {**kind, "group": "apps"},
                                        "verbs": ["get", "patch"],
                                    },
                                ],
                            },
                            {
                                "resource": "odd",
                                "responseKind": {"group": "g", "version": "v1", "kind": ""},
                                "scope": "Namespaced",
                                "singularResource": "",
                                "verbs": ["get", "list"],
                            },
                        ],
                    },
                    {"version": "v1beta1", "freshness": "Current"},
                ],
            }
        ],
    }


def test_aggregated_core_group_and_nothing_else_at_its_path() -> None:
    (item,) = tree("/api", accept=V2)["items"]
    assert item["metadata"] == {}
    assert [version["version"] for version in item["versions"]] == ["v1"]


def test_older_version_of_the_aggregated_form_differs_in_its_name_only() -> None:
    new, old = tree("/apis", accept=V2), tree("/apis", accept=V2.replace("v2", "v2beta1"))
    assert old["apiVersion"] == "apidiscovery.k8s.io/v2beta1"
    assert {**old, "apiVersion": new["apiVersion"]} == new


def test_kind_is_an_object_when_there_is_none() -> None:
    silent = resource("odd", kind="")
    told = BackendListings(DiscoverySource.LEGACY, {GroupVersion("apis/x/v1"): (silent,)})
    (item,) = tree(
        "/apis",
        DiscoveryIndex(
            merge([after(Knowledge(backend=Backend(name=BackendName("a"))), told, now=0.0)], now=0, grace=1)
        ),
        accept=V2,
    )["items"]
    assert item["versions"][0]["resources"][0]["responseKind"]["kind"] == NO_KIND.kind


def test_legacy_lists() -> None:
    assert tree("/api") == {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}
    v1, beta = (
        {"groupVersion": "apps/v1", "version": "v1"},
        {"groupVersion": "apps/v1beta1", "version": "v1beta1"},
    )
    group = {"name": "apps", "versions": [v1, beta], "preferredVersion": v1}
    assert tree("/apis") == {"kind": "APIGroupList", "apiVersion": "v1", "groups": [group]}
    assert tree("/apis/apps") == {"kind": "APIGroup", "apiVersion": "v1", **group}


def test_lists_are_the_bytes_that_an_apiserver_writes() -> None:
    """Of the same aggregated discovery, where an apiserver names no group and version of its own kinds. The
    lists: types of apimachinery and Go's encoder; kube-apiserver 1.34 adds storageVersionHash alone."""
    aggregated = orjson.dumps({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "items": [
            {"metadata": {"name": name}, "versions": [{"version": "v1", "resources": resources}]}
            for name, resources in (("", [{
                "resource": "pods",
                "responseKind": {"group": "", "version": "", "kind": "Pod"},
                "scope": "Namespaced",
                "singularResource": "pod",
                "verbs": ["get", "list"],
                "shortNames": ["po"],
                "subresources": [{
                    "subresource": "eviction",
                    "responseKind": {"group": "policy", "version": "v1", "kind": "Eviction"},
                    "acceptedTypes": [{"group": "policy", "version": "v1", "kind": "Eviction"}],
                    "verbs": ["create"],
                }],
            }]), ("extensions", []))
        ],
    })  # fmt: skip
    lists = parse_aggregated(aggregated, limits=Limits(), max_group_versions=9)
    told = BackendListings(DiscoverySource.AGGREGATED, dict(lists.resources), b'{\n  "major": "1"\n}')
    at = DiscoveryIndex(
        merge([after(Knowledge(backend=Backend(name=BackendName("a"))), told, now=0.0)], now=0.0, grace=GRACE)
    )
    assert ask("/api/v1", at).body == (
        b'{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"pods","singularName":"pod",'
        b'"namespaced":true,"kind":"Pod","verbs":["get","list"],"shortNames":["po"]},{"name":"pods/eviction",'
        b'"singularName":"","namespaced":true,"group":"policy","version":"v1","kind":"Eviction",'
        b'"verbs":["create"]}]}\n'
    )
    empty = b'{"kind":"APIResourceList","groupVersion":"extensions/v1","resources":[]}\n'
    assert ask("/apis/extensions/v1", at).body == empty
    assert b'"apiVersion"' not in (ask("/apis/extensions", at).body or b"")
    assert b'"acceptedTypes":[{"group":"policy","version":"v1","kind":"Eviction"}],"verbs"' in (
        ask("/api", at, accept=V2).body
    )
    assert ask("/version", at).body == b'{\n  "major": "1"\n}'


def test_legacy_resources_with_subresources_beside_them() -> None:
    found = tree("/apis/apps/v1")
    assert (found["kind"], found["groupVersion"]) == ("APIResourceList", "apps/v1")
    # The entry without a kind is one that clients would drop, or choke on.
    assert found["resources"] == [
        {
            "name": "deployments",
            "singularName": "deployment",
            "namespaced": True,
            "kind": "Deployment",
            "verbs": ["get", "list"],
            "group": "g",
            "version": "v1",
            "shortNames": ["deploy"],
            "categories": ["all"],
        },
        {
            "name": "deployments/scale",
            "singularName": "",
            "namespaced": True,
            "kind": "Scale",
            "verbs": ["get"],
            "group": "autoscaling",
            "version": "v1",
        },
        {
            "name": "deployments/status",
            "singularName": "",
            "namespaced": True,
            "kind": "Deployment",
            "verbs": ["get", "patch"],
        },
    ]
    assert tree("/api/v1")["groupVersion"] == "v1"


@pytest.mark.parametrize("path", ["/api/", "/apis/", "/apis/apps/", "/apis/apps/v1/", "/version/"])
def test_trailing_slash_changes_nothing(path: str) -> None:
    assert ask(path).body == ask(path.rstrip("/")).body


@pytest.mark.parametrize(
    "path", ["/", "/apix", "/api/v1/pods", "/apis/apps/v1/deployments", "/apis//v1", "/version/x", "/healthz"]
)
def test_path_is_not_ours_when_it_lies_deeper_or_elsewhere(path: str) -> None:
    assert decide(index(), Request("GET", path)) is None


@pytest.mark.parametrize("path", ["/apis/none", "/apis/apps/v9", "/api/v2", "/apis/none/v1"])
def test_unknown_group_or_version_is_a_status(path: str) -> None:
    answer = ask(path)
    status = orjson.loads(answer.body)
    assert (answer.status, status["kind"], status["reason"]) == (404, "Status", "NotFound")


def test_version_page() -> None:
    assert tree("/version") == {"gitVersion": "v1.32.4"}
    empty = DiscoveryIndex(merge([], now=0.0, grace=GRACE))
    assert ask("/version", empty).status == 404


def test_every_form_is_what_its_fields_say() -> None:
    tags = set()
    for path in ("/api", "/apis"):
        for accept in (V2, V2.replace("v2", "v2beta1"), V2.replace("json", "cbor"), None, "application/cbor"):
            for coding in (None, "gzip", "zstd"):
                answer = ask(path, accept=accept, accept_encoding=coding)
                fields = head(answer)
                assert fields["Content-Type"] == (accept or "application/json")
                assert fields.get("Content-Encoding") == coding
                assert fields["Vary"] == "Accept, Accept-Encoding"
                assert fields["Cache-Control"] == "no-cache"
                assert int(fields["Content-Length"]) == len(answer.body)
                assert answer.route == "discovery"
                tags.add(fields["ETag"])
                body = {"gzip": gzip.decompress, "zstd": zstandard.decompress}.get(coding or "", bytes)(
                    answer.body
                )
                plain = ask(path, accept=accept and accept.replace("cbor", "json"))
                media_type = CBOR if answer.format == "cbor" else JSON
                assert codecs.decode(body, media_type, limits=Limits()) == orjson.loads(plain.body)
                assert body.startswith(b"\xd9\xd9\xf7") == (answer.format == "cbor")
    assert len(tags) == 30


def test_tag_changes_with_the_content_and_only_then() -> None:
    assert head(ask("/apis"))["ETag"] == head(ask("/apis", index()))["ETag"]
    other = index(knowledge("b", "apis/new/v1"))
    assert head(ask("/apis", other))["ETag"] != head(ask("/apis"))["ETag"]
    assert head(ask("/api", other))["ETag"] == head(ask("/api"))["ETag"]


@pytest.mark.parametrize("template", ["{}", "W/{}", '"x", {}', "*", '"x",W/{} '])
def test_not_modified_without_content_fields_when_the_tag_is_named(template: str) -> None:
    tag = head(ask("/apis", accept=V2, accept_encoding="gzip"))["ETag"]
    answer = ask("/apis", accept=V2, accept_encoding="gzip", if_none_match=template.format(tag))
    assert (answer.status, answer.body) == (304, b"")
    assert set(head(answer)) == {"ETag", "Vary", "Cache-Control", "Cache-Status"}
    assert head(answer)["ETag"] == tag


def test_whole_answer_when_the_tag_is_of_another_form() -> None:
    tag = head(ask("/apis", accept=V2, accept_encoding="gzip"))["ETag"]
    assert ask("/apis", accept=V2, if_none_match=tag).status == 200
    assert ask("/apis", accept=V2, if_match=tag).status == 412


def test_head_has_the_fields_of_get() -> None:
    assert ask("/apis", method="HEAD").body == b""
    assert head(ask("/apis", method="HEAD")) == head(ask("/apis"))


@pytest.mark.parametrize("path", ["/api", "/apis/apps/v1", "/apis/none", "/version"])
def test_other_methods_are_refused(path: str) -> None:
    answer = ask(path, method="POST")
    assert (answer.status, head(answer)["Allow"]) == (405, "GET, HEAD")


@pytest.mark.parametrize(
    ("path", "accept"),
    [
        ("/apis", "text/html"),
        ("/apis/apps/v1", V2),
        ("/api", V2.replace("v=v2", "v=v9")),
        ("/version", "image/png"),
    ],
)
def test_not_acceptable_lists_what_there_is(path: str, accept: str) -> None:
    answer = ask(path, accept=accept)
    message = orjson.loads(answer.body)["message"]
    assert answer.status == 406
    assert (V2 in message) == (path in ("/api", "/apis"))
    assert "Vary" in head(answer)


def test_retry_while_a_backend_was_never_asked() -> None:
    answer = ask("/apis", index(is_complete=False), accept=V2)
    assert (answer.status, head(answer)["Retry-After"]) == (503, "1")


def test_empty_list_is_503_where_no_backend_could_be_asked() -> None:
    answer = ask("/apis", index(is_blind=True), accept=V2)
    assert (answer.status, head(answer)["Retry-After"]) == (503, "1")


@pytest.mark.parametrize(("is_down", "status"), [(True, 503), (False, 404)])
def test_version_is_503_while_the_server_that_has_it_cannot_be_asked(is_down: bool, status: int) -> None:
    alone = knowledge("a", "apis/apps/v1", url="http://a")
    at = DiscoveryIndex(merge([after(alone, DOWN, now=0.0) if is_down else alone], now=0.0, grace=GRACE))
    answer = ask("/version", at)
    assert (answer.status, head(answer).get("Retry-After")) == (status, "1" if is_down else None)
    assert ask("/apis/none", at).status == 404
    assert ask("/apis/apps/v1", at).status == 200


def test_list_of_one_server_leaves_out_what_its_peers_alone_have() -> None:
    cbor = V2.replace("json", "cbor")
    for accept in (V2, cbor):
        at = index()
        alone, whole = (ask("/apis", at, accept=each) for each in (f"{accept};profile=nopeer", accept))
        assert head(alone) == head(whole)
        assert alone.body is whole.body, "kept once, as there are no peers"
    listed = BackendListings(
        DiscoverySource.AGGREGATED,
        {GroupVersion(name): (resource(),) for name in ("apis/own/v1", "apis/peers/v1")},
        peers_only=frozenset({GroupVersion("apis/peers/v1")}),
    )
    peers = after(Knowledge(backend=Backend(name=BackendName("a"))), listed, now=0.0)
    at = DiscoveryIndex(merge([peers], now=0.0, grace=GRACE))
    for accept, expected in ((V2, ["own", "peers"]), (f"{V2};profile=nopeer", ["own"])):
        assert [item["metadata"]["name"] for item in tree("/apis", at, accept=accept)["items"]] == expected


def test_stale_with_its_resources_when_the_grace_is_over() -> None:
    down = after(known(), DOWN, now=0.0)
    at = DiscoveryIndex(merge([down], now=GRACE, grace=GRACE))
    (item,) = tree("/apis", at, accept=V2)["items"]
    assert [version["freshness"] for version in item["versions"]] == ["Stale", "Stale"]
    assert len(item["versions"][0]["resources"]) == 2
    assert len(tree("/apis/apps/v1", at)["resources"]) == 3


def test_legacy_list_is_unavailable_when_its_resources_never_could_be_had() -> None:
    key = GroupVersion("apis/dead/v1")
    dead = Knowledge(backend=Backend(name=BackendName("b"), group_versions=frozenset({key})))
    at = index(after(dead, DOWN, now=0.0))
    answer = ask("/apis/dead/v1", at)
    assert (answer.status, head(answer)["Retry-After"]) == (503, "1")
    assert "refused" in orjson.loads(answer.body)["message"]
    stale = next(item for item in tree("/apis", at, accept=V2)["items"] if item["metadata"]["name"] == "dead")
    assert stale["versions"] == [{"version": "v1", "freshness": "Stale"}]


def test_private_when_who_asks_matters() -> None:
    answer = decide(index(), Request("GET", "/apis"), is_private=True)
    assert answer is not None
    assert head(answer)["Cache-Control"] == "private, no-cache"


def test_forms_are_there_when_prepared() -> None:
    before = index()
    cbor = V2.replace("json", "cbor")
    ask("/apis", before, accept=cbor)
    ask("/apis/apps/v1", before)
    made = index()
    for asked in made.list_wanted(before.list_asked()):
        made.make(asked)
    # What every kubectl asks for at both paths, and the CBOR that somebody asked for.
    assert len(made.list_asked()) == len(made._coded) == 3
    assert ask("/apis", made, accept=cbor).body == ask("/apis", before, accept=cbor).body
    common = made._coded["/apis", WireForm(JSON, "v2"), Coding.GZIP]
    assert ask("/apis", made, accept=V2, accept_encoding="gzip").body is common
    unready = index(is_complete=False)
    assert not [*unready.list_wanted(before.list_asked())]


def test_what_is_large_is_made_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoded_directory, "SMALL", 0)
    at = index()
    found = decide(at, Request("GET", "/apis", accept=V2))
    assert isinstance(found, PendingAnswer)
    assert found.index is at and found.asked[0] == "/apis"


def test_what_takes_long_to_compress_is_compressed_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoded_directory, "SMALL_BYTES", 0)
    at = index()
    assert ask("/apis", at, accept=V2).status == 200
    found = decide(at, Request("GET", "/apis", accept=V2, accept_encoding="gzip"))
    assert isinstance(found, PendingAnswer)
    at.make(found.asked)
    assert head(ask("/apis", at, accept=V2, accept_encoding="gzip"))["Content-Encoding"] == "gzip"
