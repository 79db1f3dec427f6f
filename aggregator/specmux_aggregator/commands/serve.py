"""``specmux serve``."""

from __future__ import annotations

import asyncio

import click

from specmux_aggregator.commands.exits import reported_errors
from specmux_aggregator.config import ConfigSource
from specmux_aggregator.config_flags import config_flags
from specmux_aggregator.config_watch import watch_config
from specmux_aggregator.process import configure_logging, run


@click.command()
@config_flags
def serve(source: ConfigSource) -> None:
    """Serve the discovery and the documents of all backends until SIGTERM.

    Every setting is a flag, an environment variable and a key of the file, in this order of precedence.
    """
    if source.file is None and not source.backends and not source.directories:
        raise click.UsageError("nothing to serve: give --config, --backend or --directory")
    with reported_errors():
        settings = source.read()
        configure_logging(settings.log)
        asyncio.run(run(settings, changes=lambda reread: watch_config(source, settings, reread=reread)))
