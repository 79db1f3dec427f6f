"""``specmux check-config``: a configuration read as the service reads it, shown, and its backends asked."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import click

from specmux_aggregator.built_in_releases import built_in_releases
from specmux_aggregator.command_line.lazy_commands import examples
from specmux_aggregator.config.setting_fields import plain, setting_fields
from specmux_aggregator.config.settings import Settings
from specmux_aggregator.config.source import ConfigSource, environment
from specmux_aggregator.errors import InvalidConfig, NoBackendReachable, UnreadableLayout
from specmux_aggregator.exits import report_errors
from specmux_aggregator.folders import is_document_name, is_layout, walk_files
from specmux_aggregator.kubernetes.cluster_access import Access, choose_access
from specmux_aggregator.model.backend import Backend, BackendKind
from specmux_aggregator.model.failure import Cause, Failure
from specmux_aggregator.upstream.client import BackendClient, BackendRoot, NotModified, Payload
from specmux_converters.counted_nouns import counted

DIRECTORY_FILES_MAX = 10_000
"""Documents of a directory that are counted."""


@click.command(
    "check-config",
    epilog=examples(
        "specmux check-config specmux.yaml",
        ("contact every backend, too", "specmux check-config specmux.yaml --probe"),
    ),
)
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--probe", is_flag=True, help="Also request the root of every backend.")
def check_config(file: Path, probe: bool) -> None:
    """Check a configuration, and show what it means.

    It is read as "serve" would read it.

    Exit codes: 0 ok, 2 usage, 3 invalid configuration, 4 no backend reachable (with --probe).
    """
    if str(file) == "-":
        raise click.UsageError("a configuration is a file: relative paths in it start at its folder")
    with report_errors():
        settings = ConfigSource(file=file, environment=environment()).read()
        access, missing = _cluster(settings, is_needed=probe)
        for line in describe_settings(settings):
            click.echo(line)
        if access is not None:
            click.echo(f"cluster {access.context}: {'; '.join(_facts(access.server))}")
        backends = settings.backends if access is None else (*settings.backends, access.server)
        for line in (*missing, *unreadable(settings, backends)):
            click.echo(f"warning: {line}", err=True)
        if probe:
            asyncio.run(_probe(settings, backends))


def describe_settings(settings: Settings) -> Iterator[str]:
    """Every setting that is not its default, and every backend, a line each."""
    for setting in setting_fields():
        value = getattr(getattr(settings, setting.group), setting.name)
        if value != setting.default:
            yield f"{setting.key}: {plain(value)}"
    for backend in settings.backends:
        yield f"backend {backend.name}: {'; '.join(_facts(backend))}"
    if not settings.backends and not settings.kubernetes.is_meant:
        yield "no backends"


def _cluster(settings: Settings, *, is_needed: bool) -> tuple[Access | None, list[str]]:
    """The cluster that is meant, and what of it is not at hand. Raises InvalidConfig."""
    try:
        return choose_access(settings.kubernetes, os.environ), []
    except InvalidConfig as error:
        # What a pod finds is not where its file is written and checked, as its other files are not.
        if is_needed or not settings.kubernetes.in_cluster:
            raise
        return None, [f"kubernetes.in_cluster: {error}"]


def unreadable(settings: Settings, backends: tuple[Backend, ...]) -> Iterator[str]:
    """Files and directories that the configuration names and this process cannot read now."""
    listen, auth, kubernetes = settings.listen, settings.auth, settings.kubernetes
    named = [
        ("listen.tls_cert_file", listen.tls_cert_file),
        ("listen.tls_key_file", listen.tls_key_file),
        ("auth.token_file", auth.token_file),
        ("auth.client_ca_file", auth.client_ca_file),
        ("auth.requestheader_ca_file", auth.requestheader_ca_file),
        ("kubernetes.service_token_file", kubernetes.service_token_file),
        ("kubernetes.service_cert_file", kubernetes.service_cert_file),
        ("kubernetes.service_key_file", kubernetes.service_key_file),
    ]
    for backend in backends:
        tls, credentials = backend.tls, backend.credentials
        named += [
            (f"backend {backend.name}: tls.ca_file", tls.ca_file),
            (f"backend {backend.name}: tls.cert_file", tls.cert_file),
            (f"backend {backend.name}: tls.key_file", tls.key_file),
            (f"backend {backend.name}: credentials.token_file", credentials.token_file),
            (f"backend {backend.name}: directory", backend.directory),
        ]
    for key, path in named:
        if path is not None and (reason := _unreadable(path)) is not None:
            yield f"{key}: {path}: {reason}"


async def probe_backend(backend: Backend, settings: Settings) -> tuple[bool, str]:
    """Whether the backend answers with something to publish, and what to say of it."""
    if backend.kubernetes is not None:
        found = len(built_in_releases().group_versions(backend.kubernetes))
        return True, f"Kubernetes {backend.kubernetes}, {counted(found, 'document')} of the package"
    if backend.directory is not None:
        count = _count_layers if is_layout(backend.directory) else _count_files
        return await asyncio.to_thread(count, backend.directory)
    client = BackendClient(backend, polling=settings.polling, limits=settings.limits)
    try:
        return await _ask_root(client, backend.kind)
    finally:
        await client.close()


async def _probe(settings: Settings, backends: tuple[Backend, ...]) -> None:
    results = await asyncio.gather(*(probe_backend(backend, settings) for backend in backends))
    for backend, (_, text) in zip(backends, results, strict=True):
        click.echo(f"probe {backend.name}: {text}")
    if not any(is_reachable for is_reachable, _ in results):
        raise NoBackendReachable("no backend reachable")


async def _ask_root(client: BackendClient, kind: BackendKind) -> tuple[bool, str]:
    answer: BackendRoot | Payload | NotModified | Failure
    answer = await (client.swagger() if kind is BackendKind.V2 else client.root())
    if kind is BackendKind.AUTO and isinstance(answer, Failure) and answer.cause is Cause.NOT_FOUND:
        answer = await client.swagger()
    match answer:
        case BackendRoot():
            ignored = f", {len(answer.ignored)} ignored" if answer.ignored else ""
            return True, f"v3, {counted(len(answer.offers), 'group-version')}{ignored}"
        case Payload():
            return True, f"v2, {counted(len(answer.body), 'byte')} of {answer.media_type or 'unnamed type'}"
        case Failure():
            return False, f"{answer.cause}: {answer.detail}"
        case NotModified():
            return False, "304 to a plain request"


def _count_files(directory: Path) -> tuple[bool, str]:
    # A folder that cannot be read is named in the list of unreadable paths.
    files = walk_files(directory, is_document_name, refuse=lambda error: None)
    count = sum(1 for _ in islice(files, DIRECTORY_FILES_MAX))
    more = " or more" if count == DIRECTORY_FILES_MAX else ""
    return count > 0, f"directory, {counted(count, 'file')}{more}"


def _count_layers(word: Path) -> tuple[bool, str]:
    from specmux_aggregator.backend_sources.oci_layout import Layout  # few directories are one

    try:
        return True, f"snapshot, {counted(len(Layout(str(word)).documents()), 'document')}"
    except UnreadableLayout as error:
        return False, str(error).removeprefix(f"{word}: ")


def _facts(backend: Backend) -> Iterator[str]:
    yield str(backend.url or backend.directory or f"Kubernetes {backend.kubernetes}")
    yield f"kind {backend.kind}"
    if backend.priority:
        yield f"priority {backend.priority}"
    if backend.group_versions is not None:
        yield f"only {', '.join(sorted(backend.group_versions))}"
    if backend.tls.ca_file is not None:
        yield f"CA {backend.tls.ca_file}"
    if backend.tls.insecure_skip_verify:
        yield "certificate NOT verified"
    if backend.tls.cert_file is not None or backend.tls.cert_data is not None:
        yield f"client certificate {backend.tls.cert_file or 'inline'}"
    if backend.credentials.token_file is not None:
        yield f"token {backend.credentials.token_file}"
    if backend.credentials.token is not None:
        yield "token inline"
    if backend.credentials.exec_plugin is not None:
        yield f"credentials of {backend.credentials.exec_plugin.command}"
    if backend.credentials.remote_user is not None:
        yield f"as user {backend.credentials.remote_user}"


def _unreadable(path: Path) -> str | None:
    if is_layout(path):
        is_readable, reason = _count_layers(path)
        return None if is_readable else reason
    try:
        if path.is_dir():
            next(path.iterdir(), None)
        else:
            path.open("rb").close()
    except OSError as error:
        return error.strerror or "cannot be read"
    return None
