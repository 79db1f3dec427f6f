"""The command line: the list of commands, and what holds for all of them.

Nothing heavy is imported here: ``--version``, ``--help`` and completion answer at once (a test lists the
modules that they import).
"""

from __future__ import annotations

from typing import Final

import click

from specmux_aggregator.command_line.common_options import verbosity_options
from specmux_aggregator.command_line.lazy_commands import CommandList, LazyCommand
from specmux_aggregator.command_line.output import output_of_group
from specmux_aggregator.version import VERSION

_COMMANDS: Final = "specmux_aggregator.commands"
_TOOLS: Final = "specmux_tools.commands"

SECTIONS: Final = {
    "Start": {
        "demo": LazyCommand(f"{_TOOLS}.demo:demo", "Run the service with example backends on this machine."),
        "serve": LazyCommand(
            f"{_COMMANDS}.serve:serve", "Serve the discovery and the documents of all backends."
        ),
        "status": LazyCommand(
            f"{_TOOLS}.status:status", "Show the state of a running service and its backends."
        ),
        "init": LazyCommand(f"{_COMMANDS}.init:init", "Write a configuration to start from."),
        "ui": LazyCommand(
            f"{_TOOLS}.ui:ui", "Browse and search kinds and fields in a browser, on this machine."
        ),
        "check-config": LazyCommand(
            f"{_COMMANDS}.check_config:check_config", "Check a configuration, and show what it means."
        ),
    },
    "Documents": {
        "explain": LazyCommand(f"{_TOOLS}.explain:explain", "Explain a kind, or one of its fields."),
        "mcp": LazyCommand(
            f"{_TOOLS}.mcp:mcp", "Run an MCP server: tools for agents that use Kubernetes APIs."
        ),
        "search": LazyCommand(f"{_TOOLS}.search:search", "Search kinds and fields by words."),
        "convert": LazyCommand(f"{_TOOLS}.convert:convert", "Convert a document to OpenAPI v3."),
        "schemas": LazyCommand(
            f"{_TOOLS}.schemas:schemas", "Write JSON Schemas of all kinds, for editors and CI."
        ),
        "check": LazyCommand(
            f"{_TOOLS}.check:check", "Check OpenAPI documents and CustomResourceDefinitions for errors."
        ),
        "conformance": LazyCommand(
            f"{_TOOLS}.conformance:conformance",
            "Test whether a server keeps what KEP-2896 promises of /openapi/v3.",
        ),
        "merge": LazyCommand(
            f"{_TOOLS}.merge:merge", "Merge all group-versions into one OpenAPI v3 document."
        ),
        "snapshot": LazyCommand(
            f"{_TOOLS}.snapshot:snapshot", "Write all documents of a source as an OCI image layout."
        ),
        "upgrade": LazyCommand(
            f"{_TOOLS}.upgrade:upgrade", "List the objects that must change before an upgrade."
        ),
        "diff": LazyCommand(f"{_TOOLS}.diff:diff", "Compare documents: what changed, and who breaks."),
    },
    "Objects": {
        "validate": LazyCommand(f"{_TOOLS}.validate:validate", "Validate manifests as an apiserver would."),
    },
    "Client": {
        "get": LazyCommand(f"{_TOOLS}.get:get", "Print an OpenAPI v3 document, or list the group-versions."),
        "cache": LazyCommand(
            f"{_TOOLS}.cache:cache", "Manage the disk cache of OpenAPI documents.", is_group=True
        ),
    },
    "Other": {
        "completion": LazyCommand(f"{_COMMANDS}.help:completion", "Print the completion script of a shell."),
        "help": LazyCommand(f"{_COMMANDS}.help:show_help", "Print the help of a command."),
        "version": LazyCommand(f"{_COMMANDS}.help:print_version", "Print the version."),
    },
}
"""A command's line says where it is and what it does; a module is imported when its command is used."""


@click.group(
    cls=CommandList,
    sections=SECTIONS,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog='"specmux COMMAND --help" has the options and examples of a command.',
)
@click.version_option(VERSION, "-V", "--version", prog_name="specmux", message="%(prog)s %(version)s")
@output_of_group
def main() -> None:
    """One OpenAPI v3 endpoint for many Kubernetes-style API servers."""


main.params[:0] = verbosity_options()


if __name__ == "__main__":
    main(prog_name="specmux")
