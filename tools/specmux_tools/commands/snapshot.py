"""``specmux snapshot``: all documents of a source as an OCI image layout."""

from __future__ import annotations

import re
from pathlib import Path

import click

from specmux_aggregator.command_line.lazy_commands import examples
from specmux_aggregator.command_line.output import Output, WrittenPath, output_option, show
from specmux_aggregator.console import progress
from specmux_aggregator.exits import report_errors
from specmux_aggregator.folders import LAYOUT
from specmux_converters.counted_nouns import counted, size
from specmux_converters.errors import cut
from specmux_tools.sources import (
    SourceOptions,
    note_missing_descriptions,
    open_documents,
    own_kinds_option,
    report_unread,
    source_options,
)
from specmux_tools.sources.open_source import SourceWord
from specmux_tools.sources.options import is_given
from specmux_tools.sources.source import FileRefused


def _check_tag(_: click.Context, parameter: click.Parameter, value: str) -> str:
    from specmux_aggregator.backend_sources.oci_layout import TAG_SYNTAX

    if not re.fullmatch(TAG_SYNTAX, value):
        raise click.BadParameter(
            f"{value!r} is no tag: letters, digits, _ . and -, at most 128", param=parameter
        )
    return value


@click.command(
    epilog=examples(
        ("the cluster of the current context", "specmux snapshot prod --tag v1"),
        ("another context, as one file", "specmux snapshot context:staging staging.tar"),
        ("a folder of CustomResourceDefinitions", "specmux snapshot crds/ crds.tar"),
        ("what changed since", "specmux diff oci:prod:v1 context:prod"),
    )
)
@click.argument("words", metavar="[SOURCE|-]", nargs=-1, type=SourceWord())
@click.argument("out", metavar="OUT", type=WrittenPath("a folder or a tar", path_type=Path))
@click.option(
    "--tag", metavar="NAME", default="latest", show_default=True, callback=_check_tag,
    help="Tag of the snapshot in OUT; another of the same tag is replaced.",
)  # fmt: skip
@click.option(
    "--allow-unread", "allows_unread", is_flag=True, help="Go on without documents that cannot be read."
)
@own_kinds_option
@output_option
@source_options
def snapshot(
    words: tuple[str, ...], out: Path, tag: str, allows_unread: bool, output: Output, source: SourceOptions
) -> None:
    """Write all documents of a source as an OCI image layout.

    OUT is a folder, or a file that ends in .tar. Equal documents have the same digest on every machine, and
    oci:OUT, oci:OUT:TAG and oci:OUT@sha256:… are sources. SOURCE is a folder, a file, the URL of a server,
    git:REV:PATH, oci:PATH, context:NAME of a kubeconfig, or kubernetes:1.N.

    Exit codes: 0 ok, 2 usage, 3 unreadable, 4 no answer.
    """
    from specmux_tools.command_line.oci_image import image_of, write_image

    if words:
        is_named = is_given("server") or source.context or source.kubernetes or source.is_local
        if len(words) > 1 or is_named:
            others = "what the options name" if is_named else cut(words[1])
            raise click.UsageError(f"{cut(words[0])} and {others} are different sources; give one of them")
        source = source.at(words[0])
    with report_errors(), progress("reading documents"):
        with open_documents(source, is_published=True) as documents:
            note_missing_descriptions(documents.where, source)
            loaded = documents.load()
        if loaded.unread and not allows_unread:
            raise FileRefused(loaded.unread[0].where, f"{loaded.unread[0].reason}; --allow-unread omits it")
        report_unread(loaded.unread)
        image = image_of(loaded.documents.documents)
        write_image(image, out, tag=tag)
        count = len(loaded.documents.documents)
        value = {
            "path": str(out),
            "tag": tag,
            "digest": image.digest,
            "documents": count,
            "bytes": image.size,
        }
        told = f"{LAYOUT}{out}:{tag}: {counted(count, 'document')}, {size(image.size)}, {image.digest}"
        show(output, value, [told])
