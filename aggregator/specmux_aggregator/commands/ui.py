"""``specmux ui``: the page of kinds and fields, served to this machine alone."""

from __future__ import annotations

import asyncio
import os
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING

import click

from specmux_aggregator.commands.exits import reported_errors
from specmux_aggregator.commands.listing import examples
from specmux_aggregator.console import write_line

if TYPE_CHECKING:  # the types bring the service with them, which --help does not need
    from specmux_aggregator.config.settings import Settings


@click.command(
    epilog=examples(
        ("the current context's cluster", "specmux ui"),
        ("another one's", "specmux ui --context production"),
        ("files", "specmux ui --directory documents/"),
    )
)
@click.option(
    "--port",
    metavar="N",
    type=click.IntRange(0, 65535),
    default=0,
    help="Port to listen on.  [default: a free one]",
)
@click.option("--browser/--no-browser", default=True, help="Open a browser, or do not.  [default: open]")
@click.option(
    "--kubeconfig",
    metavar="FILE",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="The kubeconfig.  [default: $KUBECONFIG, else ~/.kube/config]",
)
@click.option("--context", metavar="NAME", help="Context of the kubeconfig.  [default: the current one]")
@click.option(
    "--directory",
    "directories",
    metavar="DIR",
    multiple=True,
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Read the documents below this folder, not a server: OpenAPI v3, Swagger 2.0, CRDs. Repeatable.",
)
def ui(
    directories: tuple[Path, ...],
    kubeconfig: Path | None,
    context: str | None,
    port: int,
    browser: bool,
) -> None:
    """Browse and search kinds and fields in a browser, on this machine.

    It listens on 127.0.0.1 with your own credentials, answers under that name alone, and changes nothing. It
    runs until Ctrl-C.

    Exit codes: 0 stopped, 1 not started, 2 usage, 3 invalid kubeconfig.
    """
    from specmux_aggregator.event_loops import loop_factory
    from specmux_aggregator.process import run

    def started(host: str, bound: int) -> None:
        url = f"http://{host}:{bound}/openapi/ui/"
        write_line(f"the page is at {url}")
        if browser:
            webbrowser.open(url)

    with reported_errors():
        settings = _settings(directories, kubeconfig, context, port)
        with asyncio.Runner(loop_factory=loop_factory(settings.listen.event_loop)) as runner:
            runner.run(run(settings, started=started, is_whole_process=True, is_for_one_user=True))


def _settings(
    directories: tuple[Path, ...], kubeconfig: Path | None, context: str | None, port: int
) -> Settings:
    """Raises click.UsageError where nothing says what to show."""
    from specmux_aggregator.config.settings import Kubernetes, Listen, Settings
    from specmux_aggregator.model.backend import Backend, BackendName, Kind

    listen = Listen(address="127.0.0.1", port=port)
    if directories and (kubeconfig or context):
        raise click.UsageError("--directory and a kubeconfig name different sources; give one of them")
    backends = tuple(
        Backend(name=BackendName(f"folder-{number}"), kind=Kind.DIRECTORY, directory=folder)
        for number, folder in enumerate(directories, 1)
    )
    if backends:
        return Settings(listen=listen, backends=backends)
    if kubeconfig is None and context is None:
        kubeconfig = _default_kubeconfig()
    # The apiserver alone has every document; what it is made of needs rights that users seldom have.
    cluster = Kubernetes(kubeconfig=kubeconfig, context=context, api_services=False, crds=False)
    return Settings(listen=listen, kubernetes=cluster)


def _default_kubeconfig() -> Path:
    named = os.environ.get("KUBECONFIG", "").split(os.pathsep)[0]
    path = Path(named) if named else Path.home() / ".kube" / "config"
    if not path.is_file():
        raise click.UsageError("there is no kubeconfig; give --directory DIR or --kubeconfig FILE")
    return path
