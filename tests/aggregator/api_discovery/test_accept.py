"""Which form of discovery an Accept field asks for."""

from __future__ import annotations

import itertools

import pytest

from specmux_aggregator.api_discovery.accept import ALL, LEGACY, DiscoveryForm, form_for
from specmux_converters.media_types import CBOR, JSON

V2 = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
BETA = V2.replace("v=v2", "v=v2beta1")
KUBECTL = f"{V2},{BETA},application/json"
"""As kubectl 1.32.4 sends it."""


@pytest.mark.parametrize(
    ("accept", "wanted"),
    [
        (KUBECTL, DiscoveryForm(JSON, "v2")),
        (KUBECTL.replace(",", ", ").replace(";", "; "), DiscoveryForm(JSON, "v2")),
        (f"{V2};profile=nopeer,{V2},application/json", DiscoveryForm(JSON, "v2", is_of_one=True)),
        (f"{BETA},application/json", DiscoveryForm(JSON, "v2beta1")),
        (
            f"application/cbor;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,{V2}",
            DiscoveryForm(CBOR, "v2"),
        ),
        (V2.replace("json", "vnd.kubernetes.protobuf") + f",{BETA}", DiscoveryForm(JSON, "v2beta1")),
        (V2.upper(), DiscoveryForm(JSON, "v2")),
        (V2.replace("APIGroupDiscoveryList", '"APIGroupDiscoveryList"'), DiscoveryForm(JSON, "v2")),
        (None, DiscoveryForm(JSON)),
        ("", DiscoveryForm(JSON)),
        ("*/*", DiscoveryForm(JSON)),
        ("application/*", DiscoveryForm(JSON)),
        ("application/json", DiscoveryForm(JSON)),
        ("application/json;charset=utf-8", DiscoveryForm(JSON)),
        ("application/cbor", DiscoveryForm(CBOR)),
        ("application/cbor, application/json", DiscoveryForm(CBOR)),
        ("*/*, application/cbor", DiscoveryForm(CBOR)),
        (f"application/json, {V2}", DiscoveryForm(JSON)),
        (f"application/json;q=0.9, {V2}", DiscoveryForm(JSON, "v2")),
        (f"{V2};q=0.1, application/json;q=0.2", DiscoveryForm(JSON)),
        (f"{V2};q=0, */*", DiscoveryForm(JSON)),
        ("application/json;q=0, */*", DiscoveryForm(CBOR)),
        (f"{V2};q=2, application/cbor", DiscoveryForm(CBOR)),
        (V2.replace("v=v2", "v=v3") + ",application/json", DiscoveryForm(JSON)),
        ("application/json;as=Table;v=v1;g=meta.k8s.io,application/json", DiscoveryForm(JSON)),
        (V2.replace("v=v2", "v=v3"), None),
        ("application/json;g=apidiscovery.k8s.io;v=v2", None),
        ("application/json;as=APIGroupDiscoveryList", None),
        ("text/html", None),
        ("application/json;q=0", None),
        ("*/json", None),
        (f"{BETA};profile=nopeer", DiscoveryForm(JSON, "v2beta1")),  # which knows no peers
        ("application/json;profile=nopeer", DiscoveryForm(JSON)),
    ],
)
def test_form(accept: str | None, wanted: DiscoveryForm | None) -> None:
    assert form_for(accept, ALL) == wanted


def test_parameters_count_in_any_order() -> None:
    parameters = ["g=apidiscovery.k8s.io", "v=v2", "as=APIGroupDiscoveryList", "profile=nopeer"]
    for order in itertools.permutations(parameters):
        wanted = DiscoveryForm(JSON, "v2", is_of_one=True)
        assert form_for(";".join(("application/json", *order)), ALL) == wanted


def test_content_type_says_what_it_is_as_clients_decide_by_it() -> None:
    assert DiscoveryForm(JSON, "v2").content_type == V2
    assert DiscoveryForm(CBOR, "v2beta1").content_type == BETA.replace("json", "cbor")
    assert DiscoveryForm(JSON).content_type == "application/json"


@pytest.mark.parametrize(("accept", "wanted"), [(KUBECTL, DiscoveryForm(JSON)), (V2, None)])
def test_legacy_when_the_path_has_no_aggregated_form(accept: str, wanted: DiscoveryForm | None) -> None:
    assert form_for(accept, LEGACY) == wanted


def test_a_long_field_is_read_as_a_short_one() -> None:
    assert form_for("text/x," * 1000 + KUBECTL, ALL) == DiscoveryForm(JSON, "v2")
