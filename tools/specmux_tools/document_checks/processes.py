"""Check many documents concurrently in a pool of processes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import as_completed
from concurrent.futures.process import BrokenProcessPool

from specmux_aggregator.interruptible_pool import InterruptiblePool
from specmux_tools.document_checks.document import check
from specmux_tools.document_checks.findings import DocumentFinding, DocumentReport, Subject
from specmux_tools.reports import Level


def check_all(subjects: Sequence[Subject], *, jobs: int) -> Iterator[tuple[Subject, DocumentReport]]:
    """In order of completion; the largest starts first. A single document needs no process."""
    if len(subjects) < 2:
        for subject in subjects:
            yield (
                subject,
                DocumentReport(subject.name, check(subject.data, subject.group_version, subject.release)),
            )
        return
    ordered = sorted(subjects, key=lambda subject: len(subject.data), reverse=True)
    with InterruptiblePool(min(jobs, len(ordered))) as pool:
        asked = {pool.submit(check, each.data, each.group_version, each.release): each for each in ordered}
        for done in as_completed(asked):
            subject = asked[done]
            try:
                findings = done.result()
            except BrokenProcessPool:
                reason = "the process that checked it ended, by a signal or because memory is short"
                findings = (DocumentFinding(Level.WARNING, "schema", "", reason),)
            yield subject, DocumentReport(subject.name, findings)
