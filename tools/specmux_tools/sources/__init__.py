"""The documents of a command: a server, a cluster, folders, files, or the disk cache.

Every command that reads documents takes the same options and opens them the same way::

    @click.command()
    @click.argument("path")
    @source_options
    def explain(path: str, source: SourceOptions) -> None:
        with reported_errors(), open_documents(source) as documents:  # an error is one line and an exit code
            loaded = documents.load(["apis/apps/v1"])  # None: all of them
            report_unread(loaded.unread)  # one warning for each unusable file
            kind = loaded.documents.find(GroupVersionKind("apps", "v1", "Deployment"))
            plurals = documents.resources()  # with short names, by group-version

A server is asked only for the documents that are loaded, through the client's cache, so the next command
starts with what this one fetched. ``options.at(word)`` is the source that one word names (a URL, a folder, a
file, ``-``, ``context:NAME``) with the same credentials, for commands that compare two.

Importing this package is cheap: what reads, converts and connects is imported when a source is opened.

It knows the client library, the kubeconfig and the schemas; nothing of the service.
"""

from specmux_tools.sources.open_source import note_missing_descriptions, open_documents, report_unread
from specmux_tools.sources.options import (
    SourceOptions,
    group_versions_option,
    own_kinds_option,
    page_options,
    service_options,
    side_options,
    source_options,
)

__all__ = [
    "SourceOptions",
    "group_versions_option",
    "note_missing_descriptions",
    "open_documents",
    "own_kinds_option",
    "page_options",
    "report_unread",
    "service_options",
    "side_options",
    "source_options",
]
