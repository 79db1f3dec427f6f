"""Findings of the checks of published documents as metrics, read when scraped."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily, Metric

from specmux_aggregator.aggregation.document_checks import DocumentChecks


class DocumentCheckCollector:
    def __init__(self, checks: DocumentChecks) -> None:
        self._checks = checks

    def collect(self) -> Iterator[Metric]:
        findings = GaugeMetricFamily(
            "specmux_document_findings",
            "What a check of a published document found.",
            labels=["group_version", "level"],
        )
        for group_version, check in sorted(self._checks.known.items()):
            if check.summary is not None:
                findings.add_metric([group_version, "error"], check.summary.errors)
                findings.add_metric([group_version, "warning"], check.summary.warnings)
        yield findings
        yield GaugeMetricFamily(
            "specmux_documents_unchecked",
            "Published documents that wait for their check.",
            value=self._checks.waiting,
        )
