"""Known disagreements with the vectors, by implementation and id, with the reason."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

DISAGREEMENTS: Final[Mapping[str, Mapping[str, str]]] = {
    "specmux": {
        "conversions/paths": "openapiconv loses that a request body is required",
        "conversions/component-names": (
            "openapiconv leaves a reference to a parameter that leads nowhere, and loses security and "
            "responses of an operation that names no media types"
        ),
        "conversions/array-without-items": (
            "OpenAPI 3.0 wants items of an array, which openapiconv does not add"
        ),
        "conversions/ignored-in-v3": (
            "openapiconv loses a body without media types and the fields of a response"
        ),
        "conversions/multipart-csv": (
            "openapiconv leaves a parameter in formData, which OpenAPI 3.0 does not know"
        ),
        "conversions/nullable": (
            "openapiconv leaves lists of types and x-nullable, which OpenAPI 3.0 does not know"
        ),
        "conversions/default-pattern-unique": "specmux leaves out a default that its own schema refuses",
        "conversions/enum-twice": "specmux lists a value of an enum once, as JSON Schema wants it",
        "conversions/numbers": (
            "openapiconv reads integers beyond 2**63 as float64; specmux keeps their digits"
        ),
    }
}
