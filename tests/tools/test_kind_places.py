from __future__ import annotations

import pytest

from specmux_converters.resources import GroupVersionKind
from specmux_tools.kind_lifecycles import BUILT_IN, REMOVED, built_in_kinds, place_of

KNOWN = [*built_in_kinds(), GroupVersionKind("shop.example.org", "v1", "Order")]


@pytest.mark.parametrize(
    ("version", "kind", "name", "text"),
    [
        ("v1", "Deployment", "apps/v1 Deployment", "apps/v1 has Deployment"),
        ("app/v1", "Deployment", "apps/v1 Deployment", "apps/v1 has Deployment"),
        ("apps/v1", "deployment", "Deployment", "did you mean Deployment?"),
        ("v1", "pod", "Pod", "did you mean Pod?"),
        ("v1", "Pood", "Pod", "did you mean Pod or Node?"),
        ("shop.example.org/v1", "Orders", "Order", "did you mean Order?"),
        (
            "shop.example.org/v2",
            "Orders",
            "shop.example.org/v1 Order",
            "did you mean shop.example.org/v1 Order?",
        ),
        (
            "extensions/v1beta1",
            "Ingress",
            "networking.k8s.io/v1 Ingress",
            "Ingress is in networking.k8s.io/v1 since 1.19; "
            "Kubernetes 1.22 removed extensions/v1beta1 Ingress",
        ),
        (
            "autoscaling/v2beta2",
            "HorizontalPodAutoscaler",
            "autoscaling/v2 HorizontalPodAutoscaler",
            "HorizontalPodAutoscaler is in autoscaling/v2 since 1.23; "
            "Kubernetes 1.26 removed autoscaling/v2beta2 HorizontalPodAutoscaler",
        ),
        (
            "policy/v1beta1",
            "PodSecurityPolicy",
            "",
            "Kubernetes 1.25 removed policy/v1beta1 PodSecurityPolicy, and nothing replaces it",
        ),
    ],
)
def test_where_it_is(version: str, kind: str, name: str, text: str) -> None:
    group, _, number = version.rpartition("/")
    place = place_of(GroupVersionKind(group, number, kind), KNOWN)
    assert place is not None
    assert (place.name, place.text) == (name, text)


def test_what_nothing_resembles() -> None:
    assert place_of(GroupVersionKind("a.b", "v1", "Zq"), KNOWN) is None


def test_replacements_are_served_and_removals_are_not() -> None:
    served = {(version, kind) for version, kinds in BUILT_IN.items() for kind in kinds}
    assert not served & set(REMOVED)
    for (_, kind), removal in REMOVED.items():
        if removal.now in BUILT_IN:
            assert kind in BUILT_IN[removal.now]
