"""``specmux get``: one document of a server, or the list of its group-versions."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Final

import click

from specmux_aggregator.command_line.lazy_commands import examples
from specmux_aggregator.command_line.output import Output, output_option, show
from specmux_aggregator.console import warn
from specmux_aggregator.exits import report_errors
from specmux_converters.counted_nouns import list_first
from specmux_converters.group_versions import GroupVersion, named_group_version
from specmux_tools.sources import (
    SourceOptions,
    open_documents,
    own_kinds_option,
    report_unread,
    source_options,
)
from specmux_tools.sources.completion import complete_group_versions

HASH_SHOWN: Final = 12
INTERVAL: Final = 2.0
"""Seconds between looks at the list of documents of a server that does not stream what it publishes."""


@click.command(
    epilog=examples(
        ("the group-versions of the current context", "specmux get"),
        ("one document, with line breaks", "specmux get apps/v1 -o yaml"),
        ("from files, CustomResourceDefinitions among them", "specmux get example.com/v1 --directory crds/"),
        ("of Kubernetes' own kinds, without a server", "specmux get apps/v1 --release 1.36"),
        ("schemas without paths", "specmux get apps/v1 --profile schemas"),
        ("a line whenever it changes", "specmux get apps/v1 -w"),
    )
)
@click.argument("group_version", required=False, shell_complete=complete_group_versions)
@click.option("-w", "--watch", is_flag=True, help="Print a line whenever a document changes, until Ctrl-C.")
@click.option(
    "--profile",
    type=click.Choice(["components", "schemas"]),
    help="A smaller form: what repeats as components, or schemas alone.",
)
@own_kinds_option
@output_option
@source_options
def get(
    group_version: str | None,
    watch: bool,
    profile: str | None,
    output: Output,
    source: SourceOptions,
) -> None:
    """Print an OpenAPI v3 document, or list the group-versions.

    GROUP_VERSION is apps/v1, v1 or a key of /openapi/v3. A document as text is JSON.

    Exit codes: 0 ok, 1 not there, 2 usage, 3 unreadable, 4 no answer.
    """
    with report_errors():
        if watch:
            if output != "text":
                raise click.UsageError("--watch prints lines of text; omit --output")
            _watch(group_version, source)
        elif group_version is None:
            with open_documents(source) as documents:
                known = documents.group_versions()
                show(output, {"groupVersions": list(map(str, known))}, known)
                if not known:
                    warn(f"{documents.where} publishes no documents")
        else:
            _print(group_version, output, profile, source)


def _print(group_version: str, output: str, profile: str | None, source: SourceOptions) -> None:
    from specmux_aggregator.errors import NotThere, SourceError
    from specmux_converters.crd.keywords import without_defined_fields
    from specmux_converters.document import canonical
    from specmux_converters.yaml import to_yaml
    from specmux_tools.command_line.output_files import write_out

    with open_documents(source) as documents:
        known = documents.group_versions()
        key = _key(group_version, known)
        if key is None:
            alike = [key for key in known if f"/{group_version}/" in f"/{key}"]
            named = list_first(known, NAMED)
            said = f"did you mean {' or '.join(alike[-3:])}?" if alike else f"it has {named or 'nothing'}"
            raise NotThere(f"{documents.where} has no {group_version}; {said}")
        loaded = documents.load([key])
        report_unread(loaded.unread)
        document = loaded.documents.documents.get(key)
        if document is None:
            raise SourceError(f"{key} cannot be had from {documents.where}")
    document = without_defined_fields(document)
    if profile is not None:
        from specmux_converters.profiles import PROFILES, media_type_of

        document = PROFILES[media_type_of(profile)](document)
    write_out(to_yaml(document) if output == "yaml" else canonical(document), is_text=True)


NAMED: Final = 20
"""Group-versions that are named where another was asked for."""


def _key(wanted: str, known: Iterable[str]) -> GroupVersion | None:
    """The key that is meant: ``apps/v1``, ``v1`` and the path of the document are also accepted."""
    wanted = wanted.removeprefix("/openapi/v3").removeprefix("/") if wanted.startswith("/") else wanted
    return next((key for key in (GroupVersion(wanted), named_group_version(wanted)) if key in known), None)


def _watch(group_version: str | None, source: SourceOptions) -> None:
    if source.is_local or source.kubernetes or source.offline:
        raise click.UsageError("--watch is for servers: give --server or --context, without --offline")
    from specmux_tools.sources.remote.servers import open_client

    with open_client(source) as client:
        last: dict[str, str] = {}
        try:
            for found in client.follow(interval=INTERVAL):
                now = {key: value for key, value in last.items() if key != found.group_version}
                if found.hash is not None:
                    now[found.group_version] = found.hash
                for line in changes(last, now, group_version):
                    click.echo(f"{time.strftime('%H:%M:%S')} {line}")
                last = now
        except KeyboardInterrupt:
            return


def changes(last: dict[str, str], now: dict[str, str], group_version: str | None) -> Iterator[str]:
    """A line for each document that came, changed or went; of one group-version where one is asked for."""
    every = sorted(last.keys() | now.keys())
    for key in every if group_version is None else filter(None, [_key(group_version, every)]):
        before, after = last.get(key), now.get(key)
        if before == after:
            continue
        if after is None:
            yield f"{key} is gone"
        elif before is None:
            yield f"{key} {after[:HASH_SHOWN]}"
        else:
            yield f"{key} {before[:HASH_SHOWN]} -> {after[:HASH_SHOWN]}"
