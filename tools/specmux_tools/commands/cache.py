"""``specmux cache``: the client library from the command line.

Exit codes are those of ``exits``; 1 is a group-version that is not there.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from specmux_aggregator.command_line.lazy_commands import SuggestingGroup, examples
from specmux_aggregator.command_line.output import (
    Output,
    WrittenPath,
    json_of_group,
    output_of_group,
    output_option,
    show,
)
from specmux_aggregator.console import progress, table, warn, write_error
from specmux_aggregator.errors import SourceError, SourceUnreachable
from specmux_aggregator.exits import FOUND, NO_ANSWER, UNREADABLE, InputPath, exit_code
from specmux_cache.errors import (
    BadValue,
    CacheError,
    GroupVersionNotFound,
    NotCached,
    RequestError,
)
from specmux_converters.counted_nouns import size
from specmux_tools.sources.access import access_of
from specmux_tools.sources.completion import complete_group_versions
from specmux_tools.sources.options import KUBERNETES, SourceOptions, is_url, mirror_options, server_options

if TYPE_CHECKING:  # imported where they are used: help and completion need no HTTP library and no index
    from specmux_cache import DiskStore, SchemaCache

HASH_SHOWN: Final = 12
"""Digits of a hash in a table."""

Command = TypeVar("Command", bound=Callable[..., Any])


def with_output(command: Command) -> Command:
    """``-o``, and ``--json`` for ``-o json``."""

    flag = click.option(
        "--json", is_flag=True, expose_value=False, is_eager=True, callback=json_of_group,
        help="The same as -o json.",
    )  # fmt: skip
    return output_option(flag(command))


def with_client(command: Callable[..., None]) -> Callable[..., None]:
    """The options that say which server, and as whom; the command gets its client, while it is open."""

    @click.pass_obj
    @functools.wraps(command)
    def run(directory: Path, /, source: SourceOptions, partition: str | None, **values: Any) -> None:
        from specmux_tools.sources.remote.servers import open_client

        asked = replace(source, cache_directory=directory)
        with failures(), open_client(asked, partition=partition) as client:
            command(client, **values)

    partition = click.option(
        "--partition",
        metavar="NAME",
        help="Part of the cache that is shared by this name.  [default: by credentials]",
    )
    return partition(server_options(run))


def with_store(command: Callable[..., None]) -> Callable[..., None]:
    """The command gets the store, while it is open."""

    @click.pass_obj
    @functools.wraps(command)
    def run(directory: Path, /, **values: Any) -> None:
        with failures(), store_of(directory) as store:
            command(store, **values)

    return run


@click.group(
    "cache",
    cls=SuggestingGroup,
    epilog=examples(
        ("the group-versions of the current context", "specmux cache paths"),
        ("fetch all of it, then read it without a server", "specmux cache warm"),
        "specmux cache get apps/v1 --offline",
        ("stored documents with their sizes", "specmux cache ls -o json"),
        "specmux cache stats",
    ),
)
@click.option(
    "--cache-directory", "--directory", "directory", metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False), envvar="SPECMUX_CACHE_DIRECTORY",
    help="Folder of the disk cache.  [default: $XDG_CACHE_HOME/specmux]",
)  # fmt: skip
@output_of_group
@click.option("--json", is_flag=True, expose_value=False, callback=json_of_group, hidden=True)
@click.pass_context
def cache(context: click.Context, directory: Path | None) -> None:
    """Manage the disk cache of OpenAPI documents.

    Exit codes: 0 ok, 1 not found, 2 usage, 3 the cache or a bundle is damaged, 4 no answer.
    """
    from specmux_cache.reading.options import default_directory

    context.obj = directory or default_directory(os.environ)


@cache.command(
    epilog=examples("specmux cache paths", "specmux cache paths --server http://127.0.0.1:8080 -o json")
)
@with_output
@with_client
def paths(client: SchemaCache, output: Output) -> None:
    """List the group-versions that the server publishes."""
    found = client.paths()
    listed = {name: document.hash for name, document in found.documents.items()}
    value = {"paths": listed, "from_cache": found.from_cache, "stale": found.stale, "age": found.age}
    rows = ((name, hash_[:HASH_SHOWN]) for name, hash_ in listed.items())
    show(output, value, table(("GROUP-VERSION", "HASH"), rows))
    warn_if_stale(found.stale)


@cache.command(
    epilog=examples(
        "specmux cache get apps/v1 --pretty",
        ("its metadata instead of the document", "specmux cache get apps/v1 -o json"),
    )
)
@click.argument("group_version", shell_complete=complete_group_versions)
@click.option("--media", metavar="TYPE", help="Media type: json, cbor, protobuf, or one in full.")
@click.option("--pretty", is_flag=True, help="JSON with line breaks.")
@with_output
@with_client
def get(client: SchemaCache, group_version: str, media: str | None, pretty: bool, output: Output) -> None:
    """Print a document. With -o json or yaml, print its metadata instead."""
    schema = client.schema(group_version, media="json" if pretty else media)
    if output == "text":
        body = schema.body
        if pretty:
            import orjson

            body = orjson.dumps(orjson.loads(body), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
        sys.stdout.buffer.write(body)
        sys.stdout.buffer.flush()
    else:
        value = asdict(schema)
        value["size"] = len(value.pop("body"))
        show(output, value, ())
    warn_if_stale(schema.stale)


@cache.command(epilog=examples("specmux cache warm", "specmux cache warm apps/v1 batch/v1 --context prod"))
@click.argument("group_versions", nargs=-1, shell_complete=complete_group_versions)
@with_output
@with_client
def warm(client: SchemaCache, group_versions: tuple[str, ...], output: Output) -> None:
    """Fetch missing documents: of these group-versions, or all."""
    with progress("fetching"):
        done = client.prefetch(group_versions or None)
    failed = {name: str(error) for name, error in done.failed.items()}
    value = {"fetched": list(done.fetched), "present": list(done.present), "failed": failed}
    lines = [f"{len(done.fetched)} fetched, {len(done.present)} present, {len(failed)} failed"]
    show(output, value, [*lines, *failed.values()])
    if failed:
        is_missing = all(isinstance(error, GroupVersionNotFound) for error in done.failed.values())
        raise SystemExit(FOUND if is_missing else NO_ANSWER)


@cache.command(
    epilog=examples(
        "specmux cache fetch kubernetes:1.36",
        ("from a mirror", "specmux cache fetch 1.36 --from 'https://mirror/kubernetes/{version}'"),
        ("from the sources", "specmux cache fetch 1.36 --from kubernetes-1.36.3.tar.gz"),
    )
)
@click.argument("release", metavar="kubernetes:1.N")
@click.option(
    "--from", "place", metavar="URL|DIR|FILE",
    help="A mirror, a folder, or an archive (tar, zip) of Kubernetes' sources.  [default: GitHub]",
)  # fmt: skip
@with_output
@mirror_options
@click.pass_obj
def fetch(directory: Path, /, release: str, place: str | None, output: Output, source: SourceOptions) -> None:
    """Fetch the published documents of Kubernetes' own kinds, which have descriptions.

    They are kept in the disk cache and need no network afterwards. A document that differs in more than
    descriptions from the one in specmux is refused. {version} in a URL is Kubernetes' version.
    """
    from specmux_tools.sources.options import release_of, source_word

    word = source_word(release)
    if not word.startswith(KUBERNETES):
        raise click.BadParameter(f"wants kubernetes:1.N; not {release!r}", param_hint="kubernetes:1.N")
    with failures(), progress("fetching"), store_of(directory) as store:
        from specmux_tools.sources.remote.published_documents import (
            PUBLISHED,
            DocumentKeeper,
            download_documents,
            published_url,
            read_documents,
        )

        keeper = DocumentKeeper(release_of(word), store)
        if place is not None and not is_url(place):
            read_documents(Path(place), keeper)
        else:
            url = published_url(release_of(word), place or PUBLISHED).rstrip("/")
            access = access_of(replace(source, server=url))
            download_documents(access, keeper, timeout=source.request_timeout)
    lines = [f"{len(keeper.fetched)} fetched, {len(keeper.present)} present"]
    show(output, {"fetched": keeper.fetched, "present": sorted(keeper.present)}, lines)


@cache.command(
    "ls", epilog=examples("specmux cache ls", "specmux cache ls --server https://10.0.0.1:6443 -o yaml")
)
@click.option("--server", "prefix", metavar="URL", help="List documents of this server alone.")
@with_output
@with_store
def list_entries(store: DiskStore, prefix: str | None, output: Output) -> None:
    """List stored documents."""
    if prefix is not None and not is_url(prefix):
        raise click.BadParameter("wants a URL that begins with http:// or https://", param_hint="--server")
    rows = list(store.rows(*([prefix] if prefix else [])))
    listed = [
        {
            **asdict(row.key),
            "size": row.size,
            "digest": row.digest,
            "touched_at": row.touched_at,
            "superseded": row.superseded,
        }
        for row in rows
    ]
    lines = [
        (
            row.key.server,
            row.key.group_version,
            row.key.hash[:HASH_SHOWN] or "-",
            size(row.size),
            "superseded" if row.superseded else "current",
            row.key.media_type,
        )
        for row in rows
    ]
    head = ("SERVER", "GROUP-VERSION", "HASH", "SIZE", "STATE", "MEDIA TYPE")
    show(output, listed, table(head, lines) if lines else ())


@cache.command(epilog=examples("specmux cache stats", "specmux cache stats -o json"))
@with_output
@with_store
def stats(store: DiskStore, output: Output) -> None:
    """Show how many entries and bytes are stored."""
    value = asdict(store.stats())
    show(output, value, _numbers(value))


@cache.command(
    epilog=examples("specmux cache verify", ("remove damaged entries", "specmux cache verify --fix"))
)
@click.option("--fix", is_flag=True, help="Remove damaged entries; safe while other programs use the cache.")
@with_output
@with_store
def verify(store: DiskStore, fix: bool, output: Output) -> None:
    """Read everything and report damage. Exits 3 if damage remains."""
    problems = store.check(fix=fix)
    listed = [asdict(problem) for problem in problems]
    rows = [(each.kind, "fixed" if each.is_fixed else "wrong", each.detail) for each in problems]
    show(output, listed, table(("WHAT", "STATE", "DETAIL"), rows) if rows else ["nothing wrong"])
    if any(not problem.is_fixed for problem in problems):
        if not fix:
            warn('"specmux cache verify --fix" removes damaged entries; they are fetched again when needed')
        raise SystemExit(UNREADABLE)


def _parse_bytes(_: click.Context, parameter: click.Parameter, value: str | None) -> int | None:
    """A size as the configuration has it: 50000000, 50MB, 1GiB."""
    from specmux_aggregator.config.setting_fields import byte_count

    try:
        return None if value is None else byte_count(value)
    except BadValue as error:
        raise click.BadParameter(str(error), param=parameter) from error


@cache.command(
    epilog=examples("specmux cache compact --dry-run", "specmux cache compact --max-bytes 50000000")
)
@click.option(
    "--max-bytes", metavar="BYTES", callback=_parse_bytes,
    help="Shrink to this size, such as 50MB or 1GiB.  [default: the low mark]",
)  # fmt: skip
@click.option(
    "--max-age", metavar="SECONDS", type=click.FloatRange(min=0), help="Remove entries unused for longer.",
)  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Only show what would be removed.")
@with_output
@with_store
def compact(
    store: DiskStore, max_bytes: int | None, max_age: float | None, dry_run: bool, output: Output
) -> None:
    """Shrink the cache now."""
    value = asdict(store.compact(max_bytes=max_bytes, max_age=max_age, dry_run=dry_run))
    show(output, value, _numbers(value))


@cache.command(epilog=examples("specmux cache clear"))
@with_output
@with_store
def clear(store: DiskStore, output: Output) -> None:
    """Remove every entry, of every server."""
    removed = store.clear()
    show(output, {"removed": removed}, [f"{removed} removed"])


@cache.command("export", epilog=examples("specmux cache export prod.bundle --context prod"))
@click.argument("bundle", type=WrittenPath("a bundle", path_type=Path, dir_okay=False))
@with_output
@with_client
def export_bundle(client: SchemaCache, bundle: Path, output: Output) -> None:
    """Write the stored documents of a server into one file."""
    count = client.export(bundle)
    show(output, {"exported": count}, [f"{count} exported"])
    if not count:
        warn('nothing of this server is stored; "specmux cache warm" fetches its documents')
        raise SystemExit(FOUND)


@cache.command(
    "import", epilog=examples("specmux cache import prod.bundle --server https://10.0.0.1:6443 --offline")
)
@click.argument("bundle", type=InputPath(path_type=Path, dir_okay=False, exists=True))
@with_output
@with_client
def import_bundle(client: SchemaCache, bundle: Path, output: Output) -> None:
    """Store the documents of a file as this server's."""
    count = client.import_(bundle)
    show(output, {"imported": count}, [f"{count} imported"])


