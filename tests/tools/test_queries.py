"""The four functions that programs call: what they could not read is no answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from specmux_tools import SchemasError, diff, explain, search, validate

SWAGGER: dict[str, Any] = {"apps/v1": {"swagger": "2.0", "info": {}, "paths": {}, "definitions": {}}}


@pytest.mark.parametrize(
    "ask",
    [
        lambda: diff(SWAGGER, SWAGGER),
        lambda: diff({}, SWAGGER),
        lambda: explain(SWAGGER, "pods"),
        lambda: search(SWAGGER, "pods"),
        lambda: validate(SWAGGER, "{}"),
    ],
)
def test_document_of_another_kind_is_refused_by_name(ask: Callable[[], object]) -> None:
    with pytest.raises(SchemasError, match="apps/v1: not an OpenAPI v3 document"):
        ask()


def test_text_without_an_object_is_no_valid_one() -> None:
    with pytest.raises(SchemasError, match="no object"):
        validate({}, "# nothing\n")
