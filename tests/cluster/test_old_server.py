"""The sample apiserver of 1.17 behind a real apiserver: it has Swagger 2.0 and no CBOR, in discovery and for
objects (KEP-4222's E2E test)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster.binaries import Binaries, Unbuildable
from cluster.control_plane import ControlPlane
from cluster.serving import document, front_proxy, serving, until
from specmux_converters.codecs import decode
from specmux_converters.document import Limits
from specmux_converters.media_types import CBOR, JSON, PROTOBUF

KEY = "apis/wardle.example.com/v1alpha1"
FLUNDERS = f"/{KEY}/namespaces/default/flunders"

pytestmark = pytest.mark.timeout(1200)


@pytest.fixture(scope="module")
def old(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    try:
        program = binaries.oldest_wardle
    except Unbuildable as fault:
        pytest.skip(f"the oldest sample apiserver cannot be built here: {fault}")
    with ControlPlane(binaries, tmp_path_factory.mktemp("old")) as made:
        made.start_wardle("v2", program=program)
        yield made


def test_documents_of_117_are_converted_in_every_form(old: ControlPlane, tmp_path: Path) -> None:
    with front_proxy(old) as shown, serving(old, tmp_path, kubernetes=shown) as process:

        def entry() -> dict[str, object]:
            return dict(json.loads(process.get("/status")[2])["groupVersions"].get(KEY, {}))

        until(lambda: entry().get("owner") == "v1alpha1.wardle.example.com", "the extension has its own")
        assert entry()["provenance"] == "converted"
        found = []
        for media_type in (JSON, CBOR, PROTOBUF):
            status, headers, body = document(process, KEY, Accept=media_type)
            assert (status, headers["Content-Type"].split(";")[0]) == (200, media_type)
            found.append(decode(body, media_type, limits=Limits()))
        assert found[0] == found[1]
        assert found[0]["openapi"].startswith("3.0")
        for each in found:
            assert f"/{KEY}/namespaces/{{namespace}}/flunders" in each["paths"]
            assert any(name.endswith("v1alpha1.Flunder") for name in each["components"]["schemas"])


def test_objects_of_117_come_as_json_where_cbor_is_preferred(old: ControlPlane) -> None:
    status, body = old.get(FLUNDERS, Accept=f"{CBOR}, {JSON};q=0.9")
    assert (status, json.loads(body)["kind"]) == (200, "FlunderList")


def test_cbor_alone_is_not_acceptable_to_117(old: ControlPlane) -> None:
    assert old.get(FLUNDERS, Accept=CBOR)[0] == 406
