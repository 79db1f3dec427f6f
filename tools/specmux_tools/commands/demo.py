"""``specmux demo``: the service in front of backends of its own, on this machine."""

from __future__ import annotations

import asyncio
import tempfile
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

import click
import orjson

from specmux_aggregator.app import App
from specmux_aggregator.command_line.common_options import release_option
from specmux_aggregator.command_line.lazy_commands import examples
from specmux_aggregator.config.settings import ListenSettings, LogSettings, PollingSettings, Settings
from specmux_aggregator.endpoints.status import is_ready
from specmux_aggregator.errors import NoBackendReachable
from specmux_aggregator.exits import report_errors
from specmux_aggregator.model.backend import Backend, BackendKind, BackendName
from specmux_aggregator.process import configure_logging, handle_signals, run_to_the_end
from specmux_tools.demo import (
    BOOKS,
    PLANTS,
    SEEDS,
    STATIONS,
    TREES,
    definition,
    openapi_v3,
    serving,
    swagger_2,
    tour,
    v2_application,
    v3_application,
)

READY_TIMEOUT = 300.0
"""Seconds that the demonstration's own backends may take for their first answers: the machine may be busy."""

SILENT_FOR = 5.0
"""Seconds after which it is said what is waited for."""


@click.command(
    epilog=examples(
        "specmux demo",
        ("on any free port", "specmux demo --port 0"),
        ("with Kubernetes' own kinds", "specmux demo --release 1.37"),
    )
)
@click.option(
    "--port", metavar="N", type=click.IntRange(0, 65535), default=8080, show_default=True,
    help="Port to listen on; 0 takes a free one.",
)  # fmt: skip
@release_option("Serve Kubernetes' own kinds of this release, too.", default="none")
def demo(port: int, release: str | None) -> None:
    """Run the service with example backends on this machine.

    The backends are real HTTP servers on loopback with example documents. Ctrl-C ends it.
    """
    configure_logging(LogSettings(level="warning"))
    with report_errors():
        run_to_the_end(run_demo(port, release))


async def run_demo(port: int, release: str | None = None) -> None:
    """Run until SIGINT or SIGTERM."""
    stop = asyncio.Event()
    async with AsyncExitStack() as stack:
        stack.enter_context(handle_signals(stop, asyncio.Event()))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="specmux-demo-")))
        manifests = folder / "manifests"
        manifests.mkdir()
        (manifests / f"{TREES.plural}.json").write_bytes(orjson.dumps(definition(TREES)))
        documents = folder / "documents"
        edited = documents / f"{STATIONS.group_version}.json"
        edited.parent.mkdir(parents=True)
        edited.write_bytes(orjson.dumps(openapi_v3(STATIONS), option=orjson.OPT_INDENT_2))
        modern = v3_application({item.group_version: openapi_v3(item) for item in (PLANTS, SEEDS)})
        v3_url = await stack.enter_async_context(serving(modern))
        v2_url = await stack.enter_async_context(serving(v2_application(swagger_2(BOOKS))))
        settings = _settings(port, v3_url, v2_url, documents, manifests)
        if release is not None:
            own = Backend(name=BackendName("kubernetes"), kind=BackendKind.DIRECTORY, kubernetes=release)
            settings = replace(settings, backends=(*settings.backends, own))
        app = App(settings, None)
        stack.push_async_callback(app.stop)
        host, bound = await app.start()
        await _ready(app)
        click.echo(
            tour(
                f"http://{host}:{bound}",
                app.publisher.current,
                native=PLANTS.group_version,
                converted=BOOKS.group_version,
                edited=edited,
            )
        )
        await stop.wait()
        click.echo("stopping")


def _settings(port: int, v3_url: str, v2_url: str, documents: Path, manifests: Path) -> Settings:
    return Settings(
        listen=ListenSettings(port=port),
        polling=PollingSettings(interval=2.0),
        backends=(
            Backend(name=BackendName("garden"), url=v3_url),
            Backend(name=BackendName("library"), url=v2_url),
            Backend(name=BackendName("orchard"), kind=BackendKind.CRDS, directory=manifests),
            Backend(name=BackendName("weather"), kind=BackendKind.DIRECTORY, directory=documents),
        ),
    )


async def _ready(app: App) -> None:
    try:
        async with asyncio.timeout(READY_TIMEOUT):
            said = asyncio.get_running_loop().call_later(
                SILENT_FOR, partial(click.echo, "waiting for the example backends …", err=True)
            )
            while not is_ready(app.publisher.current.observations.values()):
                await asyncio.sleep(0.02)
            said.cancel()
    except TimeoutError:
        raise NoBackendReachable(
            f"the example backends did not answer within {READY_TIMEOUT:.0f} s; "
            "run it again when the machine is less busy"
        ) from None
