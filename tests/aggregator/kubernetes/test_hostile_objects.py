"""Whatever stands anywhere in an object of a cluster: never an exception, never a lost neighbour."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from fakes.cluster import api_service
from running.cluster_service import definition
from sampling import examples
from specmux_aggregator.config.settings import KubernetesSettings
from specmux_aggregator.kubernetes.api_services import read_api_services, recall, write_note
from specmux_aggregator.kubernetes.cluster_backends import cluster_backends, list_shadowed
from specmux_aggregator.kubernetes.custom_resources import definitions, keep_definition
from specmux_aggregator.kubernetes.watch_events import ListPage, WatchedObjects, after, page_of
from specmux_aggregator.model.backend import Backend, BackendName
from specmux_aggregator.model.failure import Failure
from specmux_aggregator.workers.built import ManifestObject
from specmux_aggregator.workers.crds import build_groups, group_memos
from specmux_converters.document import Limits

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
JUNK = JSON | st.sampled_from(
    ["", "v1", "apps", "example.com", "..", "a/b", "v1.example.com", "True", 0, -1, 65536, [None], {"": None}]
)

SERVICE = api_service(
    "metrics.k8s.io",
    "v1beta1",
    service=("metrics", "system"),
    caBundle="aGVsbG8=",
    insecureSkipTLSVerify=False,
)
SERVICE["metadata"]["labels"] = {"kube-aggregator.kubernetes.io/automanaged": "onstart"}
GOOD_SERVICE = api_service("good.example.com", "v1", service=("good", "system"))
WIDGET = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    **definition("Widget", "v1", "v2"),
}
WIDGET["metadata"] |= {"creationTimestamp": "2026-01-01T00:00:00Z", "uid": "u", "resourceVersion": "7"}
GOOD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    **definition("Good", group="good.example.com"),
}
APISERVER = Backend(name=BackendName("kubernetes"), url="https://127.0.0.1:6443")


def places(node: Any) -> Iterator[tuple[Any, Any]]:
    """Every place in a tree: a container and a key of it."""
    for key, child in list(node.items() if isinstance(node, dict) else enumerate(node)):
        yield node, key
        if isinstance(child, dict | list):
            yield from places(child)


def spoilt(item: Mapping[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    """The object with junk in one to three places, as JSON has it."""
    count = len(list(places(item)))

    def put(changes: list[tuple[int, Any]]) -> dict[str, Any]:
        made = copy.deepcopy(dict(item))
        found = list(places(made))
        for place, value in changes:
            container, key = found[place]
            container[key] = copy.deepcopy(value)
        return dict(orjson.loads(orjson.dumps(made)))

    return st.lists(st.tuples(st.integers(0, count - 1), JUNK), min_size=1, max_size=3).map(put)


@examples(500)
@given(spoilt(SERVICE), st.booleans())
def test_any_api_service_is_a_backend_or_a_problem(item: dict[str, Any], is_recalled: bool) -> None:
    objects = recall(write_note([item, GOOD_SERVICE])) if is_recalled else [item, GOOD_SERVICE]
    services, problems = read_api_services(objects)
    assert len(services) + len(problems) >= len(objects) - 1
    backends = cluster_backends(APISERVER, services, settings=KubernetesSettings(), has_custom_resources=True)
    assert "v1.good.example.com" in {backend.name for backend in backends}
    assert all(backend.url.startswith("https://") for backend in backends if backend.url)
    assert len(list_shadowed(services)) <= 2
    for problem in problems:
        assert problem.isprintable()
        assert len(problem) < 500


@examples(300)
@given(spoilt(WIDGET))
def test_any_definition_is_published_or_told_of(item: dict[str, Any]) -> None:
    objects = {"a": keep_definition(item), "b": keep_definition(GOOD)}
    found = definitions(objects)
    assert [each.name for each in found if each.name == "goods.good.example.com"]
    groups: dict[str, list[ManifestObject]] = {}
    for each in found:
        if each.manifest is not None:
            groups.setdefault(each.manifest.group, []).append(each.manifest)
    built = build_groups(group_memos(), "crds", groups, owned=None, held={}, limits=Limits())
    assert "apis/good.example.com/v1" in {
        document.group_version for group in built for document in group.documents
    }
    assert all(note.isprintable() for group in built for note in group.problems)


@examples(300)
@given(
    st.lists(st.one_of(JSON, spoilt(WIDGET)), max_size=3),
    JSON,
    st.sampled_from(["ADDED", "DELETED", "BOOKMARK", "ERROR", "X"]),
)
def test_any_list_and_any_event_is_taken_or_a_failure(items: list[Any], metadata: Any, kind: str) -> None:
    page = {"kind": "List", "metadata": metadata, "items": items}
    for made in (page, {**page, "metadata": {"resourceVersion": "9"}}, {**page, "items": metadata}):
        assert isinstance(page_of(made, None, keep=keep_definition), ListPage | Failure)
    before = WatchedObjects({"good": keep_definition(GOOD)}, "1")
    for item in [*items, metadata]:
        held, failure = after(
            before, [{"type": kind, "object": item}, {"type": metadata}], keep=keep_definition
        )
        assert "good" in held.objects
        assert failure is not None
