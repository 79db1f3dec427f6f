"""``specmux conformance``: KEP-2896 tried against a server, or recorded answers against a command."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path

import click

from specmux_aggregator.command_line.lazy_commands import examples
from specmux_aggregator.command_line.output import format_option
from specmux_aggregator.exits import FOUND, NOT_CHECKED, fail_on_option, report_errors
from specmux_tools.command_line.report_output import write_report
from specmux_tools.reports import FORMS
from specmux_tools.sources import SourceOptions, service_options
from specmux_tools.sources.access import access_of


@click.command(
    epilog=examples(
        ("a service on this machine", "specmux conformance http://127.0.0.1:8080"),
        ("the current context's cluster, for CI", "specmux conformance -o junit > conformance.xml"),
        ("three documents alone", "specmux conformance http://127.0.0.1:8001 --documents 3"),
        ("a validator of your own", "specmux conformance --vectors ./my-validator vectors/"),
    )
)
@click.argument("url", required=False)
@click.option(
    "--vectors", "command", metavar="COMMAND",
    help="Put the recorded answers of URL, a file or folder of vectors, to this command.",
)  # fmt: skip
@click.option(
    "--as", "name", metavar="NAME", default="", help="Accept the known disagreements of this implementation."
)
@click.option(
    "--documents", metavar="N", type=click.IntRange(min=1), help="Number of documents to try.  [default: all]"
)
@fail_on_option("error", "warning", of="broken promises of this level")
@click.option("--allow-untested", is_flag=True, help="Accept promises that could not be tested.")
@format_option(*FORMS)
@service_options
def conformance(
    url: str | None,
    command: str | None,
    name: str,
    documents: int | None,
    fail_on: str,
    allow_untested: bool,
    output: str,
    source: SourceOptions,
) -> None:
    """Test whether a server keeps what KEP-2896 promises of /openapi/v3.

    Any server that publishes OpenAPI v3: an apiserver, kube-aggregator, kcp, specmux. The root, each
    document in JSON and Protobuf, a stale hash, entity tags and caching are tested. A promise that could
    not be tested is reported as not kept.

    With --vectors any implementation is tested instead: COMMAND reads recorded cases as lines of JSON and
    answers with lines of JSON (vectors/README.md has the protocol).

    Exit codes: 0 every promise kept, 1 some broken (see --fail-on), 2 usage, 3 unreadable, 4 no answer,
    5 some not tested (see --allow-untested).
    """
    with report_errors():
        if command is not None:
            return _judge_command(command, Path(url or "vectors"), name, fail_on, allow_untested, output)
        from specmux_cache.sync import run_in_place
        from specmux_tools.conformance import HTTPAnswer, report_of, try_promises
        from specmux_tools.sources.remote.fetching import ANSWER_MAX, ServerConnection

        if url is not None:
            source = source.at(url)
        access = access_of(source)
        with ServerConnection(access, most=ANSWER_MAX, timeout=source.request_timeout) as connection:

            async def ask(target: str, fields: Mapping[str, str]) -> HTTPAnswer:
                answer = connection.send(target, fields)
                return HTTPAnswer(answer.status, dict(answer.fields), answer.body)

            verdicts = run_in_place(try_promises(ask, most_documents=documents))
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
    return None


def _judge_command(
    command: str, place: Path, name: str, fail_on: str, allow_untested: bool, output: str
) -> None:
    from specmux_tools.sources.input import Input
    from specmux_tools.vectors import answers_of, judge, read_vectors, report_of

    try:
        words = shlex.split(command)
    except ValueError as error:
        raise click.UsageError(f"--vectors: {error}") from error
    if not words:
        raise click.UsageError("--vectors: no command")
    paths = sorted(place.glob("*.json*")) if place.is_dir() else [place]
    inputs = [Input.at(path) for path in paths if ".schema." not in path.name]
    sets = [read_vectors(each.read(), each.name) for each in inputs]
    answers = answers_of(words, (each for found in sets for each in found.vectors))
    judged = [(found, [judge(each, answers.get(each.id), name) for each in found.vectors]) for found in sets]
    write_report(report_of(command, judged), output)
    every = [each for _, found in judged for each in found]
    if fail_on != "never" and any(each.is_different for each in every):
        raise click.exceptions.Exit(FOUND)
    if not allow_untested and (not every or not all(each.answer for each in every)):
        raise click.exceptions.Exit(NOT_CHECKED)
