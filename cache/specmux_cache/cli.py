"""``specmux cache``: the client library from the command line.

Exit codes: 0 done, 1 not found, 2 usage, 3 the cache or a bundle is damaged, 4 the server or the network.
"""

from __future__ import annotations

import json
import os
import ssl
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from specmux_cache.doctor import examine
from specmux_cache.errors import (
    BundleError,
    CacheError,
    GroupVersionNotFound,
    NotCached,
    RequestError,
    StoreDamaged,
)
from specmux_cache.options import CacheOptions, default_directory
from specmux_cache.store.disk_store import DiskStore
from specmux_cache.sync import SchemaCache

NOT_FOUND: Final = 1
CORRUPTION: Final = 3
SERVER: Final = 4
HASH_SHOWN: Final = 12
"""Digits of a hash in a table."""

Command = TypeVar("Command", bound=Callable[..., Any])


def with_json(command: Command) -> Command:
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(command)


def with_server(command: Command) -> Command:
    """The options that say which server, and as whom."""
    for option in reversed(
        [
            click.option(
                "--server", envvar="SPECMUX_SERVER", required=True, help="http(s)://host[:port][/path]"
            ),
            click.option(
                "--token-file", type=click.Path(path_type=Path, exists=True), help="A bearer token."
            ),
            click.option(
                "--ca-file", type=click.Path(path_type=Path, exists=True), help="Trust these alone."
            ),
            click.option("--client-certificate", type=click.Path(path_type=Path, exists=True)),
            click.option("--client-key", type=click.Path(path_type=Path, exists=True)),
            click.option("--partition", help="Share entries by this name.  [default: by who asks]"),
            click.option("--offline", is_flag=True, help="Ask no server."),
        ]
    ):
        command = option(command)
    return command


@click.group("cache")
@click.option(
    "--directory",
    type=click.Path(path_type=Path, file_okay=False),
    envvar="SPECMUX_CACHE_DIRECTORY",
    help="Where the cache lies.  [default: $XDG_CACHE_HOME/specmux]",
)
@click.pass_context
def cache(context: click.Context, directory: Path | None) -> None:
    """Keep the OpenAPI documents of Kubernetes-style servers on disk."""
    context.obj = directory or default_directory(os.environ)


@cache.command()
@with_server
@with_json
@click.pass_obj
def paths(directory: Path, /, as_json: bool, **server: Any) -> None:
    """List the group-versions that the server publishes."""
    with failures(), opened(directory, **server) as client:
        found = client.paths()
        listed = {name: document.hash for name, document in found.documents.items()}
        value = {"paths": listed, "from_cache": found.from_cache, "stale": found.stale, "age": found.age}
        show(as_json, value, (f"{name}\t{hash_[:HASH_SHOWN]}" for name, hash_ in listed.items()))
        warn_if_stale(found.stale)


@cache.command()
@click.argument("group_version")
@click.option("--media", help="json, cbor, protobuf, or a media type.")
@with_server
@with_json
@click.pass_obj
def get(directory: Path, /, group_version: str, media: str | None, as_json: bool, **server: Any) -> None:
    """Print a document. With --json, print what is known of it instead."""
    with failures(), opened(directory, **server) as client:
        schema = client.schema(group_version, media=media)
        if as_json:
            value = asdict(schema)
            value["size"] = len(value.pop("body"))
            show(as_json, value, ())
        else:
            sys.stdout.buffer.write(schema.body)
            sys.stdout.buffer.flush()
        warn_if_stale(schema.stale)


@cache.command()
@click.argument("group_versions", nargs=-1)
@with_server
@with_json
@click.pass_obj
def warm(directory: Path, /, group_versions: tuple[str, ...], as_json: bool, **server: Any) -> None:
    """Fetch what is not stored yet: these group-versions, or all."""
    with failures(), opened(directory, **server) as client:
        done = client.prefetch(group_versions or None)
        failed = {name: str(error) for name, error in done.failed.items()}
        value = {"fetched": done.fetched, "present": done.present, "failed": failed}
        lines = [f"{len(done.fetched)} fetched, {len(done.present)} present, {len(failed)} failed"]
        show(as_json, value, [*lines, *failed.values()])
    if failed:
        is_missing = all(isinstance(error, GroupVersionNotFound) for error in done.failed.values())
        raise SystemExit(NOT_FOUND if is_missing else SERVER)


@cache.command("ls")
@click.option("--server", "prefix", help="Of this server alone.")
@with_json
@click.pass_obj
def list_entries(directory: Path, prefix: str | None, as_json: bool) -> None:
    """List what is stored."""
    with failures(), store_of(directory) as store:
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
        lines = (
            f"{row.key.server}\t{row.key.group_version}\t{row.key.hash[:HASH_SHOWN]}\t{row.key.media_type}"
            f"\t{row.size}{' superseded' * row.superseded}"
            for row in rows
        )
        show(as_json, listed, lines)


@cache.command()
@with_json
@click.pass_obj
def stats(directory: Path, as_json: bool) -> None:
    """Count what is stored, in entries and in bytes on disk."""
    with failures(), store_of(directory) as store:
        value = asdict(store.stats())
        show(as_json, value, (f"{name}\t{number}" for name, number in value.items()))


