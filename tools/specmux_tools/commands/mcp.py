"""``specmux mcp``: a source's documents as tools for agents, on standard input and output or on loopback."""

from __future__ import annotations

import click

from specmux_aggregator.command_line.lazy_commands import examples
from specmux_aggregator.exits import report_errors
from specmux_tools.sources import SourceOptions, open_documents, own_kinds_option, source_options
from specmux_tools.sources.open_source import SourceWord


@click.command(
    epilog=examples(
        ("over standard input and output, as clients start it", "specmux mcp"),
        ("over files", "specmux mcp --directory documents/"),
        ("with a tool that shows what an upgrade breaks", "specmux mcp --against openapi-1.34/"),
        ("over HTTP on loopback", "specmux mcp --http --port 8765"),
    )
)
@click.option("--http", is_flag=True, help="Streamable HTTP on 127.0.0.1, at /mcp.  [default: stdio]")
@click.option(
    "--port", metavar="N", type=click.IntRange(1, 65535), default=8765, show_default=True,
    help="Port of --http.",
)  # fmt: skip
@click.option(
    "--against", metavar="WHAT", type=SourceWord(),
    help="Offer diff, against these documents: a file, a folder, a URL.",
)  # fmt: skip
@own_kinds_option
@source_options
def mcp(http: bool, port: int, against: str | None, source: SourceOptions) -> None:
    """Run an MCP server: tools for agents that use Kubernetes APIs.

    A server of the Model Context Protocol: list_kinds, explain, search, skeleton, validate, and diff where
    --against is given. They only read. It needs the extra specmux[mcp].

    Exit codes: 0 client disconnected, 2 usage, 3 nothing to read, 4 no answer.
    """
    try:
        from specmux_tools.mcp.server import server_of
    except ModuleNotFoundError as error:
        raise click.UsageError(f"{error.name} is missing: pip install 'specmux[mcp]'") from error
    from specmux_tools.inputs.diff_sides import side_of
    from specmux_tools.mcp.library import Library
    from specmux_tools.sources.search_index import SearchIndex

    before = None if against is None else lambda: side_of(against, source).served
    with report_errors(), open_documents(source) as documents:
        documents.group_versions()  # what cannot be read is told now, and not to a model
        index = SearchIndex(documents, source.directory_of_cache)
        library = Library(documents, is_ordered=not source.is_local, against=before, index=index)
        server = server_of(library, has_diff=before is not None)
        if http:
            server.run("streamable-http", host="127.0.0.1", port=port)
        else:
            server.run("stdio")
