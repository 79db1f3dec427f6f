"""``specmux status``: a running service's own page, for people and scripts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

import click

from specmux_aggregator.command_line.lazy_commands import examples
from specmux_aggregator.command_line.output import Output, output_option, show
from specmux_aggregator.console import age, colour_text, table
from specmux_aggregator.errors import SourceUnreachable
from specmux_aggregator.exits import FOUND, report_errors
from specmux_cache.access.urls import backend_url
from specmux_cache.errors import BadValue
from specmux_converters.counted_nouns import counted, size
from specmux_tools.sources.options import SourceOptions, is_given, service_options

HASH_SHOWN: Final = 12
"""Digits of a hash in a table."""
DEFAULT: Final = "http://127.0.0.1:8080"

_COLOURS: Final[Mapping[str, Any]] = {"up": "green", "failed": "red", "pending": "yellow"}


@click.command(
    epilog=examples(
        "specmux status",
        (
            "another service, for programs",
            "specmux status https://specmux.example.org -o json --token-file token",
        ),
    )
)
@click.argument("url", required=False)
@output_option
@service_options
def status(url: str | None, output: Output, source: SourceOptions) -> None:
    """Show the state of a running service and its backends.

    URL is the service's, by default http://127.0.0.1:8080. It shows backends and their age, group-versions
    with their hash, what conversion lost, conflicts, and what changed last.

    Exit codes: 0 ready, 1 not ready or a backend failed, 2 usage, 3 unreadable, 4 no answer.
    """
    chosen = replace(source, server=_url(url, source))
    with report_errors():
        from specmux_tools.sources.remote.fetching import answer_of

        known = answer_of(chosen, "/status", what="a specmux service")
        try:
            lines = [*_lines(known, chosen.server or "")]
        except (KeyError, TypeError, AttributeError) as error:
            lacking = f": it has no {error.args[0]}" if isinstance(error, KeyError) else ""
            raise SourceUnreachable(
                f"{chosen.server}/status: no page of a specmux service, or of a much older one{lacking}"
            ) from error
        show(output, known, lines)
    backends = known.get("backends", {})
    if not known.get("ready") or any(each["state"] == "failed" for each in backends.values()):
        raise click.exceptions.Exit(FOUND)


def _url(url: str | None, source: SourceOptions) -> str:
    """Raises click.UsageError for two services."""
    if url is None:
        return source.server or DEFAULT
    if is_given("server"):
        raise click.UsageError("URL and --server name different services; give one of them")
    try:
        return backend_url(url)
    except BadValue as error:
        raise click.BadParameter(f"{error}, such as {DEFAULT}", param_hint="URL") from error


def _lines(known: Mapping[str, Any], url: str) -> Iterator[str]:
    backends, documents = known["backends"], known["groupVersions"]
    ready = colour_text("ready", "green") if known["ready"] else colour_text("not ready", "red")
    counts = f"{counted(len(documents), 'group-version')} of {counted(len(backends), 'backend')}"
    yield f"specmux {known['version']} at {url}: {ready}, {counts}"
    if (known.get("config") or {}).get("error"):
        yield f"configuration: {known['config']['error']}; the one before is in force"
    yield ""
    yield from table(
        ("BACKEND", "STATE", "SPEAKS", "DOCUMENTS", "CHECKED", "CHANGED"),
        [
            (name, each["state"], each["speaks"] or "-", str(each["groupVersions"]),
             age(each["lastSuccessAgeSeconds"]), age(each.get("lastChangeAgeSeconds")))
            for name, each in backends.items()
        ],
    )  # fmt: skip
    yield ""
    yield from table(
        ("GROUP-VERSION", "OWNER", "HASH", "SIZE", "FROM", "LOSSES"),
        [
            (name, each["owner"], each["hash"][:HASH_SHOWN], size(each["bytes"]) if each["bytes"] else "-",
             f"{each['provenance']}{' (stale)' * each['stale']}", str(each["losses"] or "-"))
            for name, each in documents.items()
        ],
    )  # fmt: skip
    for name, each in backends.items():
        if each["error"] is not None:
            state = colour_text(each["state"], _COLOURS[each["state"]])
            yield f"\n{name} {state}: {each['error']['cause']}: {each['error']['detail']}"
        if each.get("servers"):
            yield f"{name}: {each['servers']['summary']}"
        yield from (f"{name}: {note}" for note in each["notes"])
    for conflict in known["conflicts"]:
        others = ", ".join(conflict["losers"])
        yield f"conflict: {conflict['groupVersion']} is {conflict['winner']}'s; {others} has it too"
    if (known.get("openapiV2") or {}).get("requests"):
        yield _swagger_line(known["openapiV2"])
    yield from (f"left out: {each}" for each in (known.get("sources") or {}).get("leftOut", ()))


def _swagger_line(known: Mapping[str, Any]) -> str:
    """Clients that still ask for Swagger 2.0, the busiest first."""
    counts = [(sum(forms.values()), name, forms) for name, forms in known["products"].items()]
    products = (
        f"{name} {count} ({', '.join(forms)})"
        for count, name, forms in sorted(counts, key=lambda each: (-each[0], each[1]))
    )
    last = age(known["lastRequestAgeSeconds"])
    return f"/openapi/v2: {counted(known['requests'], 'request')}, the last {last} ago: {', '.join(products)}"
