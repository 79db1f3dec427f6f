"""Metrics of the JSON Schemas, read when scraped."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric


class KeptFiles(Protocol):
    """The part of the endpoint's store that is read."""

    bytes: int

    def __len__(self) -> int: ...


class Files(Protocol):
    """The part of the endpoint that is read."""

    made: int

    @property
    def kept(self) -> KeptFiles: ...


class SchemaCollector:
    def __init__(self, files: Files) -> None:
        self._files = files

    def collect(self) -> Iterator[Metric]:
        kept = self._files.kept
        yield GaugeMetricFamily("specmux_schemas_bytes", "Bytes of schemas in memory.", value=kept.bytes)
        yield GaugeMetricFamily(
            "specmux_schemas_files", "Schemas in memory, in all codings.", value=len(kept)
        )
        yield CounterMetricFamily("specmux_schemas_made", "Schemas that were made.", value=self._files.made)
