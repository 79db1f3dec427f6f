"""Small Swagger 2.0 documents, and what one construct of them becomes in v3."""

from __future__ import annotations

from typing import Any

import pytest

from specmux_converters.from_swagger2.conversion import WholeConversion, convert_whole
from specmux_converters.from_swagger2.reading.source import Profile


def swagger(**parts: Any) -> dict[str, Any]:
    return {"swagger": "2.0", "info": {"title": "t", "version": "1"}, "paths": {}, **parts}


def operation(
    parameters: Any = None, *, profile: Profile = "oas", shared: Any = None, **fields: Any
) -> dict[str, Any]:
    """What one operation becomes."""
    node = {"responses": {"200": {"description": "OK"}}, **fields}
    if parameters is not None:
        node["parameters"] = parameters
    whole = convert_whole(swagger(paths={"/a": {"post": node}}, **(shared or {})), profile=profile)
    result: dict[str, Any] = whole.document["paths"]["/a"]["post"]
    return result


def parameter(profile: Profile = "oas", **fields: Any) -> dict[str, Any]:
    node = {"name": "p", "in": "query", "type": "string", **fields}
    result: dict[str, Any] = operation([node], profile=profile)["parameters"][0]
    return result


def schema(node: Any, *, profile: Profile = "oas", **others: Any) -> Any:
    return whole_schema(node, profile=profile, **others).document["components"]["schemas"]["S"]


def whole_schema(node: Any, *, profile: Profile = "oas", **others: Any) -> WholeConversion:
    return convert_whole(swagger(definitions={"S": node, **others}), profile=profile)


def constructs(whole: WholeConversion) -> list[tuple[str, str]]:
    return [(loss.pointer, loss.construct) for loss in whole.losses]


BOTH = pytest.mark.parametrize("profile", ["oas", "kubernetes"])


PET = {"$ref": "#/definitions/S"}


PET3 = {"$ref": "#/components/schemas/S"}
