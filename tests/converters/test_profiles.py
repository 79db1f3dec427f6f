from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.written_components import written_out
from shared_data import IN_BOTH_OR_BUILT_IN, PAIRS, documents, load
from specmux_converters.document import canonical
from specmux_converters.profiles import schemas_only, with_shared_components
from specmux_tools.kinds import kinds_of


@pytest.mark.parametrize("release", IN_BOTH_OR_BUILT_IN)
def test_a_release_means_the_same_with_its_repeats_as_components(
    release: str, tally: Callable[[str, int], None]
) -> None:
    has_prose = release in PAIRS  # which repeats, too
    sizes, values = [0, 0, 0], [0, 0, 0]
    for key, path in documents(release).items():
        document = load(path)
        made = with_shared_components(document)
        assert written_out(made["paths"], made["components"]) == document["paths"]
        assert made["components"].get("schemas") == document.get("components", {}).get("schemas")
        alone = schemas_only(document)
        assert _kinds(alone, key) == _kinds(document, key)
        for index, each in enumerate((document, made, alone)):
            sizes[index] += len(canonical(each))
            values[index] += _values(each)
    assert sizes[1] < (0.65 if has_prose else 0.8) * sizes[0]
    assert sizes[2] < 0.4 * sizes[0]
    print(f"{release}: values {values}, bytes {sizes}")
    assert values[2] < 0.27 * values[0]  # parsing costs as many
    tally("documents in profiles", len(documents(release)))


def _kinds(document: Any, key: Any) -> list[tuple[Any, str]]:
    return [(found.kind, found.component) for found in kinds_of(document, key)]


def _values(node: Any) -> int:
    items = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    return 1 + sum(map(_values, items))


def test_schemas_keep_what_means_something_without_paths() -> None:
    mark = "x-kubernetes-group-version-kind"
    kinds = [{"group": group, "version": "v1", "kind": "K"} for group in ("", "apps", "batch")]
    listed: dict[str, Any] = {
        "DeleteOptions": {mark: kinds},
        "Scale": {mark: kinds[2:]},
        "Status": {mark: kinds[:1], "items": {"$ref": "#/components/schemas/Details"}},
        "Details": {"items": {"$ref": "#/components/schemas/Meta"}},
        "Claim": {mark: kinds[:1]},
        "Meta": {},
        "Set": {
            mark: kinds[1:2],
            "allOf": [{"$ref": f"#/components/schemas/{n}"} for n in ("Claim", "Meta")],
        },
        "Unused": {},
    }
    paths = {"/apis/apps/v1/": {"get": {"responses": {}}, "put": {mark: kinds[2]}}}
    document = {"openapi": "3.0.0", "paths": paths, "components": {"schemas": listed}}
    alone = schemas_only(document)["components"]["schemas"]
    assert listed.keys() - alone.keys() == {"Status", "Details"}
    assert alone["DeleteOptions"] == {mark: kinds[1:2]}
    assert alone["Scale"] == listed["Scale"]
    assert schemas_only(schemas_only(document)) == schemas_only(document)
    assert schemas_only({**document, "paths": {"/version/": {}}})["components"]["schemas"] == listed


PARAMETERS = st.lists(
    st.fixed_dictionaries(
        {"name": st.sampled_from(["a", "b c", "é"]), "in": st.just("query"), "schema": st.just({})}
    ),
    max_size=3,
)
OPERATIONS = st.fixed_dictionaries(
    {"responses": st.dictionaries(st.sampled_from(["200", "x-a"]), st.just({"description": "d"}))},
    optional={"parameters": PARAMETERS, "requestBody": st.just({"content": {}})},
)


@given(
    st.dictionaries(
        st.sampled_from(["/a", "/b"]),
        st.fixed_dictionaries({}, optional={"parameters": PARAMETERS, "get": OPERATIONS, "put": OPERATIONS}),
    )
)
def test_any_document_means_the_same(paths: Any) -> None:
    given_ = {"openapi": "3.0.0", "info": {}, "paths": paths}
    before = canonical(given_)
    made = with_shared_components(given_)
    assert canonical(given_) == before
    assert written_out(made["paths"], made["components"]) == paths
    for kind in ("parameters", "responses", "requestBodies"):
        for name in made["components"].get(kind, {}):
            assert name.replace("-", "").replace("_", "").replace(".", "").isalnum()
            assert name.isascii()


def test_schemas_alone_keep_what_is_said_of_the_document() -> None:
    document = {
        "openapi": "3.0.0",
        "info": {"title": "t"},
        "paths": {"/a": {}},
        "components": {"schemas": {"S": {}}, "securitySchemes": {"b": {}}},
        "x-a": 1,
    }
    assert schemas_only(document) == {
        "openapi": "3.0.0",
        "info": {"title": "t"},
        "x-a": 1,
        "paths": {},
        "components": {"schemas": {"S": {}}},
    }
