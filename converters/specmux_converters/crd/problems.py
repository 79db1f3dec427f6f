"""A Problem is a fault for which a CRD's documents are incomplete, or the CRD is left out."""

from __future__ import annotations

from specmux_converters.lazy.dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """A fault of a manifest. ``crd``: its name, "" if it has none; ``pointer`` (RFC 6901) into the manifest.

    ``construct``: what is missing from the documents: "manifest" for everything, "version", or "schema".
    """

    crd: str
    pointer: str
    construct: str
    reason: str
