"""The variants of a JSON Schema. A form is a value, and part of the ETag of the result."""

from __future__ import annotations

from typing import Any, Final, Literal, NamedTuple, TypeAlias

from specmux_converters.lazy.dataclasses import dataclass

Schema: TypeAlias = dict[str, Any]
"""A JSON Schema. Schemas share parts: treat them as read-only."""

DRAFT: Final = "http://json-schema.org/draft-07/schema#"

EDITION: Final = "3"
"""Version of the rules: changes whenever a document may give a different schema."""


@dataclass(frozen=True, slots=True)
class SchemaForm:
    is_strict: bool = True
    """Whether to refuse unknown fields, which Kubernetes drops or refuses."""
    is_named: bool = False
    """Whether components remain separate, below ``definitions``; else they are inlined."""
    is_partial: bool = False
    """Whether nothing is required: for patches and fragments of server-side apply."""

    @property
    def name(self) -> str:
        """Unique for each form."""
        words = ["strict" if self.is_strict else "open"]
        return "-".join(words + ["named"] * self.is_named + ["partial"] * self.is_partial)


STRICT: Final = SchemaForm()
OPEN: Final = SchemaForm(is_strict=False)


Dialect: TypeAlias = Literal["json-schema", "openapi"]


@dataclass(frozen=True, slots=True)
class ModelForm:
    """The form of a bundle for generators of typed models."""

    dialect: Dialect
    is_partial: bool = False
    """Whether it says only what decoding asks: nothing is required, and the values of Go's enums and of
    ``apiVersion`` and ``kind`` are open."""


MODEL_FORMS: Final = (
    ModelForm("json-schema"),
    ModelForm("openapi"),
    ModelForm("json-schema", is_partial=True),
    ModelForm("openapi", is_partial=True),
)


class Mode(NamedTuple):
    """The options with which a component is converted."""

    is_strict: bool
    requires: bool
    """Whether ``required`` applies: not in a patch, nor below a status that only controllers write."""
