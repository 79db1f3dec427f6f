"""Requests to the process that makes JSON Schemas."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from specmux_aggregator.model.observation import Hash
from specmux_converters.group_versions import GroupVersion


class SchemaSource(NamedTuple):
    """A document, with the hash that identifies its content."""

    group_version: GroupVersion
    hash: Hash
    json: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class FileContext:
    """The parts of a file besides the documents."""

    tree: str
    """The hash of the file's tree."""
    absent: tuple[str, ...] = ()
    """Backends whose kinds are missing, and group-versions whose document cannot be parsed."""
    base: str = ""
