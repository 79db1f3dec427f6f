from __future__ import annotations

import cbor2
import pytest

from specmux_converters.codecs import Fragments
from specmux_converters.codecs import cbor as cbor_writer
from specmux_converters.codecs.cbor import UnusualNumber, write_document


def test_tables_of_texts_and_keys_stay_bounded_when_no_document_repeats_another() -> None:
    most = 4096
    for number in range(most + 100):
        schema = {f"a{number}": f"b{number}", "": "c" * 10_000}
        document = {"components": {"schemas": {"A": schema}}}
        assert write_document(document, Fragments()) == cbor2.dumps(document, canonical=True)
    for table in (cbor_writer._TEXTS, cbor_writer._KEY_ORDERS):
        assert 0 < len(table) <= most


@pytest.mark.parametrize("keys", [16, 17, 300])
def test_large_texts_and_maps_are_not_remembered(keys: int) -> None:
    names = [f"large{keys}{index}" for index in range(keys)]
    document = {"components": {"schemas": {"A": dict.fromkeys(names, "x" * 257)}}}
    assert write_document(document, Fragments()) == cbor2.dumps(document, canonical=True)
    assert (tuple(names) in cbor_writer._KEY_ORDERS) == (keys <= 16)
    assert "x" * 257 not in cbor_writer._TEXTS


@pytest.mark.parametrize("number", [2**63, 2**64 - 1, float("nan"), float("-inf")])
def test_a_number_that_go_has_no_integer_for_is_left_to_who_knows_what_becomes_of_it(number: float) -> None:
    with pytest.raises(UnusualNumber):
        write_document({"info": [number]}, Fragments())


def test_a_key_that_is_no_text_is_no_map_of_json() -> None:
    with pytest.raises(TypeError):
        write_document({"paths": {1: "a"}}, Fragments())
