"""``specmux conformance``: what KEP-2896 promises, tried against a server."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import click

from specmux_aggregator.command_line.lazy_commands import examples
from specmux_aggregator.command_line.output import format_option
from specmux_aggregator.exits import FOUND, NOT_CHECKED, fail_on_option, reported_errors
from specmux_tools.command_line.report_output import write_report
from specmux_tools.reports import FORMS
from specmux_tools.sources import SourceOptions, service_options
from specmux_tools.sources.access import access_of

if TYPE_CHECKING:  # what tries is imported when something is tried
    from specmux_tools.conformance import Verdict

ANSWER_MAX = 64 * 1024 * 1024
"""Bytes of one answer."""


@click.command(
    epilog=examples(
        ("a service on this machine", "specmux conformance http://127.0.0.1:8080"),
        ("the current context's cluster, for CI", "specmux conformance -o junit > conformance.xml"),
        ("three documents alone", "specmux conformance http://127.0.0.1:8001 --documents 3"),
    )
)
@click.argument("url", required=False)
@click.option(
    "--documents", metavar="N", type=click.IntRange(min=1), help="Number of documents to try.  [default: all]"
)
@fail_on_option("error", "warning", of="promises of this level that are not kept")
@click.option("--allow-untested", is_flag=True, help="Accept promises that could not be tested.")
@format_option(*FORMS)
@service_options
def conformance(
    url: str | None,
    documents: int | None,
    fail_on: str,
    allow_untested: bool,
    output: str,
    source: SourceOptions,
) -> None:
    """Try what KEP-2896 promises of /openapi/v3 against a server.

    Any server that publishes OpenAPI v3: an apiserver, kube-aggregator, kcp, specmux. It asks for the
    root, each document in JSON and Protobuf, a stale hash, entity tags and caching. A promise that could
    not be tested is reported as not kept.

    Exit codes: 0 every promise kept, 1 some broken (see --fail-on), 2 usage, 3 unreadable, 4 no answer,
    5 some not tested (see --allow-untested).
    """
    with reported_errors():
        from specmux_tools.conformance import report_of, tried
        from specmux_tools.sources.remote.fetching import asking

        if url is not None:
            source = source.at(url)
        access = access_of(source)

        async def run() -> list[Verdict]:
            async with asking(access, most=ANSWER_MAX, timeout=source.request_timeout) as ask:
                return await tried(ask, most_documents=documents)

        verdicts = asyncio.run(run())
        report = report_of(access.url, verdicts)
        write_report(report, output)
    failing = [
        verdict
        for verdict in verdicts
        if not verdict.is_kept
        and fail_on != "never"
        and (verdict.promise.is_required or fail_on == "warning")
    ]
    if any(verdict.faults for verdict in failing):
        raise click.exceptions.Exit(FOUND)
    if failing and not allow_untested:
        raise click.exceptions.Exit(NOT_CHECKED)
