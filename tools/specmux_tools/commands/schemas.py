"""``specmux schemas``: the JSON Schemas of a source's kinds, written as a tree of files."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

import click
import orjson

from specmux_aggregator.command_line.lazy_commands import examples
from specmux_aggregator.command_line.output import WrittenPath
from specmux_aggregator.console import progress, warn, write_line
from specmux_aggregator.exits import NOT_CHECKED, report_errors
from specmux_converters.counted_nouns import counted, size
from specmux_converters.document import Document
from specmux_converters.errors import ConverterError
from specmux_converters.group_versions import GroupVersion
from specmux_converters.json_schema.catalogue import LAYOUTS, files, gone, is_chosen
from specmux_converters.json_schema.document import DocumentSchemas
from specmux_converters.json_schema.kinds import Kind
from specmux_converters.json_schema.paths import MASTER
from specmux_converters.json_values import mapping
from specmux_converters.releases import RELEASES
from specmux_tools.command_line.output_files import replace_file
from specmux_tools.json_schema_job import example_of
from specmux_tools.sources import (
    SourceOptions,
    note_missing_descriptions,
    open_documents,
    report_unread,
    source_options,
)
from specmux_tools.sources.access import has_cluster
from specmux_tools.sources.input import refusals
from specmux_tools.sources.options import is_url
from specmux_tools.sources.source import FileRefused

KUSTOMIZE: Final = "kustomize"
"""A layout of one file, of Swagger 2.0."""

_RELEASE: Final = re.compile(r"v(?P<minor>[0-9]+\.[0-9]+)\.[0-9]+")
_INDEX: Final = "index.json"
_INDEX_MAX: Final = 64 * 1024 * 1024


@click.command(
    epilog=examples(
        ("of the cluster of the current context", "specmux schemas schemas/"),
        ("only files for kubeconform", "specmux schemas schemas/ --layout standalone --release v1.35.0"),
        ("of Kubernetes' own kinds, without a cluster", "specmux schemas schemas/ --release 1.36"),
        ("of a folder of CustomResourceDefinitions", "specmux schemas schemas/ --directory crds/"),
        ("for kustomize, as openapi: path:", "specmux schemas schemas/ --layout kustomize"),
        ("for generators of typed models", "specmux schemas schemas/ --layout models"),
        ("two kinds", "specmux schemas schemas/ --kinds Deployment --kinds '*.cert-manager.io'"),
    )
)
@click.argument("target", metavar="DIR", type=WrittenPath("a folder"))
@click.option(
    "--layout", "layouts", type=click.Choice([*LAYOUTS, KUSTOMIZE]), multiple=True,
    default=("grouped", "standalone"), show_default=True,
    help="Paths to write for each kind. Repeatable. models: all kinds of a group-version in one bundle;"
    " partial-models: the same with nothing required; kustomize: all kinds as one kustomize.json.",
)  # fmt: skip
@click.option(
    "--release", metavar="X.Y|vX.Y.Z", default=MASTER,
    help="Kubernetes' own kinds of this release. As vX.Y.Z: also write a folder of that name, beside master.",
)  # fmt: skip
@click.option(
    "--kinds", metavar="PATTERN", multiple=True, help="Only these kinds: Deployment, '*.cert-manager.io'."
)
@click.option("--base-url", metavar="URL", default="", help="URL of the schemas, for catalog.json.")
@click.option(
    "--allow-left-out", "allows_left_out", is_flag=True, help="Accept kinds that could not be converted."
)
@source_options
def schemas(
    target: str,
    layouts: tuple[str, ...],
    release: str,
    kinds: tuple[str, ...],
    base_url: str,
    allows_left_out: bool,
    source: SourceOptions,
) -> None:
    """Write JSON Schemas of all kinds, for editors and CI.

    The schemas are draft-07 and accept what Kubernetes' strict decoding and validation accept. Unchanged
    files keep their timestamp; files of kinds removed since the last run are deleted.

    Exit codes: 0 ok, 2 usage, 3 unreadable, 4 no answer, 5 a kind could not be converted
    (see --allow-left-out).
    """
    if is_url(target):
        raise click.UsageError(f"{target}: schemas are written into a folder")
    if base_url and not is_url(base_url):
        raise click.UsageError(f"--base-url is http://… or https://…; not {base_url!r}")
    if release in RELEASES:
        if source.names_one:
            raise click.UsageError(
                f"--release {release} names Kubernetes' own kinds, and another source is given; "
                f"a folder of a release is named v{release}.0"
            )
        source, release = source.or_release(release), MASTER
    elif (patch := _RELEASE.fullmatch(release)) is not None:
        if patch["minor"] in RELEASES and not has_cluster(os.environ):
            source = source.or_release(patch["minor"])
    elif release != MASTER:
        known = f"{RELEASES[0]} to {RELEASES[-1]}"
        raise click.UsageError(f"--release is {known}, v1.35.0, or {MASTER}; not {release!r}")
    if KUSTOMIZE in layouts and (len(set(layouts)) > 1 or kinds):
        raise click.UsageError("--layout kustomize is of all kinds, and goes with no other layout")
    with report_errors(), progress("writing schemas"):
        with open_documents(source) as documents:
            if KUSTOMIZE not in layouts:  # it reads no descriptions
                note_missing_descriptions(documents.where, source)
            loaded = documents.load()
        report_unread(loaded.unread)
        held = loaded.documents.documents
        if KUSTOMIZE in layouts:
            _write_kustomize(Path(target), held)
            return
        left_out = _write(Path(target), layouts, release, kinds, base_url, held)
    if left_out and not allows_left_out:
        raise click.exceptions.Exit(NOT_CHECKED)


def _write(
    folder: Path,
    layouts: Iterable[str],
    release: str,
    kinds: tuple[str, ...],
    base_url: str,
    documents: Mapping[GroupVersion, Document],
) -> list[Kind]:
    """The kinds that could not be converted. Raises FileRefused."""
    made = {key: DocumentSchemas(each, key, example_of) for key, each in documents.items()}
    for pattern in kinds:
        if not any(is_chosen(kind, (pattern,)) for each in made.values() for kind in each.kinds):
            raise FileRefused(f"--kinds {pattern}", "no kind has this name; nothing was written")
    left_out: list[Kind] = []

    def report(kind: Kind, error: ConverterError) -> None:
        warn(f"{kind.kind} {kind.api_version} is left out: {error}")
        left_out.append(kind)

    before = _index_in(folder)
    count = changed = total = 0
    for path, data in files(
        made, layouts=layouts, report=report, release=release, kinds=kinds, base=base_url
    ):
        count, total = count + 1, total + len(data)
        changed += replace_file(folder / path, data)
    removed = 0 if kinds else _remove_files(folder, before, release)
    write_line(
        f"{counted(count, 'file')}, {size(total)}: {changed} written, {removed} removed, the rest unchanged"
    )
    return left_out


def _write_kustomize(folder: Path, documents: Mapping[GroupVersion, Document]) -> None:
    """Raises FileRefused."""
    from specmux_converters.to_swagger2.kustomize import kustomize_schema  # which no other layout needs

    path = folder / f"{KUSTOMIZE}.json"
    with refusals(path):
        data = orjson.dumps(kustomize_schema(documents), option=orjson.OPT_SORT_KEYS)
    is_new = replace_file(path, data)
    write_line(f"{path}, {size(len(data))}: {'written' if is_new else 'as it was'}")


def _remove_files(folder: Path, before: dict[str, object], release: str) -> int:
    removed = 0
    for path in map(folder.joinpath, gone(before, _index_in(folder), release=release)):
        with refusals(path):
            if path.is_file():
                path.unlink()
                removed += 1
    return removed


def _index_in(folder: Path) -> dict[str, object]:
    """The folder's ``index.json``; empty where there is none of ours."""
    path = folder / _INDEX
    if folder.exists() and not folder.is_dir():
        raise FileRefused(folder, "not a folder")
    with refusals(path):
        if not path.is_file() or path.stat().st_size > _INDEX_MAX:
            return {}
        try:
            found = orjson.loads(path.read_bytes())
        except orjson.JSONDecodeError:
            return {}
    return mapping(found)
