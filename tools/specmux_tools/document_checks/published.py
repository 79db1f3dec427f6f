"""Check a published document in the service's worker process."""

from __future__ import annotations

import contextlib
import os
from typing import Final

from specmux_aggregator.http.content_codings import BadCoding, TooLarge, decode_body
from specmux_aggregator.http.messages import Coding
from specmux_aggregator.model.document_check import Summary
from specmux_converters.document import Limits
from specmux_converters.errors import cut
from specmux_converters.group_versions import GroupVersion
from specmux_tools.document_checks.document import check
from specmux_tools.reports import Level

EXAMPLES_MAX: Final = 5
"""Findings that are listed; all are counted."""

_NICE_MAX: Final = 19


def check_published(body: bytes, group_version: GroupVersion, *, limits: Limits) -> Summary:
    """``body``: gzipped JSON. Runs at the lowest priority."""
    with contextlib.suppress(OSError):  # a sandbox may refuse it
        os.nice(_NICE_MAX)
    try:
        data = decode_body(body, Coding.GZIP, max_bytes=limits.max_bytes)
    except (BadCoding, TooLarge) as error:
        return Summary(1, 0, (cut(str(error)),))
    findings = check(data, group_version, limits=limits)
    named = [
        f"{cut(finding.pointer) or '(document)'}: {finding.message} [{finding.rule}]" for finding in findings
    ]
    return Summary(
        errors=sum(finding.level is Level.ERROR for finding in findings),
        warnings=sum(finding.level is Level.WARNING for finding in findings),
        examples=tuple(named[:EXAMPLES_MAX]),
    )
