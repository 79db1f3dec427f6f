"""A Problem is one thing for which a CRD's documents lack something, or the CRD itself is left out."""

from __future__ import annotations

from specmux_converters.deferred_dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """``crd`` is the manifest's name, "" where it has none; ``pointer`` (RFC 6901) is into the manifest.

    ``construct`` is what is missing from the documents: "manifest" for all of it, "version", or "schema".
    """

    crd: str
    pointer: str
    construct: str
    reason: str