@cache.command()
@click.option("--fix", is_flag=True, help="Remove what is wrong; safe beside programs that use the cache.")
@with_json
@click.pass_obj
def verify(directory: Path, fix: bool, as_json: bool) -> None:
    """Read everything, and say what is not as it was stored. Exits 3 when something is left that is wrong."""
    with failures(), store_of(directory) as store:
        problems = store.check(fix=fix)
        listed = [asdict(problem) for problem in problems]
        lines = [f"{problem.kind}\t{problem.detail}{' fixed' * problem.is_fixed}" for problem in problems]
        show(as_json, listed, lines or ["nothing wrong"])
    if any(not problem.is_fixed for problem in problems):
        raise SystemExit(CORRUPTION)


@cache.command()
@click.option("--max-bytes", type=click.IntRange(min=0), help="Get down to this.  [default: the low mark]")
@click.option("--max-age", type=click.FloatRange(min=0), help="Seconds without use after which entries go.")
@click.option("--dry-run", is_flag=True, help="Only say what would go.")
@with_json
@click.pass_obj
def compact(
    directory: Path, max_bytes: int | None, max_age: float | None, dry_run: bool, as_json: bool
) -> None:
    """Shrink the cache now."""
    with failures(), store_of(directory) as store:
        value = asdict(store.compact(max_bytes=max_bytes, max_age=max_age, dry_run=dry_run))
        show(as_json, value, (f"{name}\t{number}" for name, number in value.items()))


@cache.command()
@with_json
@click.pass_obj
def clear(directory: Path, as_json: bool) -> None:
    """Remove every entry, of every server."""
    with failures(), store_of(directory) as store:
        removed = store.clear()
        show(as_json, {"removed": removed}, [f"{removed} removed"])


@cache.command("export")
@click.argument("bundle", type=click.Path(path_type=Path, dir_okay=False))
@with_server
@with_json
@click.pass_obj
def export_bundle(directory: Path, /, bundle: Path, as_json: bool, **server: Any) -> None:
    """Write what is stored of a server into one file."""
    with failures(), opened(directory, **server) as client:
        count = client.export(bundle)
        show(as_json, {"exported": count}, [f"{count} exported"])


@cache.command("import")
@click.argument("bundle", type=click.Path(path_type=Path, dir_okay=False))
@with_server
@with_json
@click.pass_obj
def import_bundle(directory: Path, /, bundle: Path, as_json: bool, **server: Any) -> None:
    """Store what a file holds as this server's."""
    with failures(), opened(directory, **server) as client:
        count = client.import_(bundle)
        show(as_json, {"imported": count}, [f"{count} imported"])


@cache.command()
@click.option("--server", envvar="SPECMUX_SERVER", help="Look at this server, too.")
@with_json
@click.pass_obj
def doctor(directory: Path, server: str | None, as_json: bool) -> None:
    """Look for what commonly goes wrong. Exits 3 for the directory, 4 for the server."""
    with failures():
        findings = examine(directory, server)
        lines = (f"{'ok' if one.is_good else 'BAD'}\t{one.subject}\t{one.detail}" for one in findings)
        show(as_json, [asdict(one) for one in findings], lines)
    bad = {one.subject for one in findings if not one.is_good}
    if bad:
        raise SystemExit(SERVER if bad == {"server"} else CORRUPTION)


@contextmanager
def failures() -> Iterator[None]:
    """Errors of this package as one line and an exit code."""
    try:
        yield
    except (GroupVersionNotFound, NotCached) as error:
        raise _exit(error, NOT_FOUND) from error
    except (StoreDamaged, BundleError) as error:
        raise _exit(error, CORRUPTION) from error
    except RequestError as error:
        raise _exit(error, SERVER) from error
    except CacheError as error:
        raise _exit(error, CORRUPTION) from error


@contextmanager
def opened(
    directory: Path,
    *,
    server: str,
    token_file: Path | None,
    ca_file: Path | None,
    client_certificate: Path | None,
    client_key: Path | None,
    partition: str | None,
    offline: bool,
) -> Iterator[SchemaCache]:
    """A client as the options of ``with_server`` say. Raises click.UsageError for what cannot be used."""
    options = CacheOptions(directory=directory, partition=partition, offline=offline)
    try:
        headers = {"Authorization": f"Bearer {token_file.read_text().strip()}"} if token_file else {}
        tls = _trusting(ca_file) if ca_file or client_certificate else None
        identity = ""
        if tls is not None and client_certificate is not None:
            tls.load_cert_chain(client_certificate, client_key)
            identity = client_certificate.read_text()
        client = SchemaCache(server, options, headers=headers, tls=tls, identity=identity, warn=_warn)
    except (OSError, ValueError) as error:
        raise click.UsageError(str(error)) from error
    with client:
        yield client


def _trusting(ca_file: Path | None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=ca_file)
    # From Python 3.13 on it refuses CAs without key identifiers or key usage, which many clusters have.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    # As kubectl does, and Python from 3.13 on: an intermediate that is given is trusted by itself.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    return context


@contextmanager
def store_of(directory: Path) -> Iterator[DiskStore]:
    with DiskStore.open(directory, warn=_warn) as store:
        yield store


def show(as_json: bool, value: Any, lines: Any) -> None:
    """The value as JSON, or the lines for people."""
    if as_json:
        click.echo(json.dumps(value, indent=2))
    else:
        for line in lines:
            click.echo(line)


def warn_if_stale(is_stale: bool) -> None:
    if is_stale:
        _warn("stale: the server could not confirm it")


def _warn(text: str) -> None:
    click.echo(text, err=True)


def _exit(error: CacheError, code: int) -> SystemExit:
    click.echo(f"Error: {error}", err=True)
    return SystemExit(code)
