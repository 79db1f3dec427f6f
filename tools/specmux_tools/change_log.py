"""Changes of published documents in worker processes: compared, and written as text. Bytes in, bytes out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import orjson

from specmux_aggregator.changes.entries import Findings
from specmux_aggregator.http.content_codings import BadCoding, TooLarge, decode_body
from specmux_aggregator.http.messages import Coding
from specmux_converters.document import Limits, parse
from specmux_converters.errors import ConverterError
from specmux_tools.differences import ServedSide, add_document, compare
from specmux_tools.differences.reports import Report, change_object, read_change, render, report_of

ENTRY_MAX: Final = 256 * 1024
"""Most bytes of the changes of one entry; further changes are only counted."""


def compare_documents(
    old: bytes | None, new: bytes | None, others: Sequence[bytes], *, limits: Limits
) -> Findings | str:
    """The changes between two documents (zstd; None: absent), or why they cannot be determined.

    ``others``: documents of the group's other versions, which may still serve what was removed.
    """
    by_name = old is None and not others
    sides = ServedSide(), ServedSide()
    try:
        for body, each in ((old, sides[:1]), (new, sides[1:]), *((other, sides) for other in others)):
            if body is None:
                continue
            document = parse(decode_body(body, Coding.ZSTD, max_bytes=limits.max_bytes), limits=limits)
            for served in each:
                add_document(served, document, by_name=by_name)
        found = compare(*sides)
    except (ConverterError, BadCoding, TooLarge) as error:
        return str(error)
    return findings_of(report_of(found, old="", new=""))


def findings_of(report: Report) -> Findings:
    """The most severe changes first, so that these survive the limit."""
    counts = {severity.word: changes for severity, (changes, _) in report.counts().items()}
    written: list[bytes] = []
    size = 2
    for change in report.changes:
        body = orjson.dumps(change_object(change))
        size += len(body) + 1
        if size > ENTRY_MAX:
            break
        written.append(body)
    is_truncated = len(written) < len(report.changes)
    return Findings(counts, report.documentation, b"[" + b",".join(written) + b"]", is_truncated)


def entries_as_text(bodies: Sequence[bytes], form: str) -> bytes:
    """Entries of the log, given as its JSON, or a comparison. ``form``: text or markdown."""
    texts = []
    for value in map(orjson.loads, bodies):
        old, new = (_side(value["groupVersion"], value[side]) for side in ("old", "new"))
        report = Report(
            old, new, tuple(map(read_change, value["changes"])), value["summary"]["documentation"]
        )
        when = f"{value['at']} {value['result']}: " if "at" in value else ""
        head = f"{when}{old} to {new}\n" if form == "text" else ""
        texts.append(head + render(report, form))
    return "\n".join(texts).encode() or b"no changes\n"


def _side(name: str, version: dict[str, str] | None) -> str:
    if version is None:
        return "nothing"
    backend = f" of {version['backend']}" if "backend" in version else ""
    return f"{name} {version['hash'][:12]}{backend}"
