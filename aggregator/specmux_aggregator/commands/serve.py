"""``specmux serve``."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from specmux_aggregator.model import Backend, BackendName, Kind
from specmux_aggregator.process import configure_logging, run
from specmux_aggregator.settings import Listen, Settings


@click.command()
@click.option("--directory", "directories", type=click.Path(path_type=Path), multiple=True)
@click.option("--port", default=8080)
def serve(directories: tuple[Path, ...], port: int) -> None:
    """Serve."""
    settings = Settings(
        listen=Listen(port=port),
        backends=tuple(
            Backend(name=BackendName(path.name), kind=Kind.DIRECTORY, directory=path) for path in directories
        ),
    )
    configure_logging(settings.log)
    asyncio.run(run(settings))
