"""``specmux ui``: the web UI of kinds and fields, served to this machine alone."""

from __future__ import annotations

import os
import webbrowser
from typing import TYPE_CHECKING

import click

from specmux_aggregator.command_line.lazy_commands import examples
from specmux_aggregator.exits import report_errors
from specmux_tools.sources import SourceOptions, note_missing_descriptions, own_kinds_option, page_options
from specmux_tools.sources.options import KUBERNETES

if TYPE_CHECKING:  # the types bring the service with them, which --help does not need
    from specmux_aggregator.config.settings import Settings


@click.command(
    epilog=examples(
        ("the current context's cluster", "specmux ui"),
        ("another context", "specmux ui --context production"),
        ("one server", "specmux ui --server http://127.0.0.1:8001"),
        ("files", "specmux ui --directory documents/"),
        ("Kubernetes' own kinds, without a cluster", "specmux ui --release 1.36"),
    )
)
@click.option(
    "--port", metavar="N", type=click.IntRange(0, 65535), default=0,
    help="Port to listen on.  [default: a free one]",
)  # fmt: skip
@click.option("--browser/--no-browser", default=True, help="Open a browser, or do not.  [default: open]")
@own_kinds_option
@page_options
def ui(port: int, browser: bool, source: SourceOptions) -> None:
    """Browse and search kinds and fields in a browser, on this machine.

    It listens on 127.0.0.1 with your own credentials, answers under that name alone, and changes nothing. It
    runs until Ctrl-C.

    Exit codes: 0 stopped, 2 usage, 3 unreadable, 4 cannot listen.
    """
    from specmux_aggregator.process import run, run_to_the_end

    def started(host: str, bound: int) -> None:
        url = f"http://{host}:{bound}/openapi/ui/"
        click.echo(f"the web UI is at {url}")
        if browser:
            webbrowser.open(url)

    with report_errors():
        settings = _settings(source, port)
        run_to_the_end(run(settings, started=started, is_whole_process=True, is_for_one_user=True))


def _settings(source: SourceOptions, port: int) -> Settings:
    """Raises NoSource where nothing says what to show."""
    from specmux_aggregator.config.settings import KubernetesSettings, ListenSettings, Settings
    from specmux_aggregator.model.backend import Backend, BackendKind, BackendName
    from specmux_tools.sources.access import context_of, named_server
    from specmux_tools.sources.releases import with_default

    listen = ListenSettings(address="127.0.0.1", port=port)
    if source.server is not None:
        return Settings(listen=listen, backends=(named_server(source, os.environ),))
    if source.directories:
        backends = tuple(
            Backend(name=BackendName(f"folder-{number}"), kind=BackendKind.DIRECTORY, directory=folder)
            for number, folder in enumerate(source.directories, 1)
        )
        return Settings(listen=listen, backends=backends)
    source = with_default(source)
    if source.kubernetes is not None:
        note_missing_descriptions(f"{KUBERNETES}{source.kubernetes}", source)
        own = Backend(
            name=BackendName(f"kubernetes-{source.kubernetes}"),
            kind=BackendKind.DIRECTORY,
            kubernetes=source.kubernetes,
            directory=source.directory_of_cache,
        )
        return Settings(listen=listen, backends=(own,))
    # The apiserver alone has every document; what it is made of needs rights that users seldom have.
    cluster = KubernetesSettings(
        kubeconfig=source.kubeconfig, context=context_of(source, os.environ), api_services=False, crds=False
    )
    return Settings(listen=listen, kubernetes=cluster)
