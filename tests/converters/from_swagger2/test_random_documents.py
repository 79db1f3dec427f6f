"""Random documents: valid ones become valid ones that validate the same values, and ones with a fault are
refused or say what was lost. The same generator runs beside other converters in ``tests/stress``."""

from __future__ import annotations

from random import Random
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openapi_spec_validator import OpenAPIV30SpecValidator

from data.random_swagger import random_swagger, with_faults
from sampling import examples
from specmux_converters import ConverterError
from specmux_converters.document import canonical
from specmux_converters.from_swagger2.conversion import convert_whole
from specmux_converters.from_swagger2.reading.source import Profile
from specmux_converters.losses import Grade
from specmux_converters.references import PREFIX, references

SWAGGERS = st.randoms(use_true_random=False).map(random_swagger)
PROFILES = st.sampled_from(("oas", "kubernetes"))


def is_there(document: Any, ref: str) -> bool:
    node = document
    for token in ref.split("/")[1:]:
        node = node.get(token.replace("~1", "/").replace("~0", "~")) if isinstance(node, dict) else None
    return node is not None


def dangling(document: Any) -> list[str]:
    kinds = ("schemas", "parameters", "responses", "requestBodies")
    refs = [ref for ref in references(document, "document") if ref.startswith(PREFIX)]
    return [ref for ref in refs if ref.split("/")[2] in kinds and not is_there(document, ref)]


@pytest.mark.long
@given(SWAGGERS)
@examples(25)
def test_a_valid_document_becomes_a_valid_one(swagger: Any) -> None:
    made = convert_whole(swagger)
    assert dangling(made.document) == []
    try:
        errors = list(OpenAPIV30SpecValidator(orjson.loads(canonical(made.document))).iter_errors())
    except RecursionError:
        return  # the validator's own, on a schema that has itself in its allOf
    assert [error.message for error in errors] == []


@given(SWAGGERS, PROFILES)
def test_what_is_lost_of_a_valid_document_has_no_place_in_v3(swagger: Any, profile: Profile) -> None:
    lost = {
        loss.construct for loss in convert_whole(swagger, profile=profile).losses if loss.grade is Grade.LOSS
    }
    # Endless references and lists in multipart are valid in Swagger 2.0.
    assert lost <= {"circular $ref", "collectionFormat"}


@given(SWAGGERS, st.integers(0, 2**32), PROFILES)
@examples(150)
def test_a_document_with_faults_is_refused_or_converted(swagger: Any, seed: int, profile: Profile) -> None:
    broken = with_faults(Random(seed), swagger)
    before = repr(broken)
    try:
        made = convert_whole(broken, profile=profile)
    except ConverterError as refusal:
        assert refusal.pointer == "" or refusal.pointer.startswith("/")
        return
    assert dangling(made.document) == []
    assert repr(broken) == before
    assert convert_whole(broken, profile=profile) == made
