"""KYAML beside what sigs.k8s.io/yaml/kyaml 1.6 writes (``tests/benchmarks/go/kyaml``)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from specmux_converters.yaml.kyaml import to_kyaml
from specmux_converters.yaml.writer import to_yaml

RECORDED = orjson.loads((Path(__file__).parent / "kyaml.json").read_bytes())


@pytest.mark.parametrize(("text", "written"), RECORDED)
def test_a_recorded_text(text: str, written: str) -> None:
    assert to_kyaml(text) == written


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=10,
)


@given(value=st.dictionaries(st.text(max_size=8), VALUES, max_size=4))
@example(value={"k": "\x1f\n\x0b\n\u2028a\n\tb\n c"})
def test_it_is_yaml_of_the_same_value(value: dict[str, Any]) -> None:
    assert yaml.safe_load(to_kyaml(to_yaml(value).decode())) == value