@cache.command(epilog=examples("specmux cache doctor", "specmux cache doctor --server http://127.0.0.1:8080"))
@click.option("--server", metavar="URL", envvar="SPECMUX_SERVER", help="Also check this server.")
@with_output
@click.pass_obj
def doctor(directory: Path, server: str | None, output: Output) -> None:
    """Check the cache folder, and a server, for common faults. Exits 3 for the first, 4 for the second."""
    from specmux_cache.doctor import examine

    with failures():
        findings = examine(directory, server)
        rows = (("ok" if one.is_good else "BAD", one.subject, one.detail) for one in findings)
        show(output, [asdict(one) for one in findings], table(("STATE", "SUBJECT", "DETAIL"), rows))
    bad = {one.subject for one in findings if not one.is_good}
    if bad:
        raise SystemExit(NO_ANSWER if bad == {"server"} else UNREADABLE)


@contextmanager
def failures() -> Iterator[None]:
    """Errors of the client as one line and an exit code."""
    try:
        yield
    except (CacheError, SourceError, SourceUnreachable) as error:
        from specmux_tools.sources.remote.servers import next_step

        write_error(f"{error}{next_step(error) if isinstance(error, CacheError) else ''}")
        match error:
            case GroupVersionNotFound() | NotCached():
                code = FOUND
            case RequestError():
                code = NO_ANSWER
            case CacheError():
                code = UNREADABLE
            case _:
                code = exit_code(error)
        raise SystemExit(code) from error


def store_of(directory: Path) -> DiskStore:
    from specmux_cache import DiskStore

    return DiskStore.open(directory, warn=warn)


def _numbers(value: Mapping[str, Any]) -> list[str]:
    return table(("WHAT", "NUMBER"), ((name.replace("_", " "), _cell(name, value[name])) for name in value))


def _cell(name: str, value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return size(value) if "bytes" in name and isinstance(value, int) else str(value) or "-"


def warn_if_stale(is_stale: bool) -> None:
    if is_stale:
        warn("stale: the server could not confirm it")
