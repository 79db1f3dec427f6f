"""Laws: what must hold of any input, whatever the rules in between are."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.compared import compared_documents, compared_specs, document, reversed_members
from data.round_trip import ancestors, missing
from specmux_aggregator.aggregation.ownership import merge as merge_observations
from specmux_aggregator.model.backend import Backend, BackendName, ClusterFacts
from specmux_aggregator.model.failure import Cause, Failure
from specmux_aggregator.model.observation import Hash, Observation, Offer, Provenance
from specmux_converters import GroupVersion, convert_whole, merge
from specmux_converters.codecs import decode, encode, protobuf_v2
from specmux_converters.document import DEFAULT_LIMITS
from specmux_converters.from_swagger2.reading.source import Profile
from specmux_converters.media_types import FORMS
from specmux_converters.to_swagger2.conversion import convert_to_v2
from specmux_converters.yaml import parse_yaml_stream, to_yaml
from specmux_tools.differences import Comparison
from specmux_tools.differences.rules import Impact

NAMES = st.sampled_from(["a", "b", "c"])


def objects(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    def required(schema: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
        names = sorted(schema["properties"])
        lists = st.lists(st.sampled_from(names), unique=True) if names else st.just([])
        return lists.map(lambda chosen: {**schema, "required": sorted(chosen)} if chosen else schema)

    properties = st.dictionaries(NAMES, inner, max_size=3)
    return properties.map(lambda found: {"type": "object", "properties": found}).flatmap(required)


# No zeros: gnostic's Protobuf cannot tell them from absence.
LEAVES = st.one_of(
    st.fixed_dictionaries(
        {"type": st.just("string")},
        optional={
            "enum": st.lists(st.sampled_from(["x", "y", "z"]), min_size=1, unique=True),
            "maxLength": st.integers(1, 3),
            "nullable": st.just(True),
            "description": st.sampled_from(["one", "two"]),
        },
    ),
    st.fixed_dictionaries(
        {"type": st.just("integer")},
        optional={
            "minimum": st.integers(1, 3),
            "maximum": st.integers(4, 6),
            "format": st.just("int32"),
        },
    ),
    st.just({"type": "boolean"}),
)
SCHEMAS = st.recursive(
    LEAVES,
    lambda inner: (
        objects(inner)
        | st.fixed_dictionaries(
            {"type": st.just("array"), "items": inner}, optional={"maxItems": st.integers(1, 2)}
        )
        | inner.map(lambda each: {"type": "object", "additionalProperties": each})
    ),
    max_leaves=5,
)
SPECS = objects(SCHEMAS)


@given(schema=SPECS)
def test_nothing_differs_from_itself(schema: dict[str, Any]) -> None:
    assert compared_specs(schema, schema).places == ()
    assert compared_specs(schema, reversed_members(schema)).places == ()
    assert compared_documents(document(schema), reversed_members(document(schema))).places == ()


@given(a=SPECS, b=SPECS, c=SPECS)
def test_who_breaks_on_the_way_breaks_at_one_of_its_steps(
    a: dict[str, Any], b: dict[str, Any], c: dict[str, Any]
) -> None:
    steps = broken(compared_specs(a, b)) | broken(compared_specs(b, c))
    assert broken(compared_specs(a, c)) <= steps


def broken(comparison: Comparison) -> set[str]:
    """Writers, readers, stored objects: whom it breaks."""
    return {
        name
        for place in comparison.places
        for name in ("write", "read", "stored")
        if getattr(place.impacts, name) is Impact.BREAKING
    }


KEYS = [GroupVersion(f"apis/g{number}.example.com/v1") for number in range(3)]


@st.composite
def parts(draw: st.DrawFn) -> dict[GroupVersion, dict[str, Any]]:
    """Documents of different group-versions that share what they name alike."""
    shared = draw(SCHEMAS)
    found = {}
    for number, key in enumerate(KEYS):
        path = f"/{key}/things"
        user = {"type": "object", "properties": {"s": {"$ref": "#/components/schemas/shared"}}}
        found[key] = {
            "openapi": "3.0.0",
            "info": {"title": "t", "version": "v"},
            "paths": {path: {"get": {"responses": {"200": {"description": "OK"}}}}},
            "components": {"schemas": {"shared": shared, f"own{number}": draw(SPECS), f"of{number}": user}},
        }
    return found


def content(merged: Any) -> Any:
    return {name: merged.document[name] for name in ("paths", "components")}


@given(documents=parts(), order=st.permutations(KEYS))
def test_merging_does_not_depend_on_order_or_grouping(
    documents: dict[GroupVersion, dict[str, Any]], order: list[GroupVersion]
) -> None:
    whole = merge(documents)
    assert whole.conflicts == ()
    assert merge({key: documents[key] for key in order}) == whole
    first, second, third = order
    pair = merge({first: documents[first], second: documents[second]}).document
    assert content(merge({first: pair, third: documents[third]})) == content(whole)
    assert content(merge({first: whole.document, second: whole.document})) == content(whole)


@st.composite
def observations(draw: st.DrawFn) -> list[Observation]:
    found = []
    for name in draw(st.lists(st.sampled_from("abcd"), min_size=1, unique=True)):
        hashes = draw(st.dictionaries(st.sampled_from(KEYS), st.sampled_from("XY"), max_size=3))
        offers = {key: Offer(hash=Hash(hash), provenance=Provenance.NATIVE) for key, hash in hashes.items()}
        is_found, is_fallback = draw(st.booleans()), draw(st.booleans())
        found.append(
            Observation(
                backend=Backend(
                    name=BackendName(name),
                    url="http://x",
                    priority=draw(st.integers(0, 1)),
                    found=ClusterFacts(is_fallback=is_fallback) if is_found else None,
                ),
                offers={
                    key: Offer(hash=Hash(hash), provenance=Provenance.NATIVE) for key, hash in offers.items()
                },
                failure=draw(st.none() | st.just(Failure(Cause.CREDENTIALS, "403", status=403))),
                attempted=True,
            )
        )
    return found


@given(found=observations(), data=st.data())
def test_ownership_does_not_depend_on_who_answered_first(
    found: list[Observation], data: st.DataObject
) -> None:
    other = data.draw(st.permutations(found))
    merged = [
        merge_observations({each.backend.name: each for each in order}, generation=1)
        for order in (found, other)
    ]
    assert merged[0].root_json == merged[1].root_json
    assert merged[0].conflicts == merged[1].conflicts
    owners = [{key: entry.owner for key, entry in each.entries.items()} for each in merged]
    assert owners[0] == owners[1]
    assert owners[0].keys() == {key for each in found for key in each.offers}, "something is missing"


@pytest.mark.parametrize("profile", ["oas", "kubernetes"])
@given(schema=SPECS)
def test_what_the_other_version_cannot_say_is_a_listed_loss(profile: Profile, schema: dict[str, Any]) -> None:
    before = document(schema)
    down = convert_to_v2(before, profile=profile)
    up = convert_whole(down.document, profile=profile)
    again = convert_to_v2(up.document, profile=profile)
    listed = {loss.pointer for loss in (*down.losses, *up.losses, *again.losses)}
    # With x-nullable, null joins the values of an enum: the note is on the word beside it.
    listed |= {
        pointer.removesuffix("/nullable") + "/enum" for pointer in listed if pointer.endswith("/nullable")
    }
    listed |= {pointer.replace("/definitions", "/components/schemas", 1) for pointer in listed}
    listed |= {pointer.replace("/components/schemas", "/definitions", 1) for pointer in listed}
    for one, other in ((before, up.document), (down.document, again.document)):
        for pointer in missing(one, other):
            assert not listed.isdisjoint(ancestors(pointer)), f"{pointer} is lost in silence"


@given(schema=SPECS)
def test_what_is_printed_reads_as_what_it_was(schema: dict[str, Any]) -> None:
    wanted = document(schema)
    for media_type in FORMS:
        assert decode(encode(wanted, media_type), media_type, limits=DEFAULT_LIMITS) == wanted
    assert parse_yaml_stream(to_yaml(wanted)) == (wanted,)
    swagger = convert_to_v2(wanted, profile="kubernetes").document
    assert protobuf_v2.decode(protobuf_v2.encode(swagger), limits=DEFAULT_LIMITS) == swagger
    assert parse_yaml_stream(to_yaml(swagger)) == (swagger,)
