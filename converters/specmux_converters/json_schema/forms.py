"""What a JSON Schema may be wanted as. A Form is a value: it is part of the ETag of what was made."""

from __future__ import annotations

from typing import Any, Final, NamedTuple, TypeAlias

from specmux_converters.deferred_dataclasses import dataclass

Schema: TypeAlias = dict[str, Any]
"""A JSON Schema. Schemas share their parts: read them, never write into them."""

DRAFT: Final = "http://json-schema.org/draft-07/schema#"

EDITION: Final = "3"
"""Of the rules: another one wherever the same document may give another schema."""


@dataclass(frozen=True, slots=True)
class SchemaForm:
    is_strict: bool = True
    """Unknown fields are refused where Kubernetes drops or refuses them."""
    is_named: bool = False
    """Components stay components, below ``definitions``; else they are written out in place."""
    is_partial: bool = False
    """Nothing is required: for patches and fragments of server-side apply."""

    @property
    def name(self) -> str:
        """Two forms never share one."""
        words = ["strict" if self.is_strict else "open"]
        return "-".join(words + ["named"] * self.is_named + ["partial"] * self.is_partial)


STRICT: Final = SchemaForm()
OPEN: Final = SchemaForm(is_strict=False)


class Mode(NamedTuple):
    """In which of its ways a component is converted."""

    is_strict: bool
    requires: bool
    """Whether ``required`` counts: not in a patch, nor below a status that only controllers write."""
