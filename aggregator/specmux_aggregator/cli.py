"""The command line: parses and hands over, nothing else."""

from __future__ import annotations

from importlib.metadata import version

import click

from specmux_aggregator.commands.check_config import check_config
from specmux_aggregator.commands.convert import convert
from specmux_aggregator.commands.demo import demo
from specmux_aggregator.commands.merge import merge
from specmux_aggregator.commands.serve import serve
from specmux_cache.cli import cache


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(version("specmux"), prog_name="specmux", message="%(prog)s %(version)s")
def main() -> None:
    """One OpenAPI v3 discovery in front of many Kubernetes-style apiservers."""


@click.command("version")
def print_version() -> None:
    """Print the version."""
    click.echo(f"specmux {version('specmux')}")


for command in (serve, check_config, convert, merge, cache, demo, print_version):
    main.add_command(command)


if __name__ == "__main__":
    main(prog_name="specmux")
