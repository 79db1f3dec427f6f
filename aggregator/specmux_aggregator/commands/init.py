"""``specmux init``: a configuration to start from."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import click

from specmux_aggregator.command_line.lazy_commands import examples
from specmux_aggregator.config.flags import backend_flags
from specmux_aggregator.config.source import ConfigSource
from specmux_aggregator.console import Unwritable
from specmux_aggregator.exits import InputPath, UnreadableInput, report_errors
from specmux_aggregator.folders import locate
from specmux_aggregator.model.backend import Backend

SCHEMA_NAME = "specmux.schema.json"

_HEAD = f"""\
# yaml-language-server: $schema={SCHEMA_NAME}
# Every setting stands here with its default, commented out. "specmux check-config FILE" says what this means,
# "specmux serve --config FILE" serves it and reads it again whenever it changes.
"""
_CLUSTER = """\
# The cluster of a kubeconfig: its apiserver, its extension apiservers and its definitions.
kubernetes:
"""
_BACKENDS = """\
# Servers and folders beside a cluster, or without one. "specmux init --kubeconfig FILE" or "--context NAME"
# writes the settings of a cluster instead.
{}#  # An apiserver: OpenAPI v3 where it has it, Swagger 2.0 converted where it has not.
#  - name: example
#    url: https://apiserver.example.org:6443
#    tls: {{ca_file: ca.crt}}
#    credentials: {{token_file: token}}
#  # A folder of documents and CustomResourceDefinitions.
#  - name: files
#    directory: documents/
"""


@click.command(
    epilog=examples(
        ("specmux.yaml of the current context's cluster", "specmux init --kubeconfig ~/.kube/config"),
        ("specmux.yaml without a cluster, and the schema that editors check it with", "specmux init"),
        ("the schema alone", "specmux init --schema > specmux.schema.json"),
        (
            "specmux.yaml of a server and a folder",
            "specmux init --backend a=https://10.0.0.1:6443 --directory docs/",
        ),
        ("the configuration alone, to standard output", "specmux init -"),
    )
)
@click.argument(
    "file", required=False, default="specmux.yaml", type=click.Path(path_type=Path, dir_okay=False)
)
@click.option(
    "--kubeconfig",
    type=InputPath(path_type=Path, dir_okay=False, exists=True),
    metavar="FILE",
    help="Write the settings of the cluster that this kubeconfig names.",
)
@click.option("--context", metavar="NAME", help="The context to take; without one, the current.")
@backend_flags
@click.option("--force", is_flag=True, help="Replace the file where there is one.")
@click.option("--schema", is_flag=True, help="Print the JSON Schema of the configuration instead.")
def init(
    file: Path,
    kubeconfig: Path | None,
    context: str | None,
    backends: tuple[Backend, ...],
    directories: tuple[Path, ...],
    force: bool,
    schema: bool,
) -> None:
    """Write a configuration to start from.

    Beside it goes the JSON Schema of the configuration, which editors complete and check it with. FILE can be
    - for standard output, without the schema.

    Exit codes: 0 written, 2 usage, 3 unreadable, or cannot be written.
    """
    import orjson

    from specmux_aggregator.config.json_schema import config_schema

    text = orjson.dumps(config_schema(), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    if schema:
        click.echo(text, nl=False)
        return
    is_file = str(file) != "-"
    if is_file and file.exists() and not force:
        raise click.UsageError(f"{file} is there already; --force replaces it")
    cluster = [] if kubeconfig is None and context is None else [_cluster(kubeconfig, context)]
    with report_errors():
        named = ConfigSource(backends=backends, directories=directories).read().backends
    listed = "".join(["backends:\n", *map(_backend, named)]) if named else "backends: []\n"
    written = "\n".join([_HEAD, *_settings(), *cluster, _BACKENDS.format(listed)])
    if not is_file:
        click.echo(written, nl=False)
        return
    beside = file.with_name(SCHEMA_NAME)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(written)
        beside.write_bytes(text)
    except OSError as error:
        raise Unwritable(f"{file}: {error.strerror or 'cannot be written'}") from error
    click.echo(f"{file} and {beside} are written; next: specmux check-config {file}")


def _cluster(kubeconfig: Path | None, context: str | None) -> str:
    """The settings of the cluster that is meant, which has to be there."""
    import orjson

    from specmux_cache.access.kubeconfig import read
    from specmux_cache.errors import AccessError

    try:
        name = read(kubeconfig, os.environ, context=context).context
    except AccessError as error:
        raise UnreadableInput(str(error)) from error
    values = {"kubeconfig": None if kubeconfig is None else str(kubeconfig.absolute()), "context": name}
    lines = (f"  {key}: {orjson.dumps(value).decode()}" for key, value in values.items() if value is not None)
    return _CLUSTER + "\n".join(lines) + "\n"


def _backend(backend: Backend) -> str:
    """Its entry, which reads the same wherever the file is put."""
    import orjson

    directory = None if backend.directory is None else str(locate(backend.directory, Path.cwd()))
    key, value = ("url", backend.url) if directory is None else ("directory", directory)
    return f"- name: {orjson.dumps(backend.name).decode()}\n  {key}: {orjson.dumps(value).decode()}\n"


def _write_value(value: object) -> str:
    """A value as YAML 1.1 reads it, too: there ``off`` is false."""
    from specmux_aggregator.config.setting_fields import plain

    text = plain(value)
    return f'"{text}"' if isinstance(value, str) and text in ("on", "off", "yes", "no") else text


def _settings() -> Iterator[str]:
    from specmux_aggregator.config.setting_fields import setting_fields

    group = ""
    for setting in setting_fields():
        if setting.group != group:
            group = setting.group
            yield f"# {group}:"
        value = "" if setting.default is None else f" {_write_value(setting.default)}"
        yield f"#   {setting.name}:{value}  # {setting.doc}"
    yield ""
